"""ONNX files, as onnxruntime runs them."""

import numpy as np
import pytest
from typer.testing import CliRunner

from mkdesc import load_model
from mkdesc.cli.app import make_app
from mkdesc.evaluation.speed import textured_patches
from mkdesc.images.detectors.learned_numba import angles as angles_of
from mkdesc.images.detectors.learned_numba import maxima
from mkdesc.images.detectors.learned_weights import load_weights
from mkdesc.torch import MKDescriptor, export_keypoints_onnx, export_onnx

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(("model", "dtype"), [("extended", "uint8"), ("paper-32px", "float32")])
def test_models_run_in_onnxruntime_with_any_number_of_patches(tmp_path, model, dtype):
    file = tmp_path / "model.onnx"
    command = ["export", "onnx", model, "-o", str(file)]
    command += [] if dtype == "float32" else ["--dtype", dtype]  # that is the default
    done = CliRunner().invoke(make_app(), command)
    assert done.exit_code == 0, done.output
    assert [item.name for item in tmp_path.iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    says = session.get_modelmeta().custom_metadata_map["mkdesc.patches"]
    assert says.startswith(dtype)
    assert says.endswith("from 0 to 255" if dtype == "uint8" else "from 0 to 1")
    mkd = load_model(model)
    patches = textured_patches(5, mkd.patch_size).astype(dtype)
    patches = patches if dtype == "uint8" else patches / np.float32(255)
    for n in (1, 5):
        (found,) = session.run(["descriptors"], {"patches": patches[:n, None]})
        np.testing.assert_allclose(found, mkd.transform(patches[:n]), atol=1e-4)


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match="dtype: expected one of uint8, float32, got 'int8'"):
        export_onnx(MKDescriptor("paper-64"), tmp_path / "model.onnx", "int8")
    done = CliRunner().invoke(
        make_app(), ["export", "onnx", "paper-64", "-o", str(tmp_path / "model.bin")]
    )
    assert isinstance(done.exception, ValueError)
    assert "ending in .onnx" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_the_learned_detector_finds_the_same_keypoints(tmp_path, rng):
    """Of one level: what compiled code finds there, in images of any size."""
    file = tmp_path / "keypoints.onnx"
    command = ["export", "onnx", "learned", "-o", str(file), "--dtype", "uint8"]
    done = CliRunner().invoke(make_app(), command)
    assert done.exit_code == 0, done.output
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for shape in ((50, 61), (90, 70)):
        images = rng.integers(0, 256, (2, 1, *shape), np.uint8)
        scores, places, angles = session.run(None, {"images": images})
        for k in range(2):
            weights = load_weights("keypoints")
            levels, found = maxima(images[k, 0], weights, 1)
            wanted = sorted(zip(found.row, found.column, found.x, found.y,
                                angles_of(levels, found), strict=True))  # fmt: skip
            row, column = np.nonzero(np.isfinite(scores[k, 0]))
            assert len(row) > 20
            at = row, column
            mine = sorted(zip(row, column, *places[k][:, row, column], angles[k, 0][at],
                              strict=True))  # fmt: skip
            away = np.abs(np.array(mine) - np.array(wanted))
            assert away[:, :4].max() < 0.01
            assert (np.minimum(away[:, 4], 360 - away[:, 4]) < 0.5).mean() > 0.98
    with pytest.raises(ValueError, match="dtype: expected one of uint8, float32, got 'int8'"):
        export_keypoints_onnx(tmp_path / "other.onnx", dtype="int8")
    with pytest.raises(FileNotFoundError, match="no weights 'nowhere'"):
        export_keypoints_onnx(tmp_path / "other.onnx", "nowhere")
    assert [item.name for item in tmp_path.iterdir()] == ["keypoints.onnx"]
