"""The first run on a machine: what it compiles is shared by two processes.

numba compiles one function at a time in a process. Most of the time goes into the loop that
describes; a second process does the others meanwhile and leaves them in the cache.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

from rich.status import Status

__all__ = ["Loading", "compile_others"]

#: Seconds after which loading is not loading any more: nothing was in the cache.
PATIENCE = 0.7


class Loading:
    """Tells what is being done, and gets help if loading compiled code means compiling it.

    Parameters
    ----------
    status
        Where it is shown.
    """

    def __init__(self, status: Status) -> None:
        self._status = status
        self._timer: threading.Timer | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """As :data:`mkdesc._support.progress.Progress` is called."""
        self._status.update(what)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if what.startswith("loading"):
            self._timer = threading.Timer(PATIENCE, _help)
            self._timer.daemon = True
            self._timer.start()


def _help() -> None:
    code = "from mkdesc.cli.compiling import compile_others; compile_others()"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, **quiet)
    except OSError:  # then without help
        return


def compile_others() -> None:
    """Compile all that describing and matching photographs need besides the describing loop."""
    import numpy as np

    from mkdesc.compute.cpu.backend import compile_head
    from mkdesc.images.cutting import compile_for
    from mkdesc.matching.nearest import match_descriptors

    compile_head()
    compile_for("uint8")
    match_descriptors(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
