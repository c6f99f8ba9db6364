"""Writing a subset in the Phototourism layout, and drawing pairs for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.files import atomic_folder
from mkdesc.datasets.phototourism.layout import PATCH_SIZE, PER_SIDE, Interest
from mkdesc.images.writing import encode_image
from mkdesc.kernels.patches import as_patches


def write_subset(
    folder: str | Path,
    patches: ArrayLike | Iterable[ArrayLike],
    labels: ArrayLike,
    interest: Interest | None = None,
    pairs: Mapping[int, ArrayLike] | None = None,
) -> None:
    """Write a subset: sheets, ``info.txt``, and what else is given.

    The folder appears whole or not at all.

    Parameters
    ----------
    folder
        A folder that does not exist yet, in one that does.
    patches
        uint8 patches (N, 64, 64), or blocks of them, one after another.
    labels
        The 3-D point of every patch, shape (N,), integers.
    interest
        Where the patches come from.
    pairs
        ``{n: (n, 2) indices}``; each becomes a file ``m50_n_n_0.txt``. See :func:`draw_pairs`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "flat"
    >>> write_subset(folder, np.zeros((300, 64, 64), np.uint8), np.arange(300))
    >>> sorted(file.name for file in folder.iterdir())
    ['info.txt', 'patches0000.bmp', 'patches0001.bmp']
    """
    target = Path(folder)
    if target.exists():
        raise ValueError(f"{target}: already exists; write to a new folder")
    if not target.parent.is_dir():
        raise ValueError(f"{target}: the folder {target.parent} does not exist")
    points = np.asarray(labels)
    if points.ndim != 1 or not np.issubdtype(points.dtype, np.integer):
        raise ValueError(
            f"labels: expected integers of shape (N,), got {points.dtype} {points.shape}"
        )
    texts = {"info.txt": "".join(f"{point} 0\n" for point in points.tolist())}
    if interest is not None:
        texts["interest.txt"] = _interest_text(interest, len(points))
    for count, table in (pairs or {}).items():
        texts[f"m50_{count}_{count}_0.txt"] = _pairs_text(count, np.asarray(table), points)
    with atomic_folder(target) as partial:
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
        written = 0
        for number, sheet in enumerate(_as_sheets(patches)):
            written += len(sheet)
            (partial / f"patches{number:04}.bmp").write_bytes(_sheet_image(sheet))
        if written != len(points):
            raise ValueError(f"labels: expected one per patch ({written}), got {len(points)}")


def _as_sheets(patches: ArrayLike | Iterable[ArrayLike]) -> Iterator[NDArray[np.uint8]]:
    """Regroup blocks of patches into sheets, up to 256 patches each."""
    blocks: Iterable[ArrayLike] = [patches] if isinstance(patches, np.ndarray) else patches  # type: ignore[assignment]
    full = PER_SIDE**2
    held: list[NDArray[np.uint8]] = []
    for block in blocks:
        array = as_patches(block)
        if array.dtype != np.uint8 or array.shape[-1] != PATCH_SIZE:
            raise ValueError(
                f"patches: expected uint8 of shape (N, {PATCH_SIZE}, {PATCH_SIZE}), got "
                f"{array.dtype} {array.shape}"
            )
        held.append(array)
        if sum(map(len, held)) >= full:
            joined = np.concatenate(held)
            whole = len(joined) // full * full
            yield from np.split(joined[:whole], whole // full)
            held = [joined[whole:]]
    rest = np.concatenate(held) if held else np.empty((0, PATCH_SIZE, PATCH_SIZE), np.uint8)
    if len(rest):
        yield rest


def _sheet_image(patches: NDArray[np.uint8]) -> bytes:
    sheet = np.zeros((PER_SIDE**2, PATCH_SIZE, PATCH_SIZE), np.uint8)
    sheet[: len(patches)] = patches
    grid = sheet.reshape(PER_SIDE, PER_SIDE, PATCH_SIZE, PATCH_SIZE).swapaxes(1, 2)
    return encode_image(".bmp", grid.reshape(PER_SIDE * PATCH_SIZE, -1))


def _interest_text(interest: Interest, count: int) -> str:
    columns = [np.asarray(column) for column in interest]
    if any(column.shape != (count,) for column in columns):
        raise ValueError(
            f"interest: expected five arrays of shape ({count},), got "
            f"{', '.join(str(column.shape) for column in columns)}"
        )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return "".join(
        f"{image:d} {x:.3f} {y:.3f} {angle:.5f} {scale:.4f}\n"
        for image, x, y, angle, scale in rows
    )


def _pairs_text(count: int, table: NDArray[np.integer], points: NDArray[np.integer]) -> str:
    if table.shape != (count, 2):
        raise ValueError(f"pairs[{count}]: expected shape ({count}, 2), got {table.shape}")
    if count and not (table.min() >= 0 and table.max() < len(points)):
        raise ValueError(
            f"pairs[{count}]: expected indices below {len(points)}, got "
            f"{table.min()}..{table.max()}"
        )
    rows = np.stack([table, points[table]], axis=2).reshape(-1, 4)
    return "".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in rows.tolist())


def draw_pairs(labels: ArrayLike, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Draw ``count`` pairs of patches at random, half of them of the same point.

    Points are drawn uniformly among those with two patches or more, then two of their patches;
    pairs of different points are drawn uniformly from all patches.

    Parameters
    ----------
    labels
        The 3-D point of every patch, shape (N,).
    count
        Even number of pairs.

    Returns
    -------
    ndarray of shape (count, 2), int64
        Indices of patches, matching pairs and others shuffled together.

    Examples
    --------
    >>> pairs = draw_pairs([0, 0, 1, 1, 1], 4)
    >>> pairs.shape
    (4, 2)
    """
    points = np.asarray(labels)
    if count % 2 or count < 0:
        raise ValueError(f"count: expected an even number of pairs, got {count}")
    order = np.argsort(points, kind="stable")
    _, start, size = np.unique(points[order], return_index=True, return_counts=True)
    several = np.flatnonzero(size > 1)
    if len(several) == 0 or len(size) < 2:
        raise ValueError("labels: expected two points, one with two patches, to draw pairs from")
    rng = np.random.default_rng(seed)
    half = count // 2
    point = rng.choice(several, half)
    one = rng.integers(size[point])
    other = (one + rng.integers(1, size[point])) % size[point]
    matching = order[start[point][:, None] + np.stack([one, other], axis=1)]
    different = rng.integers(len(points), size=(half, 2))
    while len(same := np.flatnonzero(points[different[:, 0]] == points[different[:, 1]])):
        different[same] = rng.integers(len(points), size=(len(same), 2))
    pairs: NDArray[np.int64] = rng.permutation(np.concatenate([matching, different]))
    return pairs
