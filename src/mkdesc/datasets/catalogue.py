"""What the public sets are, where they can be had, and whether a folder holds one of them whole.

Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mkdesc.datasets.hpatches.layout import IMAGES, HPatches, sequence_type
from mkdesc.datasets.phototourism.layout import Subset


@dataclass(frozen=True)
class DatasetInfo:
    """A public set: its name, what it is, how large, where it can be had, and what to know."""

    name: str
    what: str
    size: str
    where: str
    note: str = ""


CATALOGUE = (
    DatasetInfo(
        "phototourism",
        "Phototourism (UBC, Brown): three sets of 64 x 64 patches of 3-D points, with pairs",
        "liberty 450,092, notredame 468,159, yosemite 633,587 patches",
        "cmp.felk.cvut.cz/~mishkdmy/datasets/BrownPhotoTour/ (a mirror, its zips have other "
        "hashes); the original host is gone",
        "unpack each zip into a folder of its own name",
    ),
    DatasetInfo(
        "hpatches",
        "HPatches: 116 sequences (57 i_*, 59 v_*) of 16 strips of 65 x 65 patches",
        "116 folders of 16 PNG files",
        "github.com/hpatches/hpatches-dataset says where; task files and splits.json: "
        "github.com/hpatches/hpatches-benchmark, folder tasks",
        "or strips of your own images: mkdesc make-hpatches",
    ),
    DatasetInfo(
        "oxford",
        "Oxford affine: 8 sequences of 6 images with homographies, to make strips from",
        "48 images",
        "www.robots.ox.ac.uk/~vgg/research/affine/",
        "mkdesc make-hpatches reads them as they are",
    ),
)

#: Patches of the published subsets.
_PATCHES = {"liberty": 450_092, "notredame": 468_159, "yosemite": 633_587}
#: MD5 of the original zips.
_ZIPS = {
    "fdd9152f138ea5ef2091746689176414": "liberty.zip",
    "509eda8535847b8c0a90bbb210c83484": "notredame.zip",
    "533b2e8eb7ede31be40abc317b2fd4f0": "yosemite.zip",
}


@dataclass(frozen=True)
class Finding:
    """What a folder holds: its kind, and facts about it, one a line."""

    kind: str
    lines: tuple[str, ...]


def check_folder(folder: str | Path) -> Finding:
    """Tell the kind of a set, count and validate it; ValueError for the first thing wrong.

    Parameters
    ----------
    folder
        A Phototourism subset or a folder of them, a folder of HPatches sequences, or a folder
        with the original zips.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"{root}: not a folder")
    if any(root.glob("*.bmp")):
        return Finding("a Phototourism subset", tuple(_subset(root)))
    if any(root.glob("*/ref.png")):
        return Finding("HPatches sequences", tuple(_hpatches(root)))
    subsets = sorted({file.parent for file in root.glob("*/*.bmp")})
    if subsets:
        lines = [line for one in subsets for line in _subset(one)]
        return Finding(f"{len(subsets)} Phototourism subsets", tuple(lines))
    zips = sorted(root.glob("*.zip"))
    if zips:
        return Finding("zips", tuple(map(_zip, zips)))
    raise ValueError(
        f"{root}: neither Phototourism sheets (*.bmp), nor HPatches sequences (folders with "
        "ref.png), nor zips in it"
    )


def _subset(folder: Path) -> list[str]:
    subset = Subset(folder)
    sheets = f"{subset.name}: {len(subset.sheets)} sheets"
    if not (folder / "info.txt").exists():
        return [f"{sheets}, no info.txt (no labels): patches can be described, not evaluated"]
    labels = subset.labels()
    lines = [f"{sheets}, {len(subset):,} patches of {len(np.unique(labels)):,} points"]
    expected = _PATCHES.get(subset.name)
    if expected is not None and expected != len(subset):
        lines.append(f"{subset.name}: the published set has {expected:,} patches: not all of it")
    if (folder / "interest.txt").exists():
        images = len(np.unique(subset.interest().image))
        lines.append(f"{subset.name}: interest.txt names {images:,} images")
    counts = [len(subset.pairs(count).first) for count in subset.pair_files()]
    found = ", ".join(f"{count:,}" for count in counts) or "none"
    lines.append(f"{subset.name}: files of pairs: {found}")
    # Reading every sheet is the only way to know that all of them can be read.
    total = sum(len(indices) for indices, _ in subset.blocks())
    return [*lines, f"{subset.name}: all {total:,} patches can be read"]


def _hpatches(root: Path) -> list[str]:
    dataset = HPatches(root)
    counts = dataset.counts()
    kinds = [sequence_type(name) for name in dataset.names]
    parts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds)))
    sides = sorted({sequence.shape[1] for sequence in dataset})
    lines = [
        f"{len(dataset)} sequences ({parts}), {sum(counts.values()):,} patches x "
        f"{len(IMAGES)} images, {' and '.join(map(str, sides))} px"
    ]
    if len(dataset) != 116:
        lines.append("the published set has 116 sequences")
    if (root / "splits.json").exists():
        lines.append("splits.json is there")
    for sequence in dataset:
        for _ in sequence.images():
            pass
    return [*lines, "all strips can be read"]


def _zip(file: Path) -> str:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "md5").hexdigest()
    known = _ZIPS.get(digest)
    if known is None:
        return f"{file.name}: md5 {digest}, not one of the original zips"
    return f"{file.name}: md5 {digest}, the original {known}"
