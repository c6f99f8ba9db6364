"""Floats are from 0 to 1: one rule, and one advice, wherever they come in."""

from importlib.util import find_spec

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc._support.arrays import HINTED

#: Floats that are not from 0 to 1, and what to do about them.
RANGES = {
    "from 0 to 255": (lambda one: 255 * one, "divide by 255, or pass uint8"),
    "from -1 to 1": (lambda one: 2 * one - 1, "scale them to 0 to 1"),
    "about 0": (lambda one: one - 0.5, "scale them to 0 to 1"),
    "too bright": (lambda one: 1.6 * one, "clip or scale them"),
}
#: Floats that are from 0 to 1 but for rounding, or for what interpolation adds.
FINE = {
    "rounded": lambda one: np.where(one > 0.99, np.nextafter(1, 2, dtype=one.dtype), one),
    "cubic": lambda one: 1.5 * one - 0.25,
}


def _ways(tmp_path):
    """Whatever takes floats, by name: of patches (N, 1, 64, 64), and of images as large."""
    features = mkdesc.Features(20)

    def by_file(patches):
        np.save(tmp_path / "in.npy", patches)
        mkdesc.batches.describe_file(tmp_path / "in.npy", tmp_path / "out.npy")

    yield "transform", lambda patches: mkdesc.load_model("extended").transform(patches)
    yield "describe", mkdesc.describe
    yield "resized", mkdesc.MKD(patch_size=16, resize=True).transform
    yield "describe_file", by_file
    yield "images", lambda patches: [features.detectAndCompute(one[0]) for one in patches]
    points = np.array([[32, 32, 2, 0.0]])
    yield "points", lambda patches: [features.describe(one[0], points) for one in patches]
    yield "match_images", lambda patches: mkdesc.match_images(patches[0, 0], patches[-1, 0])
    if find_spec("torch") is not None:
        import torch

        from mkdesc.torch import Features, MKDescriptor

        yield "module", lambda patches: MKDescriptor("extended")(torch.from_numpy(patches))
        yield "torch images", lambda patches: Features(max_keypoints=20)(torch.from_numpy(patches))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_rule_for_floats_everywhere(tmp_path, rng, dtype):
    patches = cv2.GaussianBlur(rng.random((64, 64, 3)), (0, 0), 1)
    patches = (patches - patches.min()) / (patches.max() - patches.min())
    good = np.ascontiguousarray(patches.transpose(2, 0, 1)[:, None], dtype)
    good[:, :, 0, :2] = 0, 1
    for name, use in _ways(tmp_path):
        for change in FINE.values():
            use(change(good).astype(dtype))
        for what, (change, advice) in RANGES.items():
            with pytest.raises(ValueError, match=f"floats must be from 0 to 1: {advice}"):
                raise AssertionError(name, what, use(change(good).astype(dtype)))


def _of_bits(rng, bits):
    """Images (N, 1, 64, 64) of a camera of so many bits."""
    noise = cv2.GaussianBlur(rng.random((64, 64, 3)), (0, 0), 1).transpose(2, 0, 1)
    shares = (noise - noise.min()) / np.ptp(noise)
    return np.ascontiguousarray((shares * (2**bits - 1)).round()[:, None], np.uint16)


@pytest.mark.parametrize(("bits", "factor"), [(10, 64), (12, 16)])
def test_integers_of_few_bits_are_hinted_at(tmp_path, rng, bits, factor):
    few = _of_bits(rng, bits)
    hint = f"if they have {bits} bits, multiply them by {factor}"
    for name, use in _ways(tmp_path):
        if "torch" in name or name == "module":  # tensors may be on a device
            continue
        HINTED.clear()
        with pytest.warns(UserWarning, match=hint):
            use(few)
        HINTED.clear()
        use(few * np.uint16(factor))  # without a word: warnings are errors here
        if name in ("transform", "images"):
            use(np.zeros_like(few))


def test_files_of_few_bits_are_hinted_at_once(tmp_path, rng, run):
    few = _of_bits(rng, 12).repeat(3, 2).repeat(3, 3)
    for folder, images in (("few", few), ("all", 16 * few), ("dark", few // 256)):
        (tmp_path / folder).mkdir()
        for k, (image,) in enumerate(images):
            kind = np.uint8 if folder == "dark" else np.uint16
            cv2.imwrite(str(tmp_path / folder / f"{k}.png"), image.astype(kind))
    for folder, hints in (("few", 1), ("all", 0), ("dark", 0)):
        HINTED.clear()
        done = run("features", folder, "-o", f"{folder}-out", "--keypoints", 20, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("warning: ") == hints
        assert done.stderr.count("if they have 12 bits, multiply them by 16") == hints
