import json

import cv2
import numpy as np
import pytest
from layouts import write_sequence

from mkdesc.datasets.hpatches.layout import (
    IMAGES,
    HPatches,
    Sequence,
    image_name,
    read_splits,
    sequence_type,
)


def strips(rng, count=4, size=65):
    return {image: rng.integers(0, 256, (count, size, size), np.uint8) for image in IMAGES}


@pytest.fixture
def made(tmp_path, rng):
    content = {}
    for name, count in (("i_dome", 3), ("v_wall", 5), ("v_boat", 4)):
        content[name] = strips(rng, count)
        write_sequence(tmp_path, name, content[name])
    return tmp_path, content


def test_what_was_written_is_read(made):
    root, content = made
    patches = HPatches(root)
    assert patches.names == ("i_dome", "v_boat", "v_wall")
    assert len(patches) == 3
    assert patches.counts() == {"i_dome": 3, "v_boat": 4, "v_wall": 5}
    for sequence in patches:
        for image, strip in sequence.images():
            np.testing.assert_array_equal(strip, content[sequence.name][image])
    with pytest.raises(ValueError, match="no sequence 'v_none'"):
        patches["v_none"]
    with pytest.raises(ValueError, match="image: expected one of ref, e1"):
        patches["v_wall"].read("e6")


def test_names():
    assert len(IMAGES) == 16
    assert [image_name(noise, 2) for noise in ("easy", "hard", "tough")] == ["e2", "h2", "t2"]
    kinds = [sequence_type(name) for name in ("i_a", "v_a", "graffiti")]
    assert kinds == ["illumination", "viewpoint", "other"]


def test_bad_strips(made):
    root, _ = made
    folder = root / "v_wall"
    cv2.imwrite(str(folder / "h3.png"), np.zeros((65 * 5 + 1, 65), np.uint8))
    with pytest.raises(ValueError, match=r"h3\.png: the height .* \(65\), got 326"):
        HPatches(root).counts()
    cv2.imwrite(str(folder / "h3.png"), np.zeros((65 * 4, 65), np.uint8))
    with pytest.raises(ValueError, match=r"h3\.png: 4 patches of 65 px, but ref.png has 5"):
        Sequence(folder).read("ref")
    (folder / "h3.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"h3\.png: not a PNG file"):
        len(Sequence(folder))
    (folder / "h3.png").unlink()
    with pytest.raises(ValueError, match=r"h3\.png: this strip is missing"):
        len(Sequence(folder))


def test_bad_roots(tmp_path):
    with pytest.raises(ValueError, match="not a folder"):
        HPatches(tmp_path / "none")
    with pytest.raises(ValueError, match="no sequences"):
        HPatches(tmp_path)


def test_splits(made):
    root, _ = made
    patches = HPatches(root)
    assert patches.split().test == patches.names
    assert patches.split("illum").test == ("i_dome",)
    assert patches.split("view").test == ("v_boat", "v_wall")
    with pytest.raises(ValueError, match=r"split 'a': expected full, illum, view, or a splits"):
        patches.split("a")
    file = root / "splits.json"
    file.write_text(json.dumps({"a": {"test": ["v_wall"], "train": ["i_dome"], "name": "a"}}))
    assert patches.split("a").train == ("i_dome",)
    with pytest.raises(ValueError, match="no split 'b'; there are a"):
        patches.split("b")
    file.write_text(json.dumps({"a": {"test": ["v_wall", "v_graffiti"]}}))
    with pytest.raises(ValueError, match=r"1 sequences of split 'a' are missing.*v_graffiti"):
        patches.split("a", file)
    file.write_text(json.dumps({"a": {"test": ["v_wall"], "train": ["v_bark"]}}))
    with pytest.raises(ValueError, match=r"1 sequences of split 'a' are missing.*v_bark"):
        patches.split("a", file)
    for text in ("[", "{}", '{"a": 3}', '{"a": {"test": [1]}}', '{"a": {"test": []}}'):
        file.write_text(text)
        with pytest.raises(ValueError, match=r"splits\.json: "):
            read_splits(file)


def test_real_splits_and_strip(shared):
    splits = read_splits(shared / "data" / "hpatches" / "splits.json")
    assert {name: len(split.test) for name, split in splits.items()} == {
        "a": 40, "b": 40, "c": 40, "illum": 57, "view": 59, "full": 116,
    }  # fmt: skip
    assert len(splits["a"].train) == 76
    with pytest.raises(ValueError, match=r"e1\.png: this strip is missing"):
        len(HPatches(shared / "data" / "hpatches")["v_graffiti"])
