"""Failure: too slanted.

The portrait, and the same picture compressed by six along a diagonal, without ``wide``. Few
matches are right, no geometry is believed, and the result says so. The picture shows the
tentative matches.
"""

import mkdesc

found = mkdesc.match_images("demo/photo.png", "demo/slanted.png")
print(found.verdict, "-", found.reason)
found.save("failure_slanted.jpg")
