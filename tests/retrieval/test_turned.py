"""Photographs whose EXIF data turn them: index, find and the sheet see them alike."""

import shutil

import numpy as np
from PIL import Image

from mkdesc.features.settings import Settings
from mkdesc.retrieval.index import Index
from mkdesc.retrieval.sheet import HEIGHT, contact_sheet
from mkdesc.retrieval.updating import build_index


def test_a_turned_photograph_finds_itself(tmp_path, view):
    folder = tmp_path / "photos"
    folder.mkdir()
    for seed in range(3):
        exif = Image.Exif()
        exif[0x0112] = 6  # a quarter of a turn
        Image.fromarray(view(seed)).save(folder / f"{seed}.jpg", exif=exif, quality=95)
    settings = Settings(max_keypoints=300, upright=True, output="uint8")
    build_index(folder, tmp_path / "index", settings)
    index = Index(tmp_path / "index")
    query = tmp_path / "query.jpg"  # a file of the index itself would be left out
    shutil.copy(folder / "1.jpg", query)
    (best,) = index.find(query, k=1, verify=1)
    assert best.name == "1.jpg"
    assert best.similarity > 0.99
    assert best.agreement is not None
    np.testing.assert_allclose(best.agreement.here, best.agreement.there, atol=0.01)
    # 240 x 200 px are stored, 200 x 240 are seen: a box at the bottom fits, one at the right not.
    assert index.find(query, k=1, box=(0, 120, 200, 240))[0].name == "1.jpg"
    sheet = contact_sheet(folder / "1.jpg", [best], {"1.jpg": folder / "1.jpg"})
    seen = np.rot90(view(1), -1)  # as tall as the sheet's pictures
    assert seen.shape[0] == HEIGHT
    shown = sheet[10 : 10 + HEIGHT, 10 : 10 + seen.shape[1], 0]
    assert np.corrcoef(shown.ravel(), seen.ravel())[0, 1] > 0.99
