"""The fused kernels against plain operations: in Triton's interpreter, which needs no GPU.

What a GPU makes of them, and how fast, is measured in benchmarks/gpu.py.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from mkdesc.compute.torch.fused import make_fused
from mkdesc.compute.torch.matrices import make_matrices
from mkdesc.kernels.gradients import gradients, second_order
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.kernels.preparation import PAPER, STANDARD

pytest.importorskip("triton")

SCRIPT = """
import json, sys
import numpy as np, torch
from mkdesc.compute.torch.fused import make_fused
from mkdesc import MKD
from mkdesc.evaluation.speed import textured_patches
from mkdesc.heads.head import L2, Affine, Head, Power
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.models import bundled_models
from mkdesc.torch import MKDescriptor

def two_squares():
    rng = np.random.default_rng(0)
    dims = 2 * as_parametrization("extended-fine").dims
    affine = Affine(rng.normal(size=(dims, 16)), rng.normal(size=dims) / 30)
    head = Head((Power(0.75), L2(), affine, L2()))
    return MKD("extended-fine", 24, head=head, side=(14, 40))

found = {}
for name, size, kind in json.loads(sys.argv[1]):
    patches = textured_patches(4, size)
    patches[1, : size // 2] = 200  # flat above
    patches[2] = 9
    patches = torch.from_numpy(patches)
    patches = patches if kind == "uint8" else patches.float() / 300 + 0.1
    raw = name not in bundled_models()
    if name == "two squares":
        descriptor = MKDescriptor(two_squares())
    elif raw:
        descriptor = MKDescriptor(parametrization=name, patch_size=size)
    else:
        descriptor = MKDescriptor(name)
    k = descriptor.squares
    fused = make_fused(descriptor.parametrization, size, torch.device("cpu"))
    with torch.inference_mode():
        plain = descriptor(patches.view(-1, k, size, size))
        single = fused.describe(patches, descriptor.head, torch.float32, k)
        half = fused.describe(patches, descriptor.half().head, torch.float16, k).float()
    found[f"{name} {size} {kind}"] = (
        float((single - plain).abs().max()),
        float(torch.cosine_similarity(plain, half).min()),
    )
print(json.dumps(found))
"""


def interpret(cases):
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(cases)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_kernels_agree_with_plain_operations():
    found = interpret(
        [
            ("extended", 64, "uint8"),
            ("extended", 64, "float32"),
            ("extended-net", 32, "uint8"),
            ("extended", 32, "float32"),
            ("photo", 24, "uint8"),
            ("photo", 24, "float32"),
            ("extended-fine", 24, "float32"),
            ("two squares", 24, "uint8"),
            ("paper-32px", 32, "uint8"),
            ("paper-32px", 32, "float32"),
            ("standard: x(3,2)*y(8,1)*theta(8,2)*intensity(1)+x(3,1)*theta(8,1)", 96, "uint8"),
            ("rho(8,2)*relative_theta(8,2)", 40, "uint8"),
        ]
    )
    assert len(found) == 12
    for case, (difference, cosine) in found.items():
        assert difference < 2e-3, case
        assert cosine > 0.9999, case


@pytest.mark.parametrize(
    "spec",
    [
        "theta(8,4)",  # four harmonics
        "standard: rho(8,2)*theta(8,3)",  # no functions of x and of y
        "standard: x(8,5)*theta(8,3)",  # eleven functions
        "phi(8,4)*rho(8,4)*relative_theta(8,2)",  # more than 64 functions
    ],
)
def test_others_are_left_to_plain_operations(spec):
    assert make_fused(as_parametrization(spec), 64, torch.device("cpu")) is None


@pytest.mark.parametrize(("preparation", "size"), [(PAPER, 64), (STANDARD, 32)])
def test_matrices_are_what_the_definition_does(rng, preparation, size):
    image = rng.random((size, size))
    smooth, slope, bend, slope_of_pixels = make_matrices(preparation.taps(size), size)
    blurred = smooth @ image @ smooth.T
    if not preparation.standardise:
        np.testing.assert_allclose(blurred, preparation.prepare(image), atol=1e-12)
    across, down = np.zeros((size, size)), np.zeros((size, size))
    across[:, :-1], down[:-1] = -np.diff(image, axis=1), -np.diff(image, axis=0)
    gx, gy = gradients(blurred)
    np.testing.assert_allclose(smooth @ across @ slope.T, gx, atol=1e-12)
    np.testing.assert_allclose(slope @ down @ smooth.T, gy, atol=1e-12)
    xx, yy = smooth @ across @ bend.T, bend @ down @ smooth.T
    blob, ridge, saddle = second_order(blurred)
    np.testing.assert_allclose(xx + yy, blob, atol=1e-12)
    np.testing.assert_allclose(xx - yy, ridge, atol=1e-12)
    xy = slope_of_pixels @ image @ slope_of_pixels.T
    np.testing.assert_allclose(xy / 2, saddle, atol=1e-12)
