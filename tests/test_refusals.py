"""Inputs that would silently be taken for something else, and settings that cannot work."""

import os
import subprocess
import sys

import numpy as np
import pytest

import mkdesc
from mkdesc.cli.app import make_app
from mkdesc.retrieval import updating


@pytest.mark.parametrize(
    "use",
    [
        lambda masked: mkdesc.MKD("cartesian", 16, backend="numpy").transform(masked),
        lambda masked: mkdesc.Features().detect(masked[0]),
        lambda masked: mkdesc.match_descriptors(masked[0], masked[0]),
    ],
)
def test_masks_of_arrays_are_refused(use):
    numbers = np.random.default_rng(0).integers(0, 256, (2, 16, 16), np.uint8)
    with pytest.raises(ValueError, match="expected an array without a mask"):
        use(np.ma.masked_greater(numbers, 128))
    use(np.ma.masked_array(numbers))  # nothing is masked


def test_without_a_compiler_there_is_one_line(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros((2, 64, 64), np.uint8))
    done = subprocess.run(
        [sys.executable, "-m", "mkdesc", "describe", "p.npy", "-o", "d.npy"],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("error: NUMBA_DISABLE_JIT is set")
    assert "Traceback" not in done.stderr


def test_names_with_spaces_are_refused_before_the_work(tmp_path, monkeypatch):
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "my holiday.jpg").touch()
    monkeypatch.setattr(updating, "build_index", None)  # whatever asks for it fails
    with pytest.raises(ValueError, match=r"'my holiday\.jpg': expected a name without spaces"):
        make_app()(
            ["pairs", str(photos), "-o", str(tmp_path / "pairs.txt")], standalone_mode=False
        )


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), float("nan"), float("inf")], ids=["huge", "low", "nan", "inf"]
)
def test_numbers_that_no_float_holds_are_refused(value):
    with pytest.raises(ValueError, match="threshold: expected a number > 0, got"):
        mkdesc.verify_matches([], [], threshold=value)
