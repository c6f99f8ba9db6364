"""Work on one and on two workers, beside two threads: seconds, patches a second, memory.

    python benchmarks/cluster.py describe --patches 2000000
    python benchmarks/cluster.py features --photos 3000
    python benchmarks/cluster.py pieces
    python benchmarks/cluster.py learn --patches 10000000

``describe`` writes random patches to a file and describes them with two threads, with local:1 and
with local:2, and compares the bytes; ``features`` does the same with photographs of a megapixel.
``learn`` makes patches on the workers, describes them and learns a whitening of them, so that
nothing but sums is kept. What one worker took predicts two, which is held against what they took,
and then what a cluster would take.
"""

from __future__ import annotations

import hashlib
import operator
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mkdesc import MKD, Whitening
from mkdesc._support.cluster import connect
from mkdesc._support.installed import versions
from mkdesc._support.work import Workers, in_order
from mkdesc.batches import describe_file
from mkdesc.features import Settings, extract_to
from mkdesc.learn import TrainingBlock, learn_model

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


#: What is predicted: so many pieces of work on so many machines of so many cores.
MACHINES, CORES = 100, 16


def compare(
    run: Callable[[Path, Workers], None], folder: Path, rounds: int
) -> tuple[dict[str, float], int]:
    """Seconds with two threads, with one and with two workers; bytes that each writes.

    Runs take turns, in random order; seconds are medians.
    """
    took: dict[str, list[float]] = {"two threads": [], "local:1": [], "local:2": []}
    rng = np.random.default_rng(0)
    expected: dict[str, str] = {}
    for _ in range(rounds):
        for name in rng.permutation(list(took)):
            out = folder / "out"
            out.mkdir()
            with nullcontext(2) if name == "two threads" else connect(name) as workers:
                start = time.perf_counter()
                run(out, workers)
                took[name].append(time.perf_counter() - start)
            found = {
                str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest()
                for file in out.rglob("*")
                if file.is_file()
            }
            expected = expected or found
            written = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
            same = "the same bytes" if found == expected else "OTHER BYTES"
            print(f"{name}: {took[name][-1]:.1f} s, {same}", flush=True)
            shutil.rmtree(out)
    return {name: float(np.median(seconds)) for name, seconds in took.items()}, written


def tell(seconds: dict[str, float], written: int, count: int, many: int, read: int) -> None:
    """Print the rates, and what they predict.

    Parameters
    ----------
    seconds, written
        Of :func:`compare`.
    count, many
        How many patches or photographs it were, and how many to predict for.
    read
        Bytes of all of them.
    """
    for name, took in seconds.items():
        print(f"{name}: median {took:.1f} s, {count / took:,.1f} a second")
    one, two = seconds["local:1"], seconds["local:2"]
    print(f"two workers beside two threads: {two / seconds['two threads'] - 1:+.1%} time")
    print(f"one worker predicts {one / 2:.1f} s for two: {two / (one / 2) - 1:+.1%} time")
    rate = count / two / 2
    whole = many / (rate * MACHINES * CORES)
    all_read, all_written = many / count * read, many / count * written
    print(
        f"{many:,} at {rate:,.1f} a second and core on {MACHINES} machines of {CORES} cores: "
        f"{whole / 60:,.1f} minutes; {all_read / 1e12:.2f} TB read, {all_written / 1e12:.2f} TB "
        f"written, by each machine {all_read / whole / MACHINES / 1e6:,.0f} and "
        f"{all_written / whole / MACHINES / 1e6:,.0f} MB/s"
    )


@app.command()
def describe(
    patches: Annotated[int, typer.Option(help="How many, of 64 px.")] = 2_000_000,
    rounds: Annotated[int, typer.Option(help="How often each, in turns.")] = 3,
) -> None:
    """Two threads, one worker and two workers, the same bytes."""
    print(versions())
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "patches.npy"
        array = np.lib.format.open_memmap(source, "w+", np.uint8, (patches, 64, 64))
        rng = np.random.default_rng(0)
        block = rng.integers(0, 256, (8192, 64, 64), np.uint8)
        for first in range(0, patches, 8192):
            array[first : first + 8192] = block[: patches - first] ^ np.uint8(first // 8192)
        array.flush()

        def run(out: Path, workers: Workers) -> None:
            describe_file(source, out / "d.npy", model="extended", workers=workers)

        tell(*compare(run, Path(name), rounds), patches, 10**9, array.nbytes)


@app.command()
def features(
    photos: Annotated[int, typer.Option(help="How many, of a megapixel.")] = 3_000,
    rounds: Annotated[int, typer.Option(help="How often each, in turns.")] = 1,
) -> None:
    """Photographs instead of patches: minutes of work."""
    import cv2

    print(versions())
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "in"
        source.mkdir()
        rng = np.random.default_rng(0)
        for number in range(photos):
            file = source / f"{number:05}.jpg"
            if number >= 50:
                file.hardlink_to(source / f"{number % 50:05}.jpg")
                continue
            noise = cv2.GaussianBlur(rng.random((866, 1155)), (0, 0), 1.5 + number / 25)
            image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX)
            cv2.imwrite(str(file), image.astype(np.uint8))
        read = sum(file.stat().st_size for file in source.iterdir())
        settings = Settings(max_keypoints=2000)

        def run(out: Path, workers: Workers) -> None:
            extract_to([source], out / "features", settings=settings, workers=workers)

        tell(*compare(run, Path(name), rounds), photos, 10**6, read)


@app.command()
def pieces(
    count: Annotated[int, typer.Option(help="How many.")] = 2_000,
    address: Annotated[str, typer.Option(help="As for --cluster.")] = "local:2",
) -> None:
    """How many pieces can be handed out a second, if there is nothing to do in them."""
    with connect(address) as cluster:
        list(in_order(operator.neg, range(50), cluster))
        start = time.perf_counter()
        list(in_order(operator.neg, range(count), cluster))
        print(f"{count / (time.perf_counter() - start):,.0f} pieces a second")


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
        learned = learn_model(
            shards,
            MKD(patch_size=32),
            whitening=Whitening("gda", 128, power=0.75),
            expected=patches,
            workers=cluster,
            parts=Path(folder) / "parts",
            progress=_tell(start),
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
