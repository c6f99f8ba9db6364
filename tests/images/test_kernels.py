"""The kernels of detectors, cutting and matching against plain operations: in Triton's
interpreter, which needs no GPU.

What a GPU makes of them, and how fast, is measured in benchmarks/gpu.py.
"""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

SCRIPT = """
import json
import numpy as np, torch
from mkdesc.images import cutting_points_torch as cutting
from mkdesc.images.detectors import learned_padded_torch as finding
from mkdesc.images.detectors import learned_torch as learned
from mkdesc.images.detectors import padded_torch as padded
from mkdesc.images.detectors.learned_weights import Convolution, Weights
from mkdesc.matching import nearest_torch as nearest

rng = np.random.default_rng(0)
torch.manual_seed(0)
found = {}

def compare(name, module, run):
    results = []
    for kernels in (True, False):
        module.launches = lambda tensor: kernels
        results.append([t.double() for t in run()])
    least = min(float(t.abs().max()) for t in results[1])
    assert least > 0, name
    pairs = zip(*results, strict=True)
    found[name] = max(float((a - b).abs().nan_to_num().max()) for a, b in pairs)

smooth = torch.nn.functional.interpolate(torch.rand(2, 1, 9, 10), scale_factor=4, mode="bicubic")
image = (255 * smooth[:, 0].clamp(0, 1)).to(torch.uint8)[:, :33, :38]
layers, before = [], 1
for out, side in ((3, 3), (9, 1), (1, 3)):
    weight = rng.normal(size=(out, before, side, side)).astype(np.float32)
    layers.append(Convolution(weight, rng.normal(size=out).astype(np.float32)))
    before = out
network = Weights(tuple(layers))
level = image.float() / 255
compare("scores", learned, lambda: [learned.scores_of(level, network)])
learned.launches = lambda tensor: False
scores = [learned.scores_of(level, network), torch.randn(2, 13, 14)]
def maxima():
    values, pixels = learned.cell_maxima(scores)
    there = values > -torch.inf
    return [torch.where(there, values, 0), torch.where(there, pixels, 0)]
compare("maxima", learned, maxima)
made = [level, level[:, ::2, ::2].contiguous()]
table = finding._table_of(made, 2)
places = torch.tensor([[0, 1, 1], [1, 0, 0]]), torch.tensor([[0, 5, 16], [9, 32, 20]])
compare("angles", finding, lambda: [
    finding._angles(made, table, places[0], places[1], torch.tensor([[37, 0, 9], [18, 3, 20]]))
])
x, y = 20 * torch.rand(2, 70), 20 * torch.rand(2, 70)
radius, there = 1 + 2 * torch.rand(2, 70), torch.rand(2, 70) < 0.9
compare("places", padded, lambda: [padded.one_a_place(x, y, radius, there)])

points = torch.tensor([[[5.0, 6, 2, 30], [40, -3, 4, 200]], [[20, 20, 0.5, 0], [9, 30, 1, 77]]])
for kind in (torch.uint8, torch.float32):
    compare(f"cut {kind}", cutting, lambda: [
        cutting.cut_points(image.to(kind), points, 9, (12.0, 20.0))
    ])

a, b = torch.randn(2, 20, 24), torch.randn(2, 140, 24)
a, b = (torch.nn.functional.normalize(z, dim=2) for z in (a, b))
counts = torch.tensor([140, 90])
for kind in (torch.float32, torch.float16):
    compare(f"nearest {kind}", nearest, lambda: nearest.nearest(a.to(kind), b.to(kind), counts))
print(json.dumps(found))
"""


def test_kernels_agree_with_plain_operations():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 8
    for case, difference in found.items():
        # Angles differ by a hundredth of a degree.
        assert difference <= (1 if case == "cut torch.uint8" else 0.01), case
