"""From features of images to their signatures: words, then segments, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.work import Workers, in_order
from mkdesc._support.workfolder import cached_reader
from mkdesc.features.image_features import load_features
from mkdesc.retrieval.codebook import SAMPLES, learn_words, words_for
from mkdesc.retrieval.segments import Entry
from mkdesc.retrieval.signature import make_signature

#: Images that words are learned from, at most.
LEARN = 2000
#: Keypoints of an image that signatures are made of.
STRONGEST = 1000
#: Images of a piece of work.
TOGETHER = 8


def learn_from(folder: Path, names: Sequence[str]) -> NDArray[np.float32]:
    """Visual words (K, D) of a collection.

    Parameters
    ----------
    folder
        What :func:`mkdesc.features.extract_features` wrote.
    names
        Of the images in it.
    """
    words = words_for(len(names))
    rng = np.random.default_rng(0)
    chosen = sorted(rng.permutation(len(names))[:LEARN].tolist())
    each = max(64, -(-SAMPLES * words // len(chosen)))
    samples = []
    for number in chosen:
        found = load_features(folder, names[number]).descriptors[:STRONGEST]
        samples.append(found[rng.permutation(len(found))[:each]])
    together = np.concatenate(samples)
    if not len(together):
        raise ValueError(f"{folder}: no keypoints in any of {len(names)} images")
    return learn_words(together, words)


def signatures_of(
    folder: Path, names: Sequence[str], words: Path | NDArray[np.float32], workers: Workers = None
) -> Iterator[Entry]:
    """Images with the fingerprints of their files and their signatures, a few at a time.

    Parameters
    ----------
    folder, names
        As for :func:`learn_from`.
    words
        The visual words (K, D), or a file of them, which travels lighter.
    workers
        Who makes them: so many threads, an executor, or a Dask client.
    """
    some = (names[first : first + TOGETHER] for first in range(0, len(names), TOGETHER))
    make = partial(_make_signatures, folder.absolute(), words)
    return chain.from_iterable(in_order(make, some, workers))


def _make_signatures(
    folder: Path, words: Path | NDArray[np.float32], names: Sequence[str]
) -> list[Entry]:
    table = _words(words) if isinstance(words, Path) else words
    entries = []
    for name in names:
        found = load_features(folder, name)
        signature = make_signature(found.descriptors[:STRONGEST], table)
        entries.append((name, str(found.source), signature))
    return entries


@cached_reader(1)
def _words(file: Path) -> NDArray[np.float32]:
    words: NDArray[np.float32] = np.load(file, allow_pickle=False)
    return words
