"""Two views of one place.

The everyday call: keypoints, descriptors, nearest neighbours, and the geometry that they agree
on. A line's colour says where in the left image it begins. The place is drawn: a corner of a
room and a box, papered with the one photograph that comes with the package.
"""

import mkdesc

found = mkdesc.match_images(
    "demo/views/1.png", "demo/views/6.png", mkdesc.Features(1000), focal_lengths=(600, 600)
)
print(found)
found.save("match.jpg")
