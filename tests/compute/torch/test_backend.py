import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from mkdesc import MKD, Features, load_model
from mkdesc.cli.app import make_app
from mkdesc.evaluation.speed import run_speed, textured_patches
from mkdesc.learn import TrainingBlock, learn_model


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_arrays_of_all_types(dtype):
    patches = textured_patches(6, 64).astype(dtype)
    if patches.dtype.kind == "f":
        patches /= 255
    elif dtype == np.uint16:
        patches *= 257
    mkd = load_model("paper")
    expected = mkd.transform(patches)
    mkd.set_params(backend="torch", device="cpu")
    patches.flags.writeable = False
    np.testing.assert_allclose(mkd.transform(patches), expected, atol=2e-5)
    assert mkd.transform(patches[:0]).shape == (0, 128)


def test_bad_patches_are_named_and_other_sizes_resampled():
    mkd = MKD("polar", 32, backend="torch", device="cpu", resize=True)
    patches = textured_patches(5, 32) / np.float32(255)
    patches[3, 2, 2] = np.nan
    with pytest.raises(ValueError, match=r"patches\[13\] has NaN or infinity"):
        mkd.transform(patches, first=10)
    larger = textured_patches(3, 65)
    expected = MKD("polar", 32, resize=True).transform(larger)
    np.testing.assert_allclose(mkd.transform(larger), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"device": "cuda"}, "device: only the backend 'torch' has one, got 'cpu'"),
        (
            {"backend": "torch", "device": "gpu"},
            r"device: expected cpu, cuda, .*, got 'gpu'",
        ),
        ({"backend": "torch", "device": "cuda:99"}, "device: cuda:99 not available"),
        ({"backend": "torch", "device": 0}, "device: expected text or None, got 0"),
    ],
)
def test_other_devices_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        MKD(**parameters).transform(textured_patches(1, 64))


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("mkdesc.compute.torch.backend", "mkdesc.torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=r"pip install 'mkdesc\[torch\]'"):
        MKD(backend="torch").transform(textured_patches(1, 64))
    with pytest.raises(ImportError, match=r"pip install 'mkdesc\[torch\]'"):
        import mkdesc.torch  # noqa: F401


def test_features_learning_and_speed_take_a_device(rng):
    image = textured_patches(1, 200)[0]
    points = [[100, 100, 4, 30], [80, 120, 3, 200]]
    expected = Features().describe(image, points)
    np.testing.assert_allclose(
        Features(device="cpu:0").describe(image, points), expected, atol=1e-5
    )
    loops = Features(20, device="cpu")  # PyTorch would take thirty times as long
    assert loops.on_device() is None
    np.testing.assert_array_equal(loops.describe(image, points), expected)
    patches = np.repeat(textured_patches(60, 16), 2, axis=0)
    patches = (patches + rng.integers(0, 9, patches.shape)).astype(np.uint8)
    block = TrainingBlock(patches, np.repeat(np.arange(60), 2))
    learned = learn_model([block], MKD("cartesian", 16, backend="torch", device="cpu"))
    assert learned.mkd.device == "cpu"
    assert np.isfinite(learned.mkd.transform(patches)).all()
    (table,) = run_speed(["paper-64"], count=64, rounds=2, device="cpu").tables
    assert table.rows[0].name == "paper-64 on cpu"


def test_the_command_line_takes_a_device(tmp_path):
    np.save(tmp_path / "patches.npy", textured_patches(7, 64))
    for device in ("cpu", "cpu:0"):
        command = ["describe", str(tmp_path / "patches.npy"), "--device", device]
        done = CliRunner().invoke(
            make_app(), [*command, "-o", str(tmp_path / f"{device[-1]}.npy")]
        )
        assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load(tmp_path / "0.npy"), np.load(tmp_path / "u.npy"), atol=1e-5)
