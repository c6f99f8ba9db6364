"""Two photographs of one place.

The everyday call: keypoints, descriptors, nearest neighbours, and the geometry that they agree
on. A line's colour says where in the left photograph it begins. Between the two, the camera
turned to the left and moved.
"""

import mkdesc

found = mkdesc.match_images("demo/street_a.jpg", "demo/street_b.jpg")
print(found)
found.save("match.jpg")
