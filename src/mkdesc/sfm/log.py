"""What COLMAP says goes to a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mkdesc.datasets.colmap import pycolmap_module

#: Name of the file in the folder of a reconstruction.
LOG = "colmap.log"
#: All levels (0 is INFO), and only what ends the program (3 is FATAL) on the terminal.
_SWITCHES = {
    "minloglevel": 0,
    "stderrthreshold": 3,
    "logtostderr": False,
    "alsologtostderr": False,
}


@contextmanager
def colmap_log(folder: Path) -> Iterator[None]:
    """Add all that COLMAP says meanwhile to ``colmap.log`` in a folder."""
    logging = pycolmap_module().logging
    before = {name: getattr(logging, name) for name in _SWITCHES}
    # Its files have a time and a number in their names; at last they become one.
    prefix = f".{LOG}."
    for name, value in _SWITCHES.items():
        setattr(logging, name, value)
    levels = [logging.Level.INFO, logging.Level.WARNING, logging.Level.ERROR]
    for level in levels:
        logging.set_log_destination(level, folder / prefix if level is levels[0] else "")
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(logging, name, value)
        logging.set_log_destination(levels[0], "")  # closes the file
        files = sorted(folder.glob(f"{prefix}*"), key=lambda file: file.stat().st_mtime_ns)
        with (folder / LOG).open("ab") as together:
            for file in files:  # also of runs that were killed
                together.write(file.read_bytes())
                file.unlink()
