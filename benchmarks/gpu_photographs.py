"""Photographs per second on a GPU, and matching of their features: part of benchmarks/gpu.py."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from mkdesc.torch import Features, match_descriptors

#: Height and width of the photographs, keypoints of each, and photographs at a time.
SIZE, KEYPOINTS, BATCH = (816, 1224), 2000, 16
#: Milliseconds of calls that are measured, and that warm up.
MEASURED, WARM_UP = 400, 100


class Rate(NamedTuple):
    """So many per second: median and quartiles of the calls."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:12,.0f}   {self.low:12,.0f} {self.high:12,.0f}"


def rate(run: Callable[[], Any], n: int, measured: float = MEASURED) -> Rate:
    """How many things per second calls do that do n of them each, by events of the GPU."""

    def one() -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    spent = 0.0
    while spent < WARM_UP:
        spent += one()
    times: list[float] = []
    while sum(times) < measured or len(times) < 5:
        times.append(one())
    low, middle, high = statistics.quantiles([1e3 * n / ms for ms in times], n=4)
    return Rate(middle, low, high)


def graphed(run: Callable[[], Any]) -> Callable[[], None]:
    """The same work as one CUDA graph; refused by CUDA if anything in it waits for the device."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def photographs(folder: Path | None) -> torch.Tensor:
    """Photographs (16, 1, 816, 1224) uint8: from files, cut or mirrored to this size, or made."""
    from mkdesc.images.demo import photograph
    from mkdesc.images.reading import read_gray

    files = sorted(folder.glob("*.jpg")) if folder else []
    grays = [read_gray(file) for file in files[:BATCH]] or [photograph()]
    ready = []
    for number in range(BATCH):
        gray = grays[number % len(grays)]
        down, across = (max(0, want - have) for want, have in zip(SIZE, gray.shape, strict=True))
        gray = np.pad(gray, ((0, down), (0, across)), mode="symmetric")[: SIZE[0], : SIZE[1]]
        turn = number // len(grays)
        ready.append(np.roll(gray, 37 * turn, axis=1)[:, :: 1 - 2 * (turn % 2)])
    return torch.from_numpy(np.stack(ready)[:, None].copy()).cuda()


def agreement(images: torch.Tensor) -> Iterator[str]:
    """Features of two photographs against those of the compiled code on the CPU."""
    import mkdesc

    for model in ("photo", "photo-net"):
        found = Features(max_keypoints=KEYPOINTS, model=model).cuda()(images[:2])
        for k in range(2):
            keypoints, wanted = mkdesc.Features(KEYPOINTS, model=model).extract(
                images[k, 0].cpu().numpy()
            )
            points, _, descriptors = (each.cpu().numpy() for each in found.of(k))
            away = np.linalg.norm(points[:, None, :2] - keypoints.points[None, :, :2], axis=2)
            which, near = away.argmin(1), away.min(1) < 0.1
            turned = np.abs((points[:, 3] - keypoints.points[which, 3] + 180) % 360 - 180)
            cosine = (descriptors * wanted[which]).sum(1)[near]
            yield (
                f"{model}: {len(points)} and {len(keypoints)} keypoints, "
                f"{near.mean():.2%} within 0.1 px, {(near & (turned < 1)).mean():.2%} and "
                f"1 degree, cosines {np.median(cosine):.5f} (1%: "
                f"{np.quantile(cosine, 0.01):.5f})"
            )


def profile(images: torch.Tensor) -> None:
    """Where the time goes, by kernel."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    features = Features(max_keypoints=KEYPOINTS, model="photo").cuda()
    features(images)
    torch.cuda.synchronize()
    with record(activities=[ProfilerActivity.CUDA]) as found:
        features(images)
    rows = sorted(found.key_averages(), key=lambda row: -row.device_time_total)
    total = sum(row.device_time_total for row in rows)
    print(f"\n{total / len(images):.0f} us per photograph")
    for row in rows[:10]:
        each = row.device_time_total / len(images)
        print(f"  {row.device_time_total / total:6.1%}  {each:7.1f} us  {row.key[:80]}")


def extraction(images: torch.Tensor) -> Iterator[tuple[str, Rate]]:
    """Photographs per second, from pixels in the memory of the GPU to descriptors there."""
    for model in ("photo", "photo-net"):
        for half in (False, True):
            features = Features(max_keypoints=KEYPOINTS, model=model).cuda()
            features = features.half() if half else features
            name = f"{model}{', half' if half else ''}"
            yield name, rate(lambda f=features: f(images), len(images))
            yield f"{name}, one graph", rate(graphed(lambda f=features: f(images)), len(images))
    features = Features("learned", KEYPOINTS, "photo").cuda()
    one = images[:1]
    yield "photo, one at a time", rate(lambda: features(one), 1)
    yield "photo, one at a time, one graph", rate(graphed(lambda: features(one)), 1)


def matching(images: torch.Tensor) -> Iterator[tuple[str, Rate]]:
    """Pairs of photographs per second, mutual nearest neighbours with a ratio test."""
    features = Features("learned", KEYPOINTS, "photo").cuda()
    found = features(images)
    a = found.descriptors.repeat(4, 1, 1)
    b, counts = a.roll(1, 0), found.counts.repeat(4)
    kinds = {
        "float32": (a, b, False),
        "compared in half": (a.half(), b.half(), True),
        "uint8": (*((256 * x + 128).round().clamp(0, 255).byte() for x in (a, b)), False),
    }
    for name, (x, y, half) in kinds.items():

        def match(x: Any = x, y: Any = y, half: bool = half) -> Any:
            return match_descriptors(x, y, counts, counts, ratio=0.95, half=half)

        yield f"matching 2,000 x 2,000, {name}", rate(match, len(a))
    many = torch.nn.functional.normalize(torch.randn(2, 1, 10_000, 128, device="cuda"), dim=-1)
    for name, half in (("float32", False), ("compared in half", True)):
        yield (
            f"matching 10,000 x 10,000, {name}",
            rate(lambda half=half: match_descriptors(*many, ratio=0.95, half=half), 1),
        )


def peers(images: torch.Tensor, weights: Path | None) -> Iterator[tuple[str, Rate]]:
    """kornia's, one photograph at a time, with random weights unless there is a file of them."""
    from kornia import feature as kornia

    one = images[:1].float() / 255
    sift = kornia.SIFTFeature(KEYPOINTS).cuda().eval()
    yield "kornia SIFTFeature", rate(lambda: sift(one), 1)
    keynet = kornia.KeyNetDetector(False, KEYPOINTS).cuda().eval()
    hardnet = kornia.LAFDescriptor(kornia.HardNet(False)).cuda().eval()
    yield "kornia KeyNet and HardNet", rate(lambda: hardnet(one, keynet(one)[0]), 1)
    aliked = kornia.ALIKED("aliked-n16", max_num_keypoints=KEYPOINTS, detection_threshold=-1)
    if weights is not None:
        from safetensors.torch import load_file

        aliked.load_state_dict(load_file(weights), strict=False)
    aliked = aliked.cuda().eval()
    colour = one.expand(-1, 3, -1, -1).contiguous()
    yield "kornia ALIKED n16", rate(lambda: aliked(colour), 1)


def from_files(folder: Path, count: int, threads: int = 16) -> tuple[float, float]:
    """JPEG files per second: features written to a folder, and files that are only decoded."""
    from concurrent.futures import ThreadPoolExecutor

    from mkdesc.features.folder import extract_features
    from mkdesc.features.settings import Settings
    from mkdesc.images.reading import read_gray

    files = sorted(folder.glob("*.jpg"))
    with tempfile.TemporaryDirectory() as place:
        many = {}
        for number in range(count):
            many[f"{number:05d}.jpg"] = Path(place) / f"{number:05d}.jpg"
            many[f"{number:05d}.jpg"].write_bytes(files[number % len(files)].read_bytes())
        settings = Settings(max_keypoints=KEYPOINTS, output="uint8")

        def extract(names: list[str]) -> None:
            some = {name: many[name] for name in names}
            extract_features(
                some, Path(place) / "out", settings=settings, workers=threads, device="cuda"
            )

        names = list(many)
        extract(names[:64])
        start = time.perf_counter()
        extract(names)
        written = (count - 64) / (time.perf_counter() - start)
        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda name: read_gray(many[name]), names))
        return written, count / (time.perf_counter() - start)
