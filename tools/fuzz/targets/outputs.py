"""Files where outputs are to go: of our kinds, or damaged and so perhaps of others."""

from __future__ import annotations

from pathlib import Path

from targets.target import Target

__all__ = ["OUTPUTS"]

_NAMES = ("m.png", "m.jpg", "m.svg", "m.npz", "m.csv", "m.json")


def _prepare(folder: Path) -> None:
    import numpy as np

    import mkdesc
    from mkdesc.retrieval.pairs import write_pairs

    noise = np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8)
    found = mkdesc.match_images(noise, noise)
    for name in _NAMES:
        found.save(folder / name)
    write_pairs(folder / "pairs.txt", [("a.png", "b.png")])
    mkdesc.save_model(mkdesc.load_model("paper-64"), folder / "m.safetensors")


def _read(folder: Path) -> None:
    """May they be replaced? A refusal names the file; that a good one may be is seen first."""
    from mkdesc._support.targets import check_target
    from mkdesc.features.matches import check_output
    from mkdesc.models.files import OWN_MODEL
    from mkdesc.retrieval.pairs import OWN_PAIRS

    for name in _NAMES:
        check_output(folder / name)
    check_target(folder / "pairs.txt", own=OWN_PAIRS)
    check_target(folder / "m.safetensors", own=OWN_MODEL)


#: All of them.
OUTPUTS = (Target("outputs", _prepare, (*_NAMES, "pairs.txt", "m.safetensors"), _read),)
