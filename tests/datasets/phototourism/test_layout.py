import numpy as np
import pytest
from layouts import draw_pairs, write_subset

from mkdesc.datasets.phototourism.layout import Interest, Subset, count_patches


@pytest.fixture
def made(tmp_path, rng):
    """A subset of 300 patches (two sheets) with everything, and what was written."""
    patches = rng.integers(0, 256, (300, 64, 64), np.uint8)
    labels = np.arange(300) // 3
    interest = Interest(
        rng.integers(0, 9, 300),
        rng.random(300).round(3),
        rng.random(300).round(3),
        rng.random(300).round(5),
        rng.random(300).round(4),
    )
    pairs = draw_pairs(labels, 50, seed=3)
    folder = tmp_path / "made"
    blocks = (patches[start : start + 77] for start in range(0, 300, 77))
    write_subset(folder, blocks, labels, interest, {50: pairs})
    return folder, patches, labels, interest, pairs


def test_what_was_written_is_read(made):
    folder, _patches, labels, interest, pairs = made
    subset = Subset(folder)
    assert (len(subset), subset.name) == (300, "made")
    np.testing.assert_array_equal(subset.labels(), labels)
    for got, expected in zip(subset.interest(), interest, strict=True):
        np.testing.assert_array_equal(got, expected)
    got = subset.pairs()
    np.testing.assert_array_equal(np.stack([got.first, got.second], 1), pairs)
    np.testing.assert_array_equal(got.matching, labels[pairs[:, 0]] == labels[pairs[:, 1]])
    assert got.matching.sum() == 25
    assert count_patches(folder) == 300


@pytest.mark.parametrize("size", [1, 100, 4096])
def test_blocks(made, size):
    folder, patches, *_ = made
    indices, blocks = zip(*Subset(folder).blocks(size=size), strict=True)
    np.testing.assert_array_equal(np.concatenate(indices), np.arange(300))
    np.testing.assert_array_equal(np.concatenate(blocks), patches)
    [(index, block)] = Subset(folder).blocks(np.array([299, 260, 260]))
    assert index.tolist() == [260, 299]
    np.testing.assert_array_equal(block, patches[[260, 299]])
    with pytest.raises(ValueError, match="which: expected indices below 300"):
        list(Subset(folder).blocks(np.array([300])))


def test_missing_sheet(made):
    folder = made[0]
    (folder / "patches0000.bmp").unlink()
    with pytest.raises(ValueError, match=r"patches0000\.bmp is missing"):
        Subset(folder)


def test_short_files(made):
    folder = made[0]
    info = folder / "info.txt"
    lines = info.read_text().splitlines(keepends=True)
    info.write_text("".join(lines[:200]))
    with pytest.raises(ValueError, match=r"info\.txt: 200 lines do not fit 2 sheets"):
        Subset(folder).labels()
    info.write_text("".join(lines))
    interest = folder / "interest.txt"
    interest.write_text("".join(interest.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match=r"interest\.txt: expected 300 lines.* got 299"):
        Subset(folder).interest()
    interest.unlink()
    with pytest.raises(ValueError, match=r"interest\.txt: no such file"):
        Subset(folder).interest()
    info.unlink()
    with pytest.raises(ValueError, match=r"info\.txt: no such file"):
        Subset(folder).labels()
    assert len(Subset(folder)) == 512


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("300 100 0 1 0 0 0", r"line 7: expected patches below 300, got 300 and 1"),
        ("-1 0 0 1 0 0 0", r"line 7: expected patches below 300, got -1 and 1"),
        ("3 5 0 1 0 0 0", r"line 7: points \[5, 0\], but info.txt says \[1, 0\]"),
        ("3 5 0 1", r"line 7: expected at least 5 columns, got 4"),
        ("3 5 0 1 q 0 0", r"line 7: expected an integer in column 5, got 'q'"),
    ],
)
def test_bad_pairs(made, line, message):
    folder = made[0]
    file = folder / "m50_50_50_0.txt"
    lines = file.read_text().splitlines()
    lines[6] = line
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=message):
        Subset(folder).pairs(50)


def test_which_pairs(made):
    folder = made[0]
    with pytest.raises(ValueError, match="no file of 7 pairs; there are 50"):
        Subset(folder).pairs(7)
    file = folder / "m50_50_50_0.txt"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match="expected 50 lines, as its name says, got 49"):
        Subset(folder).pairs()
    file.unlink()
    with pytest.raises(ValueError, match="no files of pairs"):
        Subset(folder).pairs()


def test_the_pairs_to_test_on_are_a_hundred_thousand(tmp_path):
    labels = np.arange(20) // 2
    pairs = {count: draw_pairs(labels, count) for count in (4, 100_000, 100_002)}
    write_subset(tmp_path / "a", np.zeros((20, 64, 64), np.uint8), labels, pairs=pairs)
    assert len(Subset(tmp_path / "a").pairs().first) == 100_000


def test_bad_interest(made):
    file = made[0] / "interest.txt"
    lines = file.read_text().splitlines()
    lines[1] = "1.5 0 0 0 0"
    file.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"interest\.txt, line 2: expected an integer"):
        Subset(made[0]).interest()


@pytest.mark.parametrize("name", ["castle", "door", "fox"])
def test_real_subsets(shared, name):
    subset = Subset(shared / "data" / "phototourism" / name)
    assert len(subset.labels()) == len(subset.interest().image) == len(subset)
    assert list(subset.pair_files()) == [1000, 5000, 10000]
    pairs = subset.pairs()
    assert pairs.matching.sum() == 5000


def test_real_sheets_without_labels(shared):
    subset = Subset(shared / "data" / "phototourism" / "notredame_sheets")
    assert len(subset) == 8 * 256
    index, block = next(subset.blocks(size=1))
    assert block.shape == (256, 64, 64)
    assert index[-1] == 255
