"""The first run on a machine: nothing is compiled yet, and two processes share what is to do.

numba compiles one function at a time in a process, and most of the time goes into the loop that
describes. A few thousand patches are described by numpy before that loop is ready: a second
process compiles it meanwhile, and the next run finds it in the cache.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from mkdesc.features.features import Features


def while_compiling(features: Features, many: bool) -> Features:
    """What describes the same, at once, while a second process compiles what is missing.

    Parameters
    ----------
    features
        Of a model by its name or file.
    many
        Whether there is so much to describe that compiling the loop first takes less time. Then
        the second process compiles the other loops.
    """
    from mkdesc.compute.cpu.backend import is_compiled
    from mkdesc.descriptor import MKD
    from mkdesc.kernels.parametrization import as_parametrization

    mkd = features.mkd
    if is_compiled(as_parametrization(mkd.parametrization), int(mkd.patch_size)):
        return features
    if many:
        _start("compile_others(sys.argv[1])", str(features.get_params()["detector"]))
        return features
    _start("compile_describing(sys.argv[1])", str(features.get_params()["model"]))
    return features.replace(model=MKD(**mkd.get_params(deep=False) | {"backend": "numpy"}))


def _start(call: str, *arguments: str) -> None:
    """Call a function of this module in a process that nobody waits for."""
    code = f"import sys; from mkdesc.cli.first_run import *; {call}"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=subprocess.DEVNULL, **quiet
        )
    except OSError:  # then the next run has to
        return


def load_matching(features: Features) -> None:
    """Load, or compile, what matching two photographs needs: its time is not theirs."""
    import numpy as np

    from mkdesc.matching.nearest import match_descriptors

    features.describe(np.zeros((8, 8), np.uint8), [[4, 4, 1, 0]])
    bits = features.output == "bits"
    few = np.eye(2, dtype=np.uint8 if bits else np.float32)
    match_descriptors(few, few, bits=bits)


def compile_describing(model: str) -> None:
    """Compile what cuts patches of bytes and describes them by a model."""
    import numpy as np

    Features(model=model).describe(np.zeros((8, 8), np.uint8), [[4, 4, 1, 0]])


def compile_others(detector: str) -> None:
    """Compile all that matching photographs needs besides the loop that describes."""
    import numpy as np

    from mkdesc.compute.cpu.backend import compile_head
    from mkdesc.images.cutting import compile_for, compile_halving
    from mkdesc.images.detectors.registry import make_detector
    from mkdesc.matching.distinct import match_distinct
    from mkdesc.matching.guided import match_guided
    from mkdesc.matching.nearest import match_descriptors

    compile_head()
    compile_for("uint8")
    compile_halving()
    noise = np.random.default_rng(0).integers(0, 256, (96, 96), np.uint8)
    make_detector(detector, max_keypoints=10).detect(noise)
    few, positions = np.eye(2, dtype=np.float32), np.eye(2)
    match_descriptors(few, few)
    match_distinct(few, few, positions, positions)
    match_guided(few, few, positions, positions, np.eye(3))
