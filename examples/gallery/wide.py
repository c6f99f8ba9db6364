"""Very different viewpoints.

``wide=True`` also matches synthetic views of both images, until a geometry is certain. Here the
portrait is compressed by six along a diagonal.
"""

import mkdesc

found = mkdesc.match_images("demo/photo.png", "demo/slanted.png", wide=True)
print(found)
found.save("wide.jpg")
