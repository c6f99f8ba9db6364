"""Patches, photographs and matches per second on a GPU beside the peers', all in one run.

The tables of docs/torch.md. Patches are uint8 and in the memory of the GPU before, descriptors
stay there; so are photographs, 16 of a megapixel at a time, 2,000 keypoints each. Each number is
the median of many calls, after some that warm up. Fused kernels are held against plain operations
first, and features of photographs against those of the CPU. Peers that are not installed are left
out, and that is said.

    python benchmarks/gpu.py [--photos FOLDER] [--aliked WEIGHTS] [--output results-gpu.json]
        [--only patches|photographs] [--profile]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gpu_photographs
import torch
from gpu_photographs import rate

from mkdesc.evaluation.speed import textured_patches
from mkdesc.torch import MKDescriptor

#: Patches that slow ones get.
FEW = 8192


class Contender(NamedTuple):
    """Something that describes patches (N, 1, W, W) or (N, W, W)."""

    name: str
    module: torch.nn.Module
    patches: torch.Tensor


def patches_on(device: str, n: int, size: int) -> torch.Tensor:
    """Textured patches with a little noise, all different."""
    few = torch.from_numpy(textured_patches(2048, size)).to(device)
    torch.manual_seed(0)
    many = few[torch.randint(len(few), (n,), device=device)]
    for part in many.split(1 << 16):
        noise = torch.randint(-3, 4, part.shape, dtype=torch.int16, device=device)
        part.copy_((part.short() + noise).clamp(0, 255))
    return many


def ours(patches: torch.Tensor) -> Iterator[Contender]:
    small = patches[:, ::2, ::2].contiguous()
    floats = patches[: len(patches) // 4].float() / 255
    for half in (False, True):
        kind = ", half" if half else ""

        def made(descriptor: MKDescriptor, half: bool = half) -> MKDescriptor:
            descriptor = descriptor.to(patches.device).eval()
            return descriptor.half() if half else descriptor

        yield Contender(f"extended{kind}", made(MKDescriptor("extended")), patches)
        yield Contender(f"extended-net{kind}", made(MKDescriptor("extended-net")), patches)
        yield Contender(
            f"paper (the paper's, whitened){kind}", made(MKDescriptor("paper")), patches
        )
        yield Contender(f"extended, 32 px{kind}", made(MKDescriptor("extended")), small)
        yield Contender(f"paper-32px, 32 px{kind}", made(MKDescriptor("paper-32px")), small)
    yield Contender("extended, float32 patches", made(MKDescriptor("extended"), False), floats)
    few = patches[:FEW]
    for name in ("extended", "paper"):
        plain = MKDescriptor(name, fused=False).to(patches.device)
        yield Contender(f"{name}, plain operations", plain, few)


def kornias(patches: torch.Tensor) -> Iterator[Contender]:
    from kornia.feature import HardNet, MKDDescriptor, SIFTDescriptor

    few = patches[:FEW, None].float() / 255
    small = few[:, :, ::2, ::2].contiguous()
    for name, module, these in (
        ("kornia MKDDescriptor, raw", MKDDescriptor(64, whitening=None), few),
        ("kornia SIFTDescriptor", SIFTDescriptor(64), few),
        ("kornia HardNet, 32 px", HardNet(pretrained=False), small),
    ):
        yield Contender(name, module.to(patches.device).eval(), these)


def agreement(patches: torch.Tensor) -> None:
    """Fused kernels against plain operations."""
    for name in ("extended", "extended-net", "paper"):
        plain = MKDescriptor(name, fused=False).to(patches.device)(patches)
        for kind, module in (("single", MKDescriptor(name)), ("half", MKDescriptor(name).half())):
            found = module.to(patches.device)(patches).float()
            cosine = torch.cosine_similarity(plain, found).min()
            most = (plain - found).abs().max()
            print(f"{name}, {kind}: differs by at most {most:.1e}, cosine at least {cosine:.6f}")


def memory(patches: torch.Tensor) -> float:
    """Gigabytes beyond patches and descriptors, at most."""
    descriptor = MKDescriptor("paper").to(patches.device)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out = descriptor(patches)
    return float(torch.cuda.max_memory_allocated() - before - out.nbytes) / 1e9


def profile(patches: torch.Tensor) -> None:
    """Where the time goes, by kernel."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    for name, half in (("extended", False), ("paper", False), ("extended-net", True)):
        descriptor = MKDescriptor(name).to(patches.device)
        descriptor = descriptor.half() if half else descriptor
        descriptor(patches)
        torch.cuda.synchronize()
        with record(activities=[ProfilerActivity.CUDA]) as found:
            descriptor(patches)
        rows = sorted(found.key_averages(), key=lambda row: -row.device_time_total)
        total = sum(row.device_time_total for row in rows)
        print(f"\n{name}")
        for row in rows[:6]:
            share, each = row.device_time_total / total, row.device_time_total / len(patches)
            print(f"  {share:6.1%}  {1e3 * each:6.2f} ns per patch  {row.key[:70]}")


def rates_of_patches(results: dict[str, Any], count: int, profiled: bool) -> None:
    """All about patches."""
    patches = patches_on("cuda", count, 64)
    agreement(patches[:FEW])
    print(f"\n{'patches of 64 px':<44} million/s   (quartiles)")
    for family in (ours, kornias):
        try:
            for name, module, these in family(patches):
                found = rate(lambda m=module, p=these: m(p), len(these))
                results[name] = found._asdict()
                middle, low, high = (each / 1e6 for each in found)
                print(f"{name:<44} {middle:8.2f}   {low:8.2f} {high:8.2f}")
        except ImportError as error:
            print(f"left out: {family.__name__} ({error})")
    results["gigabytes_beyond"] = memory(patches.repeat(8, 1, 1))
    print(f"\nmemory beyond {8 * len(patches):,} patches: {results['gigabytes_beyond']:.2f} GB")
    if profiled:
        profile(patches)


def rates_of_photographs(
    results: dict[str, Any], photos: Path | None, aliked: Path | None, profiled: bool
) -> None:
    """All about photographs and pairs of them."""
    images = gpu_photographs.photographs(photos)
    for line in gpu_photographs.agreement(images):
        print(line)
    print(f"\n{'photographs of a megapixel':<44} per second   (quartiles)")
    families = (
        gpu_photographs.extraction(images),
        gpu_photographs.matching(images),
        gpu_photographs.peers(images, aliked),
    )
    for family in families:
        try:
            for name, found in family:
                results[name] = found._asdict()
                print(f"{name:<44} {found}", flush=True)
        except ImportError as error:
            print(f"left out: {error}")
    if photos is not None:
        written, decoded = gpu_photographs.from_files(photos, 1024)
        results["JPEG files to files of features"] = written
        results["JPEG files, decoded only"] = decoded
        print(f"JPEG files, 16 threads: {written:,.0f} /s to features, {decoded:,.0f} /s decoded")
    if profiled:
        gpu_photographs.profile(images)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patches", type=int, default=1 << 17)
    parser.add_argument("--photos", type=Path, help="folder of JPEG files; default: a made one")
    parser.add_argument("--aliked", type=Path, help="weights of ALIKED n16; default: random")
    parser.add_argument("--only", choices=["patches", "photographs"])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results-gpu.json"))
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    machine = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    print(machine)
    results: dict[str, Any] = {"machine": machine, "patches": {}, "photographs": {}}
    if options.only != "patches":
        given = (options.photos, options.aliked, options.profile)
        rates_of_photographs(results["photographs"], *given)
    if options.only != "photographs":
        rates_of_patches(results["patches"], options.patches, options.profile)
    options.output.write_text(json.dumps(results, indent=2))
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
