"""Run folders: what was asked, what it was asked with, what came of it, and the cache.

``config.json``
    The configuration, the versions and the fingerprints of the data. A second run with the same
    configuration continues from the cache, and may add descriptors; one with another is refused.
``cache/``
    Descriptors, one folder each.
``report.html``
    Tables, plots and pictures on one page that needs no other file.
``results.json``, ``pairs.csv``, ``table.md``
    All results as data, those of pairs of photographs as a table, and the tables for reading.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mkdesc._support.files import atomic_path, read_json
from mkdesc._support.installed import versions
from mkdesc._support.targets import check_folder, check_target, is_same
from mkdesc._support.text import shorten
from mkdesc._support.workfolder import WorkFolder, content_part
from mkdesc.evaluation.report.page import OWN_PAGE, Picture, page_of, pairs_csv
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.table import Table

#: What the texts in a run folder have in them.
_TEXTS = {
    "results.json": rb"\A\{\s*\"benchmark\"",
    "table.md": rb"\A\*\*[^\n]+\*\*\n\n\|",
    "pairs.csv": rb"\Amethod,pair,",
    "report.html": OWN_PAGE,
}


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_HasName)


@dataclass(frozen=True)
class Results:
    """What a benchmark gives.

    Attributes
    ----------
    benchmark
        ``phototourism``, ``hpatches``, ``homography`` or ``pose``.
    tables
        For reading.
    details
        Everything that was measured, by descriptor.
    plots
        What to plot.
    """

    benchmark: str
    tables: tuple[Table, ...]
    details: dict[str, Any]
    plots: tuple[Plot, ...] = field(default=())

    def markdown(self) -> str:
        """All tables, as Markdown."""
        return "\n\n".join(table.markdown() for table in self.tables) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The results as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Results:
        """What :meth:`to_dict` gave, also after it has been JSON; TypeError for anything else."""
        tables = tuple(map(Table.from_dict, values["tables"]))
        plots = tuple(Plot.from_dict(plot) for plot in values["plots"])
        if not isinstance(values["benchmark"], str) or not isinstance(values["details"], dict):
            raise TypeError("not the results of a benchmark")
        return cls(values["benchmark"], tables, values["details"], plots)


@contextmanager
def open_run(
    folder: str | Path | None,
    config: dict[str, Any],
    inputs: Mapping[str, str | Path] | None = None,
) -> Iterator[Path]:
    """A folder for a run's cache: in the run folder, or a temporary one if there is none.

    Parameters
    ----------
    folder
        The run folder: new, empty, or one of a run with the same configuration.
    config
        Plain values. They must be those of the run that the folder has, if it has one; but there
        may be more ``descriptors``.
    inputs
        Files of the data, by names for messages, which must not have changed either.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="mkdesc-") as temporary:
            yield Path(temporary)
        return
    _work(folder).open(config, inputs, grows="descriptors", versions=versions())
    _check_files(folder)
    cache = Path(folder, "cache")
    cache.mkdir(exist_ok=True)
    yield cache


def files_in(folder: Path, name: str, *patterns: str) -> dict[str, Path]:
    """Files of a folder as inputs of a run, by names that begin with that given."""
    files = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
    return {f"{name}/{file.relative_to(folder).as_posix()}": file for file in files}


def _work(folder: str | Path) -> WorkFolder:
    return WorkFolder(str(folder), str(Path(folder, "config.json")))


def with_earlier(
    folder: str | Path | None, descriptors: Sequence[Named], get: Callable[[str], Named]
) -> list[Named]:
    """The descriptors that a run has already, and those to add to it.

    Parameters
    ----------
    folder
        The run folder; nothing is known where there is none yet.
    descriptors
        Those asked for.
    get
        Gives the descriptor of a name.
    """
    asked = {one.name: one for one in descriptors}
    found = None if folder is None else _work(folder).read()
    config = {} if found is None else found["settings"]
    names = config.get("descriptors")
    earlier: dict[str, Named] = {}
    for name in names if isinstance(names, dict) and config.get("table") is None else ():
        try:
            earlier[name] = asked.get(name) or get(name)
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{folder}: has {shorten(name)}, needed again here ({error}); or give "
                "another folder"
            ) from None
    return [*(earlier | asked).values()]


def check_results(
    folder: str | Path, reads: Sequence[str | Path], overwrite: bool = False
) -> None:
    """Refuse a folder in which :func:`save_results` would write over anything but results.

    Parameters
    ----------
    folder
        As for :func:`save_results`.
    reads
        Folders of the runs that they are made of.
    overwrite
        As for ``check_target`` of ``mkdesc._support.targets``.
    """
    for read in reads:
        if is_same(folder, read):
            raise ValueError(f"{folder}: is one of the runs ({read}); choose another output")
    if check_folder(folder).is_dir():
        _check_files(folder, reads, overwrite)


def _check_files(
    folder: str | Path, reads: Sequence[str | Path] = (), overwrite: bool | None = None
) -> None:
    """Refuse a folder that has other files of the names that results have."""
    for name, kind in _TEXTS.items():
        check_target(Path(folder, name), reads, kind, overwrite)


def save_results(
    folder: str | Path,
    results: Results,
    overwrite: bool | None = None,
    pictures: Sequence[Picture] = (),
    key: str = "",
) -> list[str]:
    """Write ``results.json``, ``table.md`` and the page; returns the names of files.

    Nothing is written over other files of these names, unless ``overwrite`` says so.

    Parameters
    ----------
    folder, results
        The run folder, and what came of the run.
    overwrite
        As for :func:`check_results`.
    pictures, key
        As for :func:`mkdesc.evaluation.report.page.page_of`.
    """
    run = Path(folder)
    title = f"Results: {results.benchmark}"
    _check_files(run, overwrite=overwrite)
    texts = {
        "results.json": json.dumps(results.to_dict(), indent=1) + "\n",
        "table.md": results.markdown(),
        "report.html": page_of(title, results.tables, results.plots, pictures, key),
    }
    table = pairs_csv(results.details)
    if table is not None:
        texts["pairs.csv"] = table
    for name, text in texts.items():
        with atomic_path(run / name) as partial:
            partial.write_text(text, encoding="utf-8")
    return [*texts]


def read_run(folder: str | Path) -> tuple[dict[str, Any], Results]:
    """The configuration and the results of a run that is finished.

    To the configuration belong the ``inputs``, by digests of their content.
    """
    run = Path(folder)
    values = _read(run / "results.json")
    found = _work(run).read() or {"settings": {}, "inputs": {}}
    inputs = {name: content_part(str(one)) for name, one in found["inputs"].items()}
    try:
        return {**found["settings"], "inputs": inputs}, Results.from_dict(values)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"{run / 'results.json'}: not the results of a run") from None


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ValueError(f"{file}: no such file; expected the folder of a finished run")
    values = read_json(file)
    if not isinstance(values, dict):
        raise ValueError(f"{file}: expected a JSON object")
    return values
