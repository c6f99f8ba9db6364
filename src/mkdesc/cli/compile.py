"""``mkdesc compile``: compile now what the first use would."""

from __future__ import annotations

import time

from mkdesc.cli.options import Detector, Model
from mkdesc.images.detectors.registry import DEFAULT_DETECTOR
from mkdesc.models import DEFAULT_MODEL


def command(detector: Detector = DEFAULT_DETECTOR, model: Model = DEFAULT_MODEL) -> None:
    """Compile the loops now that the first use would: once for each model and detector, some 20 s.

    Most installations come with compiled loops for the usual detector and model. What is missing
    is kept beside the package, or where NUMBA_CACHE_DIR says.
    """
    start = time.perf_counter()
    compile_for(detector, model)
    print(f"compiled, or found compiled, in {time.perf_counter() - start:.1f} s")


def compile_for(detector: str = DEFAULT_DETECTOR, model: str = DEFAULT_MODEL) -> None:
    """Compile what it takes to match, index and find photographs."""
    import numpy as np

    from mkdesc.features.features import Features
    from mkdesc.matching.bits import compile_bits
    from mkdesc.matching.distinct import match_distinct
    from mkdesc.matching.growing.grow import grow_matches
    from mkdesc.matching.nearest import match_descriptors
    from mkdesc.retrieval.segments import compile_scores

    noise = np.random.default_rng(0).integers(0, 256, (96, 96), np.uint8)
    features = Features(detector, 10, model)
    for image in (noise, noise / np.float32(255)):  # loops of bytes, and of floats
        features.extract(image)
    few, positions = np.eye(2, dtype=np.float32), np.eye(2)
    match_descriptors(few, few)
    match_distinct(few, few, positions, positions)
    places = np.array([[30.0, 30], [60, 30], [30, 60], [60, 60]])
    grow_matches(noise, noise, places, places, np.arange(4)[:, None].repeat(2, axis=1))
    compile_bits()
    compile_scores()
