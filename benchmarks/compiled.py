"""``torch.compile`` of a model with a descriptor in it: does it end, and is it the same?

``python benchmarks/compiled.py --device cuda``. On CUDA the descriptor is left as it is
(``torch.compiler.disable``), so that only what is around it is compiled.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

from mkdesc.torch import MKDescriptor


def main() -> None:
    """Compile, with gradients and without, and compare."""
    parser = argparse.ArgumentParser(prog="compiled", description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="extended")
    options = parser.parse_args()
    torch.manual_seed(0)
    descriptor = MKDescriptor(options.model)
    model = nn.Sequential(descriptor, nn.Linear(descriptor.out_dims, 32)).to(options.device)
    size = descriptor.patch_size
    patches = torch.rand(256, 1, size, size, device=options.device)
    for learns in (False, True):
        descriptor.head.requires_grad_(learns)
        with torch.set_grad_enabled(learns):
            expected = model(patches)
            start = time.perf_counter()
            found = torch.compile(model)(patches)
            if learns:
                found.sum().backward()
            seconds = time.perf_counter() - start
        difference = float((found - expected).abs().max())
        print(f"{options.device}, gradients {learns}: {seconds:.1f} s, off by {difference:.1e}")


if __name__ == "__main__":
    main()
