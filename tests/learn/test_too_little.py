"""Data that nothing can be learned from give no model."""

import numpy as np
import pytest

from mkdesc.cli.app import make_app
from mkdesc.descriptor import MKD
from mkdesc.heads.head import L2, Affine, Head
from mkdesc.learn.file_shards import TrainingBlock
from mkdesc.learn.learner import learn_model
from mkdesc.models import load_model, save_model


@pytest.mark.parametrize("labels", [[0] * 50, [0, 0], [0, 1], [0, 1, 2], [0, 0, 0, 0]])
def test_too_few_points_are_refused(tmp_path, labels):
    patches = np.random.default_rng(0).integers(0, 256, (len(labels), 16, 16), np.uint8)
    np.savez(tmp_path / "train.npz", patches=patches, labels=labels)
    arguments = ["learn", "patches", str(tmp_path / "train.npz"), "--dims", "8"]
    with pytest.raises(ValueError, match="labels: expected two patches or more of the same label"):
        make_app(["learn"])(
            [*arguments, "-o", str(tmp_path / "m.safetensors")], standalone_mode=False
        )
    assert [file.name for file in tmp_path.iterdir()] == ["train.npz"]


@pytest.mark.filterwarnings("ignore:dims", "ignore:the covariance")
@pytest.mark.parametrize("labels", [[0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]])
@pytest.mark.parametrize("method", ["gda", "lw", "pca", "pcawt", "pcaws"])
def test_whatever_is_written_makes_unit_vectors(tmp_path, labels, method):
    patches = np.random.default_rng(0).integers(0, 256, (len(labels), 16, 16), np.uint8)
    np.savez(tmp_path / "train.npz", patches=patches, labels=labels)
    arguments = ["learn", "patches", str(tmp_path / "train.npz"), "--method", method]
    model = tmp_path / "m.safetensors"
    try:
        make_app(["learn"])([*arguments, "-o", str(model)], standalone_mode=False)
    except ValueError:
        assert not model.exists()
        return
    others = np.random.default_rng(1).integers(0, 256, (9, 16, 16), np.uint8)
    lengths = np.linalg.norm(load_model(model).transform(others), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-3)


def test_heads_that_make_no_unit_vectors_are_not_written(tmp_path):
    mkd = MKD("cartesian", 16)
    dims = mkd.transform(np.zeros((1, 16, 16), np.uint8)).shape[1]
    head = Head((Affine(np.zeros((dims, 8), np.float32)), L2()))
    with pytest.raises(ValueError, match="makes descriptors of length 0, expected 1"):
        save_model(MKD("cartesian", 16, head=head), tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_python_is_told_the_same():
    patches = np.zeros((3, 16, 16), np.uint8)
    block = TrainingBlock(patches, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="got 3 patches of 1 labels"):
        learn_model([block], MKD("cartesian", 16))
