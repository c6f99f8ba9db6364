"""Models to save and to spoil."""

import numpy as np
import pytest

from mkdesc import MKD
from mkdesc.heads.head import L2, Affine, Head, Power, Relu
from mkdesc.heads.whitening import Whitening
from mkdesc.models import save_model


@pytest.fixture
def patches(rng):
    return rng.integers(0, 256, (200, 16, 16), np.uint8)


@pytest.fixture
def mkd(patches):
    labels = np.repeat(np.arange(100), 2)
    raw = MKD("cartesian", 16)
    whitening = Whitening("gda", 8, ridge=1e-3).fit(raw.transform(patches), labels)
    return MKD("cartesian", 16, whitening)


@pytest.fixture
def path(tmp_path, mkd):
    path = tmp_path / "model.safetensors"
    save_model(mkd.set_params(side=24), path, {"source": "noise", "points": 100})
    return path


@pytest.fixture
def hidden(rng):
    """A descriptor with a hidden layer beside its projection."""
    both = Affine(rng.normal(size=(63, 20)), rng.normal(size=63) / 9, rng.normal(size=20) / 9)
    down = Affine(rng.normal(size=(20, 6)), offset=rng.normal(size=6))
    head = Head((Power(0.7), L2(), both, Relu(8), down, L2()))
    return MKD("cartesian", 16, head=head)
