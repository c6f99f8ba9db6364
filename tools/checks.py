"""The table of checks in docs/matching.md: ``python tools/checks.py`` writes it again."""

from __future__ import annotations

from pathlib import Path

from mkdesc.belief.checks import CHECKS, Check

PAGE = Path(__file__).resolve().parents[1] / "docs" / "matching.md"
#: What the table begins with.
HEAD = "| check | must be | otherwise | asked for by `mapping` | set on |\n|---|---|---|---|---|\n"


def table() -> str:
    """The table as CHECKS have it."""
    return HEAD + "".join(map(_row, CHECKS))


def table_of(text: str) -> str:
    """The table as a page has it."""
    begin = text.index(HEAD)
    return text[begin : text.index("\n\n", begin) + 1]


def _row(check: Check) -> str:
    bounds = (("at least", check.least), ("at most", check.most))
    bound = ", ".join(f"{word} {value:g}" for word, value in bounds if value is not None)
    mapping = "yes" if check.mapping else "no"
    cells = (check.name, bound, f'`"{check.verdict}"`', mapping, check.calibrated)
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Write the table of the page again."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(table_of(text), table()), encoding="utf-8")


if __name__ == "__main__":
    main()
