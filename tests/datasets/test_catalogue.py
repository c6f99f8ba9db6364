import hashlib

import numpy as np
import pytest
from layouts import write_sequence, write_subset

from mkdesc.datasets.catalogue import CATALOGUE, check_folder
from mkdesc.datasets.hpatches.layout import IMAGES


def test_phototourism(tmp_path):
    patches = np.zeros((300, 64, 64), np.uint8)
    write_subset(tmp_path / "liberty", patches, np.arange(300) // 2, pairs={2: [(0, 1), (1, 2)]})
    alone, within = check_folder(tmp_path / "liberty"), check_folder(tmp_path)
    assert alone.kind == "a Phototourism subset"
    assert within.kind == "1 Phototourism subsets"
    assert alone.lines == within.lines
    assert alone.lines[0] == "liberty: 2 sheets, 300 patches of 150 points"
    assert "the published set has 450,092" in alone.lines[1]
    (tmp_path / "liberty" / "patches0001.bmp").write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"patches0001\.bmp: not an image"):
        check_folder(tmp_path)


def test_hpatches(tmp_path):
    write_sequence(tmp_path, "v_a", {image: np.zeros((3, 65, 65), np.uint8) for image in IMAGES})
    found = check_folder(tmp_path)
    assert found.kind == "HPatches sequences"
    assert found.lines[0] == "1 sequences (1 viewpoint), 3 patches x 16 images, 65 px"
    strip = tmp_path / "v_a" / "h2.png"
    strip.write_bytes(strip.read_bytes()[:40])  # the header alone
    with pytest.raises(ValueError, match=r"h2\.png"):
        check_folder(tmp_path)
    strip.unlink()
    with pytest.raises(ValueError, match=r"h2\.png: this strip is missing"):
        check_folder(tmp_path)


def test_zips_and_nothing(tmp_path):
    with pytest.raises(ValueError, match="neither Phototourism sheets"):
        check_folder(tmp_path)
    (tmp_path / "liberty.zip").write_bytes(b"not it")
    assert check_folder(tmp_path).lines == (
        f"liberty.zip: md5 {hashlib.md5(b'not it').hexdigest()}, not one of the original zips",
    )
    with pytest.raises(ValueError, match="not a folder"):
        check_folder(tmp_path / "nowhere")


def test_every_set_says_where_it_is():
    assert all(info.where and info.size for info in CATALOGUE)
