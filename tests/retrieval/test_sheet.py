"""Contact sheets: what is written below an image can be read."""

import cv2
import numpy as np

from mkdesc.retrieval.index import Found
from mkdesc.retrieval.sheet import GAP, HEIGHT, TEXT, contact_sheet


def captions(folder, name):
    """The ink below the two narrow images of a sheet, as columns that have some."""
    for one in ("query.png", name):
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / one), np.full((400, 60), 128, np.uint8))
    found = [Found(name, 0.5)]
    sheet = contact_sheet(folder / "query.png", found, {name: folder / name})
    below = sheet[GAP + HEIGHT : GAP + HEIGHT + TEXT]
    assert (below[:, -GAP:] == 255).all()  # nothing is cut off at the edge
    return np.flatnonzero((below < 128).any(axis=(0, 2)))


def test_captions_are_whole(tmp_path):
    short, long = (captions(tmp_path, name) for name in ("a.png", "a-photograph-of-a-castle.png"))
    (width, _), _ = cv2.getTextSize("-photograph-of-a-castle", cv2.FONT_HERSHEY_SIMPLEX, 0.4, 1)
    assert long.max() - short.max() > 0.9 * width
    # A path may be longer than any image is wide: its end is what tells.
    endless = captions(tmp_path, "/".join([*(f"folder-{k}" for k in range(9)), "a.png"]))
    assert long.max() < endless.max() < 1000
