"""Work on one and on two workers, beside two threads: seconds, patches a second, memory.

    python benchmarks/cluster.py describe --patches 400000
    python benchmarks/cluster.py learn --patches 10000000

``describe`` writes random patches to a file and describes them with two threads, with local:1 and
with local:2, and compares the bytes. ``learn`` makes patches on the workers, describes them and
learns a whitening of them, so that nothing but sums is kept.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mkdesc import MKD, Whitening
from mkdesc._support.cluster import connect
from mkdesc._support.installed import versions
from mkdesc.batches import describe_file
from mkdesc.learn import TrainingBlock, learn_shards

app = typer.Typer()


@dataclass(frozen=True)
class Synthetic:
    """Points that are sums of random waves, four views each: shifted, with noise."""

    number: int
    points: int
    side: int = 32
    size: int = 1

    def blocks(self):
        for block in range(-(-self.points // 2048)):
            rng = np.random.default_rng([self.number, block])
            n = min(2048, self.points - 2048 * block)
            first = self.number * self.points + 2048 * block
            labels = np.repeat(np.arange(first, first + n), 4)
            yield TrainingBlock(_waves(rng, n, self.side), labels)


def _waves(rng: np.random.Generator, n: int, side: int) -> np.ndarray:
    """Patches (4 n, side, side) of n points."""
    t = np.arange(side, dtype=np.float32)
    x = np.zeros((n, 4, side), np.complex64)
    total = np.zeros((n, 4, side, side), np.float32)
    for _ in range(3):
        kx, ky = rng.normal(0, 0.35, (2, n, 1)).astype(np.float32)
        phase = rng.uniform(0, 6.28, (n, 1)) + rng.normal(0, 0.2, (n, 4))
        x = np.exp(1j * (kx[..., None] * t + phase[..., None])).astype(np.complex64)
        y = np.exp(1j * (ky[..., None] * t)).astype(np.complex64)
        total += (x[:, :, None, :] * np.broadcast_to(y, (n, 4, side))[..., None]).real
    total += rng.standard_normal(total.shape, np.float32) * 0.15
    return (128 + 30 * total).clip(0, 255).astype(np.uint8).reshape(-1, side, side)


def _peak(cluster: Any) -> dict[str, int]:
    """The most memory that each worker has had, in MB."""
    found = cluster.client.run(_own_peak)
    return {str(worker): peak for worker, peak in found.items()}


def _own_peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@app.command()
def describe(
    patches: Annotated[int, typer.Option(help="How many, of 64 px.")] = 400_000,
    rounds: Annotated[int, typer.Option(help="How often each, in turns.")] = 3,
) -> None:
    """Two threads, one worker and two workers, the same bytes."""
    print(versions())
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "patches.npy"
        shape = (patches, 64, 64)
        array = np.lib.format.open_memmap(source, "w+", np.uint8, shape)
        rng = np.random.default_rng(0)
        for first in range(0, patches, 8192):
            array[first : first + 8192] = rng.integers(
                0, 256, array[first : first + 8192].shape, np.uint8
            )
        array.flush()
        seconds: dict[str, list[float]] = {"two threads": [], "local:1": [], "local:2": []}
        expected = None
        for _ in range(rounds):
            for name in rng.permutation(list(seconds)):
                out = Path(folder) / f"{name.replace(':', '-')}.npy"
                if name == "two threads":
                    start = time.perf_counter()
                    describe_file(source, out, "extended", workers=2)
                    seconds[name].append(time.perf_counter() - start)
                else:
                    with connect(name) as cluster:
                        start = time.perf_counter()
                        describe_file(source, out, "extended", workers=cluster)
                        seconds[name].append(time.perf_counter() - start)
                found = out.read_bytes()
                expected = expected or found
                print(f"{name}: {seconds[name][-1]:.1f} s, same bytes: {found == expected}")
                out.unlink()
    for name, took in seconds.items():
        middle = float(np.median(took))
        print(f"{name}: median {middle:.1f} s, {patches / middle:,.0f} patches a second")


@app.command()
def learn(
    patches: Annotated[int, typer.Option(help="How many, of 32 px.")] = 10_000_000,
    address: Annotated[str, typer.Option(help="As for --cluster.")] = "local:2",
    shard: Annotated[int, typer.Option(help="Patches of a shard.")] = 32_768,
) -> None:
    """Describe and learn from patches that are made where they are described."""
    print(versions())
    points = shard // 4
    shards = [Synthetic(number, points) for number in range(-(-patches // shard))]
    with tempfile.TemporaryDirectory() as folder, connect(address) as cluster:
        start = time.perf_counter()
        learned = learn_shards(
            shards,
            MKD(patch_size=32),
            Whitening("gda", 128, power=0.75),
            patches,
            cluster,
            Path(folder) / "parts",
            _tell(start),
        )
        seconds = time.perf_counter() - start
        print("\n".join(learned.report.lines()))
        print(f"{learned.report.patches / seconds:,.0f} patches a second")
        print("\n".join(cluster.lines(seconds)))
        print("most memory, MB:", _peak(cluster))


def _tell(start: float):
    def tell(what: str, done: int, total: int) -> None:
        if done % 32 == 0:
            print(f"{what}: {done} of {total}, {time.perf_counter() - start:.0f} s", flush=True)

    return tell


if __name__ == "__main__":
    app()
