"""Detectors by name; a new one is a module and a line of the registry."""

import pickle
import subprocess
import sys
from dataclasses import dataclass, fields
from types import ModuleType
from typing import ClassVar

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.cli import options
from mkdesc.features.settings import Settings
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.detectors.registry import (
    DEFAULT_DETECTOR,
    DETECTORS,
    Detector,
    as_detector,
    make_detector,
    settings_of,
)


@pytest.mark.parametrize("name", DETECTORS)
def test_every_one_is_a_frozen_dataclass_of_plain_values(name):
    if name in ("akaze", "kaze", "brisk") and not hasattr(cv2, f"{name.upper()}_create"):
        pytest.skip("not in this build of OpenCV")
    detector = make_detector(name, max_keypoints=7, upright=True, n_threads=1)
    assert isinstance(detector, Detector)
    assert [f.name for f in fields(detector)][:3] == ["max_keypoints", "upright", "n_threads"]
    assert (detector.max_keypoints, detector.upright, detector.n_threads) == (7, True, 1)
    assert pickle.loads(pickle.dumps(detector)) == detector
    assert type(detector)() == type(detector)(None, False, None)
    with pytest.raises(AttributeError):
        detector.max_keypoints = 8


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"detector: expected one of learned, .*, got 'surf'"):
        make_detector("surf")
    with pytest.raises(ValueError, match="max_keypoints: expected"):
        make_detector("sift", max_keypoints=0)
    with pytest.raises(
        ValueError, match="contrasts: no setting of the detector sift, which has c"
    ):
        make_detector("sift", contrasts=3)
    with pytest.raises(ValueError, match="contrast: no setting of the detector orb, which has no"):
        make_detector("orb", contrast=3)
    with pytest.raises(
        ValueError, match=r"detector: expected a name .* or an OpenCV detector, got 3"
    ):
        as_detector(3)
    with pytest.raises(ValueError, match="max_keypoints: expected"):
        as_detector(make_detector("sift"), max_keypoints=0)


def test_one_of_ours_is_taken_as_it_is():
    own = make_detector("sift", contrast=0.1)
    assert as_detector(own, max_keypoints=5) is own
    assert mkdesc.Features(own, 5).detector is own


def test_names_cost_no_import():
    code = "import mkdesc.images.detectors.registry, sys; print('cv2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


@dataclass(frozen=True)
class Brightest:
    """An example: the brightest pixel of each tile. Compiled on the CPU, or by PyTorch."""

    max_keypoints: int | None = None
    upright: bool = False
    n_threads: int | None = None
    tile: int = 16
    device: str | None = None

    SENSITIVE: ClassVar = {"tile": 8}
    side = 5.0

    def detect(self, gray, mask=None):
        shown = gray if mask is None else np.where(mask, gray, 0)
        high, wide = (n // self.tile for n in gray.shape)
        cut = shown[: high * self.tile, : wide * self.tile]
        tiles = cut.reshape(high, self.tile, wide, self.tile).swapaxes(1, 2)
        tiles = tiles.reshape(high * wide, self.tile**2)
        best = _argmax_torch(tiles, self.device) if self.device else _argmax_cpu(tiles)
        row, column = np.divmod(np.arange(high * wide), wide)
        y, x = np.divmod(best, self.tile)
        points = np.zeros((high * wide, 4))
        points[:, 0], points[:, 1] = column * self.tile + x, row * self.tile + y
        points[:, 2] = self.tile / 8
        return Keypoints(points, tiles.max(axis=1))


def _argmax_cpu(tiles):
    import numba

    @numba.njit
    def loop(rows):
        best = np.zeros(len(rows), np.int64)
        for i in range(len(rows)):
            for j in range(rows.shape[1]):
                if rows[i, j] > rows[i, best[i]]:
                    best[i] = j
        return best

    return loop(tiles)


def _argmax_torch(tiles, device):
    import torch

    return torch.from_numpy(tiles.astype(np.int64)).to(device).argmax(dim=1).cpu().numpy()


@pytest.fixture
def example(monkeypatch):
    """The one line of the registry, and the module."""
    module = ModuleType("mkdesc_example_detector")
    module.Brightest = Brightest
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(DETECTORS, "brightest", f"{module.__name__}:Brightest")


def test_a_new_detector_is_a_module_and_a_line(example, image):
    assert make_detector("brightest", sensitive=True).tile == 8
    features = mkdesc.Features("brightest", 20)
    assert features.sides == (
        5,
        10,
    )  # its own, and in proportion the second one
    keypoints, descriptors = features.extract(image)
    assert descriptors.shape == (20, 128)
    tiles = [image[y : y + 16, x : x + 16] for y in range(0, 192, 16) for x in range(0, 240, 16)]
    highest = sorted((tile.max() for tile in tiles), reverse=True)
    assert keypoints.scores.tolist() == highest[:20]
    x, y = keypoints.points[:, :2].astype(int).T
    assert image[y, x].tolist() == highest[:20]
    mask = np.zeros_like(image)
    mask[:, :50] = 1
    found, _ = features.extract(image, mask)
    assert (found.points[found.scores > 0, 0] < 50).all()
    turned = mkdesc.match_images(image, np.rot90(image, 2), mkdesc.Features("brightest", None))
    assert len(turned.keypoints_a) == 12 * 15


def test_its_twin_in_torch_is_used_on_a_device(example, image):
    pytest.importorskip("torch")
    here = mkdesc.Features("brightest", 50)
    there = mkdesc.Features("brightest", 50, device="cpu:0")
    assert (here.detector.device, there.detector.device) == (None, "cpu:0")
    np.testing.assert_array_equal(here.extract(image)[0].points, there.extract(image)[0].points)
    assert mkdesc.Features("sift", device="cpu:0").detector == make_detector("sift")


def test_its_settings_belong_to_the_identity_of_features(example):
    plain, sensitive = (
        Settings("brightest", 9, sensitive=sensitive).to_json() for sensitive in (False, True)
    )
    assert '"tile": 16' in plain
    assert '"tile": 8' in sensitive
    assert "device" not in plain
    assert settings_of(make_detector("brightest", n_threads=3, device="cpu")) == {"tile": 16}


def test_commands_list_them():
    (option,) = options.Detector.__metadata__
    assert option.help.endswith(f": {', '.join(DETECTORS)}.")
    assert DEFAULT_DETECTOR in DETECTORS
