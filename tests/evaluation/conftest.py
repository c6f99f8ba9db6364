"""Small sets in both layouts, made of blurred noise that is seen through more noise."""

import numpy as np
import pytest
from layouts import draw_pairs, write_sequence, write_subset

from mkdesc.datasets.hpatches.layout import IMAGES
from mkdesc.datasets.phototourism.layout import Interest
from mkdesc.kernels.patches import resize_patches

LEVELS = {"r": 5, "e": 15, "h": 30, "t": 50}


def surfaces(rng, count, size):
    coarse = rng.random((count, 12, 12), np.float32)
    return 255 * resize_patches(coarse, size)


def seen(rng, patches, noise):
    return (patches + noise * rng.standard_normal(patches.shape)).clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def subsets_root(tmp_path_factory):
    """Three Phototourism subsets: 150 points, four patches of each."""
    root = tmp_path_factory.mktemp("phototourism")
    for seed, name in enumerate(("castle", "door", "fox")):
        rng = np.random.default_rng(seed)
        patches = seen(rng, np.repeat(surfaces(rng, 150, 64), 4, axis=0), 60)
        labels = np.repeat(np.arange(150), 4)
        pairs = {count: draw_pairs(labels, count, seed) for count in (200, 900)}
        image = np.tile(np.arange(4), 150)
        zeros = np.zeros(600)
        interest = Interest(image, zeros, zeros, zeros, zeros)
        write_subset(root / name, patches, labels, interest, pairs)
    return root


@pytest.fixture(scope="session")
def strips_root(tmp_path_factory):
    """Five sequences of 40 patches, and a splits.json."""
    root = tmp_path_factory.mktemp("hpatches")
    names = ("i_dome", "i_lake", "v_boat", "v_wall", "v_yard")
    for seed, name in enumerate(names):
        rng = np.random.default_rng(10 + seed)
        truth = surfaces(rng, 40, 65)
        write_sequence(root, name, {image: seen(rng, truth, LEVELS[image[0]]) for image in IMAGES})
    (root / "splits.json").write_text(
        '{"a": {"test": ["i_dome", "v_wall"], "train": ["i_lake", "v_boat", "v_yard"]}}'
    )
    return root


@pytest.fixture(scope="session")
def fpr95_of():
    """FPR95 of a callable on a subset's pairs, by its definition, in per cent."""

    def measure(subset, describe, count=None):
        rows = np.concatenate([describe(patches) for _, patches in subset.blocks()]).astype(float)
        pairs = subset.pairs(count)
        distance = np.linalg.norm(rows[pairs.first] - rows[pairs.second], axis=1)
        found = np.sort(distance[pairs.matching])
        limit = found[int(np.ceil(0.95 * len(found))) - 1]
        return 100 * (distance[~pairs.matching] <= limit).mean()

    return measure
