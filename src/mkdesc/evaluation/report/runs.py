"""Run folders: what was asked, what it was asked with, what came of it, and the cache.

``config.json``
    The configuration and the versions. A second run with the same configuration continues from
    the cache, and may add descriptors; one with another is refused.
``cache/``
    Descriptors, one folder each.
``results.json``, ``table.md``, ``*.png``
    All results as data, the tables for reading, and plots.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mkdesc._support.files import atomic_path, read_json
from mkdesc._support.installed import versions
from mkdesc._support.text import shorten
from mkdesc.evaluation.contenders import Descriptor, get_descriptor
from mkdesc.evaluation.report.plots import Plot, draw_plots
from mkdesc.evaluation.report.table import Table

__all__ = ["Results", "open_run", "read_run", "save_results", "with_earlier"]


@dataclass(frozen=True)
class Results:
    """What a benchmark gives.

    Attributes
    ----------
    benchmark
        ``phototourism`` or ``hpatches``.
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
def open_run(folder: str | Path | None, config: dict[str, Any]) -> Iterator[Path]:
    """A folder for a run's cache: in the run folder, or a temporary one if there is none.

    Parameters
    ----------
    folder
        The run folder: new, empty, or one of a run with the same configuration.
    config
        Plain values. They must be those of the run that the folder has, if it has one; but there
        may be more ``descriptors``.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="mkdesc-") as temporary:
            yield Path(temporary)
        return
    run = Path(folder)
    file = run / "config.json"
    plain = json.loads(json.dumps(config))
    if file.exists():
        known = _config(file)
        more = plain["descriptors"]
        added = {**known, "descriptors": {**more, **_descriptors(known)}}
        if added != plain:
            raise ValueError(f"{run}: {_difference(added, plain)}; give another folder for this")
        if known != plain:
            _write(file, {"config": plain, "versions": versions()})
    elif run.exists() and (not run.is_dir() or any(map(_is_seen, run.iterdir()))):
        raise ValueError(f"{run}: expected a new folder or one of an earlier run")
    else:
        run.mkdir(parents=True, exist_ok=True)
        _write(file, {"config": plain, "versions": versions()})
    (run / "cache").mkdir(exist_ok=True)
    yield run / "cache"


def with_earlier(folder: str | Path | None, descriptors: Sequence[Descriptor]) -> list[Descriptor]:
    """The descriptors that a run has already, and those to add to it.

    Parameters
    ----------
    folder
        The run folder; nothing is known where there is none yet.
    descriptors
        Those asked for.
    """
    asked = {one.name: one for one in descriptors}
    file = None if folder is None else Path(folder) / "config.json"
    if file is None or not file.exists():
        return [*descriptors]
    config = _config(file)
    earlier: dict[str, Descriptor] = {}
    for name in _descriptors(config) if config.get("table") is None else ():
        try:
            earlier[name] = asked.get(name) or get_descriptor(name)
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{folder}: has {shorten(name)}, which must be given again ({error}); or give "
                "another folder"
            ) from None
    return [*(earlier | asked).values()]


def _descriptors(config: dict[str, Any]) -> dict[str, Any]:
    """What a configuration says of descriptors, by their names."""
    found = config.get("descriptors")
    return found if isinstance(found, dict) else {}


def _difference(known: dict[str, Any], wanted: dict[str, Any], path: str = "") -> str:
    """The first thing in which two configurations differ, in words."""
    for key in sorted({*known, *wanted}):
        old, new = known.get(key), wanted.get(key)
        if old != new:
            if isinstance(old, dict) and isinstance(new, dict):
                return _difference(old, new, f"{path}{shorten(key, 300)}, ")
            if key == "sha256":
                return f"{path.removesuffix(', ')} was another file when this run was made"
            was, now = ("nothing" if one is None else shorten(repr(one)) for one in (old, new))
            where = f"{path}{shorten(key)}"
            return f"this run was made with other settings ({where}: {was}, now {now})"
    return "this run was made with other settings"


def save_results(folder: str | Path, results: Results) -> list[str]:
    """Write ``results.json``, ``table.md`` and the plots; returns the names of the files.

    Without matplotlib there are no plots.
    """
    run = Path(folder)
    _write(run / "results.json", results.to_dict())
    with atomic_path(run / "table.md") as partial:
        partial.write_text(results.markdown(), encoding="utf-8")
    return ["results.json", "table.md", *draw_plots(run, results.plots)]


def read_run(folder: str | Path) -> tuple[dict[str, Any], Results]:
    """The configuration and the results of a run that is finished."""
    run = Path(folder)
    config = _config(run / "config.json")
    values = _read(run / "results.json")
    try:
        return config, Results.from_dict(values)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"{run / 'results.json'}: not the results of a run") from None


def _is_seen(path: Path) -> bool:
    """Whether a file is not hidden, as those are that a killed process left half written."""
    return not path.name.startswith(".")


def _config(file: Path) -> dict[str, Any]:
    config = _read(file).get("config", {})
    if not isinstance(config, dict):
        raise ValueError(f"{file}: not the configuration of a run")
    return config


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ValueError(f"{file}: no such file; expected the folder of a finished run")
    values = read_json(file)
    if not isinstance(values, dict):
        raise ValueError(f"{file}: expected a JSON object")
    return values


def _write(file: Path, values: dict[str, Any]) -> None:
    with atomic_path(file) as partial:
        partial.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
