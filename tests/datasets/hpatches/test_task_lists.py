import numpy as np
import pytest
from layouts import write_sequence, write_task

from mkdesc.datasets.hpatches.layout import IMAGES, HPatches
from mkdesc.datasets.hpatches.task_lists import (
    draw_retrieval,
    draw_verification,
    read_retrieval,
    read_verification,
    textured_patches,
)

COUNTS = {"v_wall": 40, "i_dome": 30, "v_boat_long": 2}


def test_drawn_pairs():
    task = draw_verification(COUNTS, seed=1)
    assert task.positives.shape == task.intra.shape == task.inter.shape == (20 * 72, 6)
    size = np.array(list(COUNTS.values()))
    for table in (task.positives, task.intra, task.inter):
        assert (table[:, 2] < size[table[:, 0]]).all()
        assert (table[:, 5] < size[table[:, 3]]).all()
        assert (table[:, 1] != table[:, 4]).all()
        assert table[:, [1, 4]].max() == 4
        np.testing.assert_array_equal(table[:, :3], task.positives[:, :3])
    assert (task.positives[:, [0, 2]] == task.positives[:, [3, 5]]).all()
    assert (task.intra[:, 0] == task.intra[:, 3]).all()
    assert (task.intra[:, 2] != task.intra[:, 5]).all()
    assert (task.inter[:, 0] != task.inter[:, 3]).all()
    again = draw_verification(COUNTS, seed=1)
    np.testing.assert_array_equal(task.inter, again.inter)
    assert (task.inter != draw_verification(COUNTS, seed=2).inter).any()
    assert len(draw_verification({"a": 40_000, "b": 40_000}).inter) == 1_000_000
    for bad in ({"a": 5}, {"a": 5, "b": 1}):
        with pytest.raises(ValueError, match="two sequences of two patches"):
            draw_verification(bad)
    with pytest.raises(ValueError, match="pairs: expected at least 1"):
        draw_verification(COUNTS, pairs=0)


def test_drawn_queries(rng):
    textured = {name: rng.random(count) < 0.7 for name, count in COUNTS.items()}
    task = draw_retrieval(textured, seed=1)
    usable = sum(mask.sum() for mask in textured.values())
    assert (len(task.queries), len(task.distractors)) == (usable // 5, 2 * usable // 5)
    rows = np.concatenate([task.queries, task.distractors])
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert all(textured[task.sequences[s]][patch] for s, patch in rows)
    np.testing.assert_array_equal(task.queries, draw_retrieval(textured, seed=1).queries)
    everything = draw_retrieval(textured, queries=usable - 1, distractors=1)
    assert len(everything.queries) == usable - 1
    with pytest.raises(ValueError, match="queries, distractors: expected"):
        draw_retrieval(textured, queries=usable, distractors=1)
    with pytest.raises(ValueError, match="two sequences"):
        draw_retrieval({"a": np.ones(9, bool), "b": np.zeros(9, bool)})


def test_texture(tmp_path, rng):
    for name in ("i_a", "v_b"):
        strip = np.full((4, 65, 65), 100, np.uint8)
        strip[1] = rng.integers(0, 256, (65, 65))
        strip[2, ::2] = 119  # deviates by 9.5
        strip[3, ::2] = 121  # and by 10.5
        write_sequence(tmp_path, name, dict.fromkeys(IMAGES, strip))
    found = textured_patches(HPatches(tmp_path), ("i_a", "v_b"))
    assert [mask.tolist() for mask in found.values()] == [[False, True, False, True]] * 2


def test_what_was_written_is_read(tmp_path):
    pairs = draw_verification(COUNTS, pairs=50)
    lists = draw_retrieval({name: np.ones(count, bool) for name, count in COUNTS.items()})
    write_task(tmp_path, "x", pairs)
    write_task(tmp_path, "x", lists)
    assert (tmp_path / "verif_neg_intra_split-x.csv").exists()
    got = read_verification(tmp_path, "x", COUNTS)
    for key in ("positives", "intra", "inter"):
        np.testing.assert_array_equal(getattr(got, key), getattr(pairs, key))
    got = read_retrieval(tmp_path, "x", COUNTS)
    np.testing.assert_array_equal(got.queries, lists.queries)
    np.testing.assert_array_equal(got.distractors, lists.distractors)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("v_none,0", r"line 3: expected a sequence of this split in column s, got 'v_none'"),
        ("v_boat_longer_than_that,0", r"line 3: expected a sequence of this split"),
        ("v_wall,40", r"line 3: expected a patch that its sequence has in column idx, got 40"),
        ("v_wall,-1", r"line 3: expected a patch"),
        ("v_wall,x", r"line 3: expected an integer in column 2, got 'x'"),
        ("v_wall", r"line 3: expected at least 2 columns"),
    ],
)
def test_bad_rows(tmp_path, row, message):
    (tmp_path / "retr_queries_split-a.csv").write_text(f"s,idx\ni_dome,3\n{row}\n")
    with pytest.raises(ValueError, match=message):
        read_retrieval(tmp_path, "a", COUNTS)


def test_bad_pairs(tmp_path):
    write_task(tmp_path, "a", draw_verification(COUNTS, pairs=3))
    file = tmp_path / "verif_neg_inter_split-a.csv"
    file.write_text("s1,t1,idx1,s2,t2,idx2\nv_wall,0,39,i_dome,6,1\n")
    with pytest.raises(ValueError, match="expected an image from 0 to 5 in column t2, got 6"):
        read_verification(tmp_path, "a", COUNTS)
    file.write_text("s1,t1,idx1,s2,t2,idx2\nv_wall,-1,39,i_dome,5,1\n")
    with pytest.raises(ValueError, match="expected an image from 0 to 5 in column t1, got -1"):
        read_verification(tmp_path, "a", COUNTS)
    file.write_text("s1,t1,idx1,s2,t2,idx2\nv_wall,0,39,i_dome,5,30\n")
    with pytest.raises(ValueError, match="column idx2, got 30"):
        read_verification(tmp_path, "a", COUNTS)
    file.unlink()
    with pytest.raises(ValueError, match="no such file"):
        read_verification(tmp_path, "a", COUNTS)


def test_real_lists(shared):
    from mkdesc.datasets.hpatches.layout import read_splits

    folder = shared / "data" / "hpatches"
    names = read_splits(folder / "splits.json")["a"].test
    task = read_retrieval(folder, "a", dict.fromkeys(names, 10_000))
    assert (task.queries.shape, task.distractors.shape) == ((10_000, 2), (20_000, 2))
    assert len(np.unique(np.concatenate([task.queries, task.distractors]), axis=0)) == 30_000
