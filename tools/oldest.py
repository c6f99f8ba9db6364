"""The oldest versions that pyproject.toml allows, as pip takes them; PyTorch is left out."""

from __future__ import annotations

import tomllib
from pathlib import Path

EXTRAS = ("images", "colmap", "hloc", "plots", "explore")


def main() -> None:
    """Print them."""
    text = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    # A marker stays behind its semicolon; without blanks the shell takes both for one word.
    print(" ".join(sorted({one.replace(">=", "==", 1).replace(" ", "") for one in wanted})))


if __name__ == "__main__":
    main()
