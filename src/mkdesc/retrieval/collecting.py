"""From features of images to their signatures: words, then shards, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.threads import available_threads, in_order
from mkdesc.features.folder import load_features
from mkdesc.retrieval.codebook import SAMPLES, learn_words, words_for
from mkdesc.retrieval.signature import Signature, make_signature

__all__ = ["STRONGEST", "learn_from", "signatures_of"]

#: Images that words are learned from, at most.
LEARN = 2000
#: Keypoints of an image that count.
STRONGEST = 1000


def learn_from(folder: Path, names: Sequence[str], seed: int = 0) -> NDArray[np.float32]:
    """Visual words (K, D) of a collection.

    Parameters
    ----------
    folder
        What :func:`mkdesc.features.folder.extract_features` wrote.
    names
        Of the images in it.
    seed
        The same seed gives the same words.
    """
    words = words_for(len(names))
    rng = np.random.default_rng(seed)
    chosen = sorted(rng.permutation(len(names))[:LEARN].tolist())
    each = max(64, -(-SAMPLES * words // len(chosen)))
    samples = []
    for number in chosen:
        found = load_features(folder, names[number]).descriptors[:STRONGEST]
        samples.append(found[rng.permutation(len(found))[:each]])
    together = np.concatenate(samples)
    if not len(together):
        raise ValueError(f"{folder}: no keypoints in any of {len(names)} images")
    return learn_words(together, words, seed)


def signatures_of(
    folder: Path, names: Sequence[str], words: NDArray[np.float32]
) -> Iterator[tuple[str, Signature]]:
    """Names and signatures of images, a few at a time by several threads.

    Parameters
    ----------
    folder, names
        As for :func:`learn_from`.
    words
        (K, D): the visual words.
    """

    def make(number: int) -> Signature:
        descriptors = load_features(folder, names[number]).descriptors[:STRONGEST]
        return make_signature(descriptors, words)

    found = in_order(make, len(names), available_threads())
    return zip(names, found, strict=True)
