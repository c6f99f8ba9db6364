"""``mkdesc compare``: several runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.targets import make_folder
from mkdesc.cli.options import Overwrite
from mkdesc.cli.print_tables import print_tables
from mkdesc.evaluation.report.compare import compare_runs
from mkdesc.evaluation.report.runs import check_results, save_results


def command(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `mkdesc evaluate -o` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Where to write the page and the table."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show several runs of one benchmark in one table and one plot."""
    results = compare_runs(runs)
    if output is not None:
        # All of their files, too: a page of a run is of the kind that is written.
        files = [file for run in runs for file in run.rglob("*") if file.is_file()]
        check_results(output, [*runs, *files], overwrite)
    print_tables(results.tables)
    if output is not None:
        make_folder(output)
        for name in save_results(output, results, overwrite):
            print(f"written: {output / name}")
