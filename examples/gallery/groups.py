"""Sort photographs into scenes.

Copies of the portrait, views of a room that is papered with it, and two surfaces of noise, each
turned three times, lie in one folder. An index is made of them. Photographs are of one scene if
their matches agree, or if a chain of such pairs joins them, as here the portrait and the room.
"""

import shutil
from pathlib import Path

import cv2
import numpy as np

import mkdesc

folder = Path("mixed")
folder.mkdir(exist_ok=True)
for name in ("views/1", "views/3", "views/6", "sequences/v_turn/1", "sequences/v_turn/3"):
    shutil.copy(f"demo/{name}.png", folder / f"{name.replace('/', '-')}.png")
for seed, coarse in enumerate((2, 5)):
    noise = np.random.default_rng(seed).random((480, 480), np.float32)
    surface = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), coarse), None, 0, 255, cv2.NORM_MINMAX)
    for degrees in (0, 20, 50):
        turn = cv2.getRotationMatrix2D((240, 240), degrees, 1.0)
        turned = cv2.warpAffine(surface, turn, (480, 480), borderMode=cv2.BORDER_REFLECT)
        cv2.imwrite(f"mixed/noise-{seed}-{degrees}.png", turned)
mkdesc.build_index(folder, "mixed-index")
groups = mkdesc.retrieval.find_groups(mkdesc.Index("mixed-index"))
rows = []
for names in groups:
    print(names)
    images = [cv2.resize(cv2.imread(str(folder / name)), (200, 170)) for name in names]
    images += [np.full_like(images[0], 255)] * (max(map(len, groups)) - len(images))
    rows.append(cv2.copyMakeBorder(np.hstack(images), 0, 14, 0, 0, 0, value=(255, 255, 255)))
cv2.imwrite("groups.jpg", np.vstack(rows))
