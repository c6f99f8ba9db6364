"""Sort photographs into scenes.

A street, a town, copies of the portrait and views of a room that is papered with it lie in one
folder. An index is made of them. Photographs are of one scene if their matches agree, or if a
chain of such pairs joins them, as here the portrait and the room. The two photographs of the town
stay apart: they match only with ``wide``, which takes too long for every pair of a folder.
"""

import shutil
from pathlib import Path

import cv2
import numpy as np

import mkdesc

folder = Path("mixed")
folder.mkdir(exist_ok=True)
for name in (
    *("street_a.jpg", "street_b.jpg", "town_a.jpg", "town_b.jpg", "views/1.png", "views/3.png"),
    *("views/6.png", "sequences/v_turn/1.png", "sequences/v_turn/3.png"),
):
    shutil.copy(f"demo/{name}", folder / name.replace("/", "-"))
mkdesc.build_index(folder, "mixed-index")
groups = mkdesc.retrieval.find_groups(mkdesc.Index("mixed-index"))
rows = []
for names in groups:
    print(names)
    images = [cv2.resize(cv2.imread(str(folder / name)), (200, 170)) for name in names]
    images += [np.full_like(images[0], 255)] * (max(map(len, groups)) - len(images))
    rows.append(cv2.copyMakeBorder(np.hstack(images), 0, 14, 0, 0, 0, value=(255, 255, 255)))
cv2.imwrite("groups.jpg", np.vstack(rows))
