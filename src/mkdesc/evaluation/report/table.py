"""Tables of results: rows of numbers, with published ones beside ours, as Markdown or data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

#: How a missing value is shown.
NO_VALUE = "-"


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes
    ----------
    name
        What the line is about.
    values
        One number (or None, or a word) per column.
    published
        Published numbers for the same columns, or None where there is none.
    """

    name: str
    values: tuple[float | str | None, ...]
    published: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table with a title.

    Attributes
    ----------
    key
        Tables of the same key can be compared.
    title, corner
        Above the table, and above its first column.
    columns, rows
        Names of the columns, and lines with a value for each.
    notes
        Lines below it.

    Examples
    --------
    >>> table = Table("demo", "Scores", ("score",), (Row("ours", (1.234,), (1.2,)),))
    >>> print(table.markdown())
    **Scores**
    <BLANKLINE>
    | descriptor | score |
    |---|---|
    | ours | 1.23 (paper 1.20) |
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())
    corner: str = "descriptor"

    def cells(self, row: Row) -> list[str]:
        """The values of a row as text; integers stay integers, others get two decimals."""
        beside = row.published or (None,) * len(row.values)
        pairs = zip(row.values, beside, strict=True)
        return [
            text(value) + (f" (paper {text(published)})" if published is not None else "")
            for value, published in pairs
        ]

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [f"**{self.title}**", ""]
        lines.append(f"| {' | '.join((self.corner, *self.columns))} |")
        lines.append("|" + "---|" * (1 + len(self.columns)))
        lines += [f"| {' | '.join((row.name, *self.cells(row)))} |" for row in self.rows]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Table:
        """What :meth:`to_dict` gave, also after it has been JSON; TypeError for anything else."""
        rows = tuple(
            Row(row["name"], tuple(row["values"]), tuple(row["published"]))
            for row in values["rows"]
        )
        lists = {name: tuple(values[name]) for name in ("columns", "notes")}
        table = cls(**{**values, **lists, "rows": rows})
        words = (table.key, table.title, table.corner, *table.columns, *table.notes)
        cells = [cell for row in rows for cell in (*row.values, *row.published)]
        if (
            not all(isinstance(word, str) for word in (*words, *(row.name for row in rows)))
            or not all(isinstance(cell, (str, int, float, type(None))) for cell in cells)
            or any(len(row.values) != len(table.columns) for row in rows)
            or any(len(row.published) not in (0, len(table.columns)) for row in rows)
        ):
            raise TypeError("not a table")
        return table


def text(value: float | str | None) -> str:
    """A cell: a word, an integer, a number with two decimals, or a dash."""
    if value is None:
        return NO_VALUE
    return str(value) if isinstance(value, (str, int)) else f"{value:.2f}"


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Names for reading: files without folder and ending, unless two would be the same.

    Examples
    --------
    >>> short_names(["tfeat:weights/liberty.safetensors+lw", "rootsift"])
    {'tfeat:weights/liberty.safetensors+lw': 'tfeat:liberty+lw', 'rootsift': 'rootsift'}
    """
    whole = list(names)
    short = [re.sub(r"[^:]*[/\\]", "", name).replace(".safetensors", "") for name in whole]
    return {
        name: brief if short.count(brief) == 1 else name
        for name, brief in zip(whole, short, strict=True)
    }
