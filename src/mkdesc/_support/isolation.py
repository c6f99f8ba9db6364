"""Work of other libraries that may end the process, in a process of its own."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def run_isolated(function: Callable[..., object], *arguments: Any) -> None:
    """Call a function of a module of ours in a new process, which ends with this one.

    Parameters
    ----------
    function
        Of the top level of a module.
    arguments
        What JSON can hold. A RuntimeError says how the process ended if it did not end well.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    code = "from mkdesc._support.isolation import _run_here; _run_here()"
    # -P: nothing is imported from the folder in which the photographs are.
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, name],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "rror" in line]
        raise RuntimeError(reasons[-1] if reasons else f"the process ended: {done.returncode}")


def _run_here() -> None:
    """The child's part."""
    import importlib

    with suppress(AttributeError, OSError, TypeError):  # only Linux has it
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    module, _, function = sys.argv[1].partition(":")
    getattr(importlib.import_module(module), function)(*json.load(sys.stdin))
