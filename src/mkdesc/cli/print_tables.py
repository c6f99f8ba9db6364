"""Tables of results on the terminal, on stdout."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable

from mkdesc.evaluation.report.table import Table

#: Columns of a line that goes to a file or a pipe: nothing there is ever cut.
WIDE = 240


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables, one below the other."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    for table in tables:
        shown = RichTable(title=table.title, title_justify="left")
        shown.add_column(table.corner, no_wrap=True)
        for column in table.columns:
            shown.add_column(column, justify="right")
        for row in table.rows:
            shown.add_row(row.name, *table.cells(row))
        console.print(shown, highlight=False, markup=False)
        for note in table.notes:
            console.print(note, highlight=False, markup=False)
