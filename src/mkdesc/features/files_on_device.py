"""Files of photographs to features on a device: decoding, the device and writing overlap."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mkdesc.features.features_torch import BATCH, Features, PaddedFeatures

#: Batches that are under way on the device, and images that may wait for others of their size.
UNDER_WAY, WAITING = 2, 4 * BATCH

P = TypeVar("P")


class Photograph(NamedTuple):
    """What was read of a file.

    Attributes
    ----------
    gray
        (H, W) uint8.
    source
        What tells the file from others.
    """

    gray: NDArray[np.uint8]
    source: str


class _Batch(NamedTuple, Generic[P]):
    """Photographs of one size that are under way, and what says that they are done."""

    pieces: list[tuple[int, P, Photograph]]
    pixels: Tensor
    found: PaddedFeatures
    event: Any


class _Device:
    """Two streams of a GPU, by turns; on any other device there are none."""

    def __init__(self, module: Features) -> None:
        self.module, self.device = module, module.descriptor.sums.device
        self.on_gpu = self.device.type == "cuda"
        count = UNDER_WAY if self.on_gpu else 0
        self.streams = deque(torch.cuda.Stream(self.device) for _ in range(count))

    def start(self, pieces: list[tuple[int, P, Photograph]]) -> _Batch[P]:
        """Begin with photographs of one size; nothing is waited for."""
        shape = (len(pieces), *pieces[0][2].gray.shape)
        pixels = torch.empty(shape, dtype=torch.uint8, pin_memory=self.on_gpu)
        for row, (_, _, photograph) in zip(pixels.numpy(), pieces, strict=True):
            row[:] = photograph.gray
        self.streams.rotate()
        with torch.cuda.stream(self.streams[0]) if self.on_gpu else nullcontext():
            found = self.module(pixels.to(self.device, non_blocking=True))
            kept = PaddedFeatures._make(map(self._to_host, found))
            event = self.streams[0].record_event() if self.on_gpu else None
        return _Batch(pieces, pixels, kept, event)

    def _to_host(self, tensor: Tensor) -> Tensor:
        if not self.on_gpu:
            return tensor
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return host.copy_(tensor, non_blocking=True)


def describe_files(
    module: Features,
    pieces: Sequence[P],
    read: Callable[[P], Photograph],
    save: Callable[[P, Photograph, tuple[NDArray[Any], ...]], None],
    threads: int,
) -> Iterator[tuple[int, str | None]]:
    """Describe files, those of one size together; the number of each and why it could not be.

    Parameters
    ----------
    module
        What detects and describes.
    pieces
        Files.
    read
        Reads one; ValueError or OSError: it is left out.
    save
        Writes points, scores and descriptors of one.
    threads
        That read and write.
    """
    device = _Device(module)
    buckets: dict[tuple[int, ...], list[tuple[int, P, Photograph]]] = {}
    under_way: deque[_Batch[P]] = deque()
    saving: deque[tuple[int, Future[None]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        reading: deque[tuple[int, P, Future[Photograph]]] = deque()

        def finish() -> None:
            batch = under_way.popleft()
            if batch.event is not None:
                batch.event.synchronize()
            for k, (number, piece, photograph) in enumerate(batch.pieces):
                arrays = tuple(each.numpy() for each in batch.found.of(k))
                saving.append((number, pool.submit(save, piece, photograph, arrays)))

        def start(shape: tuple[int, ...]) -> None:
            under_way.append(device.start(buckets.pop(shape)))
            if len(under_way) > UNDER_WAY:
                finish()

        def take() -> tuple[int, str | None] | None:
            number, piece, future = reading.popleft()
            try:
                photograph = future.result()
            except (ValueError, OSError) as error:
                return number, str(error)
            shape = photograph.gray.shape
            buckets.setdefault(shape, []).append((number, piece, photograph))
            if len(buckets[shape]) == BATCH:
                start(shape)
            elif sum(map(len, buckets.values())) >= WAITING:
                start(max(buckets, key=lambda shape: len(buckets[shape])))
            return None

        def saved(most: int) -> Iterator[tuple[int, str | None]]:
            while len(saving) > most:
                number, future = saving.popleft()
                future.result()
                yield number, None

        try:
            for number, piece in enumerate(pieces):
                reading.append((number, piece, pool.submit(read, piece)))
                if len(reading) > 2 * threads:
                    refused = take()
                    if refused is not None:
                        yield refused
                yield from saved(WAITING)
            while reading:
                refused = take()
                if refused is not None:
                    yield refused
            for shape in list(buckets):
                start(shape)
            while under_way:
                finish()
            yield from saved(0)
        finally:  # whoever stops early need not wait for the rest
            for one in reading:
                one[2].cancel()
            for other in saving:
                other[1].cancel()
