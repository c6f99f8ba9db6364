"""Which patches HPatches compares: lists read from the official files, or drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc.datasets.hpatches.layout import HPatches
from mkdesc.datasets.text_files import line_of_row, read_records

#: Sizes of the published lists.
PAIRS, QUERIES, DISTRACTORS = 1_000_000, 10_000, 20_000
#: Pairs per patch, in the published lists about: smaller sets get shorter lists, as dense.
PAIRS_PER_PATCH = 20
#: The public generator draws the two images of a pair from the reference and the next four.
IMAGES_DRAWN = 5
#: Queries and distractors must vary: standard deviation of the reference patch, in gray levels.
LEAST_DEVIATION = 10.0

_PAIR: tuple[str, ...] = ("s1", "t1", "idx1", "s2", "t2", "idx2")
_ROW = ("s", "idx")

Table = NDArray[np.int32]


@dataclass(frozen=True)
class VerificationTask:
    """Pairs of patches to verify.

    Attributes
    ----------
    sequences
        Names; the tables hold indices into them.
    positives, intra, inter
        Shape (M, 6): sequence, image (0: the reference, 1 .. 5) and patch, twice. The pairs of
        ``positives`` show the same patch, those of ``intra`` two patches of one sequence, those
        of ``inter`` patches of two sequences.
    """

    sequences: tuple[str, ...]
    positives: Table
    intra: Table
    inter: Table


@dataclass(frozen=True)
class RetrievalTask:
    """Patches to retrieve, and patches to be told apart from them.

    Attributes
    ----------
    sequences
        Names; the tables hold indices into them.
    queries, distractors
        Shape (M, 2): sequence and patch; all of the reference image.
    """

    sequences: tuple[str, ...]
    queries: Table
    distractors: Table


def read_verification(
    folder: str | Path, split: str, counts: Mapping[str, int]
) -> VerificationTask:
    """Read ``verif_{pos,neg_intra,neg_inter}_split-{split}.csv`` of the official tasks.

    Parameters
    ----------
    folder
        Where the files are.
    split
        Name of the split.
    counts
        Number of patches of the sequences that may occur, by name.
    """
    names = tuple(counts)
    tables = [
        _read(Path(folder) / f"verif_{kind}_split-{split}.csv", _PAIR, names, counts)
        for kind in ("pos", "neg_intra", "neg_inter")
    ]
    return VerificationTask(names, *tables)


def read_retrieval(folder: str | Path, split: str, counts: Mapping[str, int]) -> RetrievalTask:
    """Read ``retr_{queries,distractors}_split-{split}.csv`` of the official tasks.

    The parameters are those of :func:`read_verification`.
    """
    names = tuple(counts)
    tables = [
        _read(Path(folder) / f"retr_{kind}_split-{split}.csv", _ROW, names, counts)
        for kind in ("queries", "distractors")
    ]
    return RetrievalTask(names, *tables)


def _read(
    path: Path, header: tuple[str, ...], names: tuple[str, ...], counts: Mapping[str, int]
) -> Table:
    """A file of patches, checked against the sequences there are."""
    kinds = [str if name.startswith("s") else int for name in header]
    encoded = np.array([name.encode() for name in names])
    # One byte more than the longest name: longer names are cut, but never to a known one.
    rows = read_records(path, header, kinds, encoded.itemsize + 1)
    order = np.argsort(encoded)
    ranked = encoded[order]
    lengths = np.array([counts[name] for name in names])
    table = np.empty((len(rows), len(header)), np.int32)

    def refuse(bad: NDArray[np.bool_], what: str, column: str) -> None:
        if bad.any():
            row = int(bad.argmax())
            value = rows[column][row]
            shown = value.decode(errors="replace") if isinstance(value, bytes) else int(value)
            raise ValueError(
                f"{path}, line {line_of_row(path, row, 1)}: expected {what} in column "
                f"{column}, got {shown!r}"
            )

    for column, name in enumerate(header):
        values = rows[name]
        if name.startswith("s"):
            position = np.minimum(np.searchsorted(ranked, values), len(names) - 1)
            refuse(ranked[position] != values, "a sequence of this split", name)
            table[:, column] = order[position]
        elif name.startswith("t"):
            refuse((values < 0) | (values > 5), "an image from 0 to 5", name)
            table[:, column] = values
        else:
            owner = table[:, 0 if column < 3 else 3]
            beyond = (values < 0) | (values >= lengths[owner])
            refuse(beyond, "a patch that its sequence has", name)
            table[:, column] = values
    return table


def draw_verification(
    counts: Mapping[str, int], seed: int = 42, pairs: int | None = None
) -> VerificationTask:
    """Draw pairs as the official ones were drawn.

    A sequence uniformly, a patch in it uniformly, and two different images of the reference and
    the next four (the fifth is never drawn by the public generator either): the same patch in
    both is a positive pair, another patch of the sequence in the second makes an intra negative,
    any patch of another sequence an inter negative. (The public generator does not keep the other
    sequence from being the same one.)

    Parameters
    ----------
    counts
        Number of patches by sequence.
    seed
        The same seed, the same pairs.
    pairs
        Number of pairs of each kind; by default a million, or 20 per patch if that is less (the
        published lists of split a have 19 per patch).

    Examples
    --------
    >>> task = draw_verification({"i_dome": 30, "v_wall": 40}, pairs=10)
    >>> task.positives.shape, task.inter.shape
    ((10, 6), (10, 6))
    """
    names, size = tuple(counts), np.array(list(counts.values()))
    if len(names) < 2 or size.min() < 2:
        raise ValueError(
            f"counts: expected two sequences of two patches at least, got {dict(counts)}"
        )
    number = min(PAIRS, PAIRS_PER_PATCH * int(size.sum())) if pairs is None else pairs
    if number < 1:
        raise ValueError(f"pairs: expected at least 1, got {number}")
    rng = np.random.default_rng(seed)
    sequence = rng.integers(len(names), size=number)
    patch = rng.integers(size[sequence])
    another = (patch + rng.integers(1, size[sequence])) % size[sequence]
    image = rng.integers(IMAGES_DRAWN, size=number)
    other_image = (image + rng.integers(1, IMAGES_DRAWN, size=number)) % IMAGES_DRAWN
    elsewhere = (sequence + rng.integers(1, len(names), size=number)) % len(names)
    foreign = rng.integers(size[elsewhere])

    def table(second: NDArray[np.int64], index: NDArray[np.int64]) -> Table:
        columns = [sequence, image, patch, second, other_image, index]
        return np.stack(columns, axis=1).astype(np.int32)

    return VerificationTask(
        names, table(sequence, patch), table(sequence, another), table(elsewhere, foreign)
    )


def textured_patches(patches: HPatches, names: tuple[str, ...]) -> dict[str, NDArray[np.bool_]]:
    """Which reference patches vary enough to be asked for: standard deviation over 10 of 255."""
    textured = {}
    for name in names:
        reference = patches[name].read("ref")
        textured[name] = reference.std(axis=(1, 2), dtype=np.float32) > LEAST_DEVIATION
    return textured


def draw_retrieval(
    textured: Mapping[str, NDArray[np.bool_]],
    seed: int = 42,
    queries: int | None = None,
    distractors: int | None = None,
) -> RetrievalTask:
    """Draw queries and distractors as the official ones were drawn.

    A sequence uniformly, then one of its reference patches uniformly, again and again, leaving
    out those without texture and those drawn before; no patch is both query and distractor.

    Parameters
    ----------
    textured
        For each sequence, which of its patches may be drawn: see :func:`textured_patches`.
    seed
        The same seed, the same lists.
    queries, distractors
        How many; by default 10,000 and 20,000, but at most a fifth and two fifths of the patches
        that may be drawn (about what the published lists take of split a).

    Examples
    --------
    >>> textured = {"i_dome": np.ones(30, bool), "v_wall": np.ones(40, bool)}
    >>> task = draw_retrieval(textured)
    >>> len(task.queries), len(task.distractors)
    (14, 28)
    """
    names = tuple(textured)
    usable = [np.flatnonzero(textured[name]) for name in names]
    total = sum(map(len, usable))
    n_queries = min(QUERIES, total // 5) if queries is None else queries
    n_distractors = min(DISTRACTORS, 2 * total // 5) if distractors is None else distractors
    if sum(len(patches) > 0 for patches in usable) < 2:
        raise ValueError("textured: expected patches with texture in two sequences at least")
    if min(n_queries, n_distractors) < 1 or n_queries + n_distractors > total:
        raise ValueError(
            f"queries, distractors: expected at least one of each and {total} in all at most, "
            f"got {n_queries} and {n_distractors}"
        )
    rng = np.random.default_rng(seed)
    # Drawing sequence after sequence until a patch is new is, for each sequence, going through
    # its patches in random order; a sequence whose patches are used up is passed over.
    shuffled = [rng.permutation(patches) for patches in usable]
    used = np.zeros(len(names), np.int64)
    left = np.array([len(patches) for patches in usable])
    rows: list[Table] = []
    missing = n_queries + n_distractors
    while missing:
        for sequence in rng.choice(np.flatnonzero(left), missing):
            if left[sequence]:
                patch = shuffled[sequence][used[sequence]]
                rows.append(np.array([sequence, patch], np.int32))
                used[sequence] += 1
                left[sequence] -= 1
                missing -= 1
    table = np.stack(rows)
    return RetrievalTask(names, table[:n_queries], table[n_queries:])
