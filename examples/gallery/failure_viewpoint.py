"""Failure: too different a viewpoint.

The town from two sides, without ``wide``. Hardly one nearest neighbour is right, nothing grows
from them, no geometry is believed, and the result says so. The picture shows the tentative
matches.
"""

import mkdesc

found = mkdesc.match_images("demo/town_a.jpg", "demo/town_b.jpg")
print(found.verdict, "-", found.reason)
found.save("failure_viewpoint.jpg")
