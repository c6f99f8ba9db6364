"""Pairs worth matching."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import mkdesc
from mkdesc.features.settings import Settings
from mkdesc.retrieval.pairs import (
    AT_HAND,
    all_pairs,
    check_output,
    near_pairs,
    read_pairs,
    sequential_pairs,
    write_pairs,
)
from mkdesc.retrieval.search import Signatures
from mkdesc.retrieval.segments import write_segments
from mkdesc.retrieval.signature import make_signature
from mkdesc.retrieval.similar import groups_of, retrieved_pairs, similar_pairs


def read_again(pairs):
    """How many images are read if the last AT_HAND are at hand."""
    hand, reads = {}, 0
    for pair in pairs:
        for name in pair:
            if name not in hand:
                reads += 1
                if len(hand) == AT_HAND:
                    hand.pop(next(iter(hand)))
            else:
                hand.pop(name)
            hand[name] = True
    return reads


def test_near_pairs_need_few_images_at_a_time(rng):
    names = [f"{i:03d}" for i in range(300)]
    every = list(combinations(names, 2))
    mixed = [every[i] for i in rng.permutation(len(every))]
    near = near_pairs(mixed)
    assert sorted(near) == every
    assert sorted(all_pairs(names)) == every
    assert read_again(near) < read_again(mixed) / 20
    assert read_again(all_pairs(names)) < read_again(mixed) / 20


def test_frames_follow_each_other():
    names = [f"a/{i}.png" for i in range(40)] + ["b/1.png", "b/2.png"]
    pairs = {(a[2:-4], b[2:-4]) for a, b in sequential_pairs(names, 2) if a[0] == "a"}
    steps = {abs(int(a) - int(b)) for a, b in pairs}
    assert steps == {1, 2, 4, 8, 16, 32}
    assert len(pairs) == sum(40 - step for step in steps)
    assert [pair for pair in sequential_pairs(names, 2) if pair[1][0] == "b"] == [
        ("b/1.png", "b/2.png")
    ]
    with pytest.raises(ValueError, match="overlap: expected an integer >= 1"):
        sequential_pairs(names, 0)


def test_views_of_a_scene_are_paired_and_scenes_connected(scenes, tmp_path):
    mkdesc.build_index(scenes, tmp_path / "index", Settings(max_keypoints=300, output="uint8"))
    signatures = mkdesc.Index(tmp_path / "index").signatures
    names = signatures.names
    within = {pair for pair in combinations(sorted(names), 2) if pair[0][0] == pair[1][0]}
    pairs = similar_pairs(signatures, k=2)
    assert within <= {*pairs}
    assert len(pairs) == 9 + 2  # as many as asked for, and three scenes are connected by two
    assert groups_of(names, pairs) == [sorted(names)]
    assert retrieved_pairs(tmp_path / "index/features", sorted(names), k=2) == pairs
    assert len(similar_pairs(signatures)) == 9 * 8 // 2


def test_scenes_of_many_views_get_more_pairs(tmp_path, rng):
    """Six views of one thing, and six of nothing: each has its nearest, the rest go to the six."""
    words = rng.normal(size=(16, 64)).astype(np.float32)
    thing = rng.normal(size=(60, 64))
    views = [thing + 0.2 * rng.normal(size=thing.shape) for _ in range(6)]
    others = [rng.normal(size=(60, 64)) for _ in range(6)]
    made = {f"{i:02d}": make_signature(x, words) for i, x in enumerate([*views, *others])}
    entries = [(name, "", signature) for name, signature in made.items()]
    segments = list(write_segments(tmp_path, 0, entries, len(words)))
    pairs = similar_pairs(Signatures(words, segments), k=6)
    assert {*combinations([f"{i:02d}" for i in range(6)], 2)} <= {*pairs}
    assert 12 * 6 // 2 <= len(pairs) <= 12 * 6 // 2 + 1
    degree = Counter(name for pair in pairs for name in pair)
    assert all(degree[name] >= 3 for name in made)


def test_a_place_of_many_views_gets_what_others_do_not_need(tmp_path, rng):
    """Ten views of one thing, and ten things of three: more of the first than four of each."""
    words = rng.normal(size=(16, 64)).astype(np.float32)
    sizes = [10] + [3] * 10
    entries = []
    for thing, size in enumerate(sizes):
        base = rng.normal(size=(60, 64))
        for view in range(size):
            seen = base + 0.2 * rng.normal(size=base.shape)
            entries.append((f"{thing:02d}-{view}", "", make_signature(seen, words)))
    signatures = Signatures(words, list(write_segments(tmp_path, 0, entries, len(words))))
    pairs = similar_pairs(signatures, 4)
    assert len({*combinations([f"00-{view}" for view in range(10)], 2)} & {*pairs}) > 10 * 4


@pytest.mark.parametrize("k", [2, 5, 8, 11])
def test_as_many_pairs_as_were_asked_for(tmp_path, rng, k):
    """Sixteen images of which none looks like another: on average each is in k pairs."""
    words = rng.normal(size=(16, 64)).astype(np.float32)
    entries = [
        (f"{i:02d}", "", make_signature(rng.normal(size=(60, 64)), words)) for i in range(16)
    ]
    signatures = Signatures(words, list(write_segments(tmp_path, 0, entries, len(words))))
    pairs = similar_pairs(signatures, k)
    assert len({*pairs}) == len(pairs)
    few = k == 2  # then groups may have to be joined
    assert 16 * k // 2 <= len(pairs) <= 16 * k // 2 + (8 if few else 0)
    assert groups_of(signatures.names, pairs) == [sorted(signatures.names)]


def test_pairs_are_written_as_they_are_read(tmp_path):
    pairs = [("a.png", "b.png"), ("a.png", "c/d.png")]
    write_pairs(tmp_path / "pairs.txt", pairs)
    assert (tmp_path / "pairs.txt").read_text() == "a.png b.png\na.png c/d.png\n"
    assert read_pairs(tmp_path / "pairs.txt", ["a.png", "b.png", "c/d.png"]) == pairs
    with pytest.raises(ValueError, match=r"'a b\.png': expected a name without spaces"):
        write_pairs(tmp_path / "pairs.txt", [("a b.png", "c.png")])
    with pytest.raises(ValueError, match=r"'\\udce9\.png': expected a name in UTF-8 for a list"):
        check_output(tmp_path / "pairs.txt", ["a.png", "\udce9.png"])


def test_all_pairs_come_once_and_in_reach():
    names = [f"{i:03d}" for i in range(150)]
    pairs = list(all_pairs(names))
    assert len(pairs) == len(set(pairs)) == 150 * 149 // 2
    assert all(a < b for a, b in pairs)


def test_pairs_from_a_file(tmp_path):
    file = tmp_path / "pairs.txt"
    file.write_text("b.jpg a.jpg\n", encoding="utf-8-sig")  # as Windows may write it
    assert read_pairs(file, ["a.jpg", "b.jpg"]) == [("a.jpg", "b.jpg")]
    file.write_text("b.jpg a.jpg\n", encoding="utf-16")
    with pytest.raises(ValueError, match=r"pairs\.txt: not text in UTF-8"):
        read_pairs(file, ["a.jpg", "b.jpg"])
    file.write_text("# comment\nb.jpg a.jpg\n\na.jpg b.jpg\na.jpg c.jpg\nc.jpg c.jpg\n")
    expected = [("a.jpg", "b.jpg"), ("a.jpg", "c.jpg")]
    assert read_pairs(file, {"a.jpg", "b.jpg", "c.jpg"}) == expected
    for text, message in (
        ("a.jpg d.jpg", r"line 1: no image 'd\.jpg'"),
        ("a.jpg", "line 1: expected two names"),
        ("\n", "no pairs"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_pairs(file, {"a.jpg", "b.jpg"})
    file.write_bytes(b"caf\xe9.jpg b.jpg")
    with pytest.raises(ValueError, match=rf"{file.name}: not text in UTF-8"):
        read_pairs(file, {"a.jpg", "b.jpg"})
