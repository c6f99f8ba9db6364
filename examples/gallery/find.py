"""Find a part of a photograph.

The badge of the cap, cut out of the portrait, is looked up among the views of the room. Views
whose matches agree on a geometry come first, and dots show where the matches are.
"""

import cv2
import numpy as np

import mkdesc

badge = cv2.imread("demo/photo.png")[20:135, 165:370]
mkdesc.build_index("demo/views", "views-index")
index = mkdesc.Index("views-index")
pictures = [cv2.copyMakeBorder(badge, 122, 123, 10, 10, 0, value=(255, 255, 255))]
for found in index.find(badge, k=3, verify=8):
    print(found)
    view = cv2.imread(str(index.image_path(found.name)))
    if found.agreement is not None:
        for x, y in np.round(found.agreement.there).astype(int):
            cv2.circle(view, (int(x), int(y)), 4, (60, 160, 255), -1, cv2.LINE_AA)
    pictures.append(cv2.resize(view, (480, 360), interpolation=cv2.INTER_AREA))
cv2.imwrite("find.jpg", np.hstack(pictures))
