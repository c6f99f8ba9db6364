"""Train a head end to end in PyTorch: patches of one place, changed, must find each other again.

    python examples/train_head.py [PHOTOS] [-o head.safetensors]

Without photographs it trains on textures, which shows that it runs and nothing else. With a GPU it
is used. What comes out is a model file like any other: `mkdesc describe --model head.safetensors`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from mkdesc import as_parametrization, save_model
from mkdesc.evaluation.speed import textured_patches
from mkdesc.heads import L2, Affine, Head, Power, Relu
from mkdesc.torch import MKDescriptor


def cut(photos: Path) -> torch.Tensor:
    """Patches (N, 64, 64) around keypoints of photographs."""
    from mkdesc.images import cut_patches, make_detector, read_gray

    detector = make_detector("sift")
    patches = []
    for file in sorted(photos.glob("*.jpg")):
        gray = read_gray(file)
        patches.append(cut_patches(gray, detector.detect(gray).strongest(500), 64, 20))
    return torch.from_numpy(np.concatenate(patches))


def changed(patches: torch.Tensor) -> torch.Tensor:
    """Patches seen again: turned, moved and scaled a little, with noise."""
    n, device = len(patches), patches.device
    turn, zoom = (
        0.15 * torch.randn(n, device=device),
        torch.exp(0.1 * torch.randn(n, device=device)),
    )
    c, s = zoom * turn.cos(), zoom * turn.sin()
    shift = 0.05 * torch.randn(n, 2, device=device)
    maps = torch.stack([torch.stack([c, -s], 1), torch.stack([s, c], 1)], 1)
    grid = torch.nn.functional.affine_grid(
        torch.cat([maps, shift[..., None]], 2), [n, 1, 64, 64], align_corners=False
    )
    floats = patches[:, None].float() / 255
    seen = torch.nn.functional.grid_sample(
        floats, grid, padding_mode="border", align_corners=False
    )
    return seen[:, 0] + 0.02 * torch.randn_like(seen[:, 0])


def new_head(dims: int, hidden: int = 256, out: int = 128) -> Head:
    """A projection, and beside it a hidden layer; both end in the same numbers."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=(dims, out + hidden)).astype(np.float32) / np.sqrt(dims)
    second = np.concatenate([np.eye(out), 0.01 * rng.normal(size=(hidden, out))])
    second = second.astype(np.float32)
    return Head((Power(0.75), L2(), Affine(first), Relu(out), Affine(second), L2()))


def found_again(a: torch.Tensor, b: torch.Tensor) -> float:
    """Share of descriptors whose nearest is their own counterpart."""
    return float(((a @ b.T).argmax(1) == torch.arange(len(a), device=a.device)).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path, default=Path("head.safetensors"))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    patches = (
        torch.from_numpy(textured_patches(4000, 64))
        if options.photos is None
        else cut(options.photos)
    )
    patches = patches[torch.randperm(len(patches))].to(device)
    held, patches = patches[:500], patches[500:]

    head = new_head(as_parametrization("extended").dims)
    descriptor = MKDescriptor(parametrization="extended", patch_size=64, head=head).to(device)
    descriptor.head.requires_grad_()
    optimiser = torch.optim.Adam(descriptor.head.parameters(), 1e-3)
    again = changed(held)
    for step in range(options.steps + 1):
        if step % 50 == 0:
            with torch.inference_mode():
                share = found_again(descriptor(held), descriptor(again))
            print(f"step {step}: {share:.1%} of held-out patches are found again")
        batch = patches[torch.randint(len(patches), (options.batch,), device=device)]
        a, b = descriptor(changed(batch)), descriptor(changed(batch))
        # Each must be nearer to its counterpart than to all others.
        loss = torch.nn.functional.cross_entropy(20 * a @ b.T, torch.arange(len(a), device=device))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    save_model(descriptor.cpu().to_mkd(), options.output)
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
