"""Very different viewpoints.

A town, seen from an aeroplane, first from one side and then from another: no keypoint looks the
same in both. ``wide=True`` also matches synthetic views of both photographs, until a geometry is
certain.
"""

import mkdesc

found = mkdesc.match_images("demo/town_a.jpg", "demo/town_b.jpg", wide=True)
print(found)
found.save("wide.jpg")
