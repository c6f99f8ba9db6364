"""``mkdesc compile``: compile now what the first use would."""

from __future__ import annotations

import time

from mkdesc.cli.options import Detector, Model
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.models import DEFAULT_MODEL


def command(detector: Detector = DEFAULT_DETECTOR, model: Model = DEFAULT_MODEL) -> None:
    """Compile the loops now that the first use would: once per machine, some 15 seconds.

    They are kept beside the package, or where NUMBA_CACHE_DIR says.
    """
    from mkdesc.cli.first_run import compile_describing, compile_others

    start = time.perf_counter()
    compile_describing(model)
    compile_others(detector)
    print(f"compiled, or found compiled, in {time.perf_counter() - start:.1f} s")
