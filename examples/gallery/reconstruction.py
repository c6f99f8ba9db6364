"""Cameras and points.

Eight views become cameras and 3-D points: described and matched here, mapped by COLMAP. From
above, the walls and the box are straight lines, and the cameras stand on an arc. Colours are
height.
"""

import numpy as np
import pycolmap
from matplotlib.figure import Figure

import mkdesc
from mkdesc.features import Settings

options = mkdesc.sfm.SfmOptions(Settings(max_keypoints=2000), seed=0)
print(mkdesc.sfm.reconstruct("demo/views", "reconstruction", options=options))
model = pycolmap.Reconstruction("reconstruction/sparse/0")
points = np.array([point.xyz for point in model.points3D.values()])
tracks = np.array([point.track.length() for point in model.points3D.values()])
cameras = np.array([image.projection_center() for image in model.images.values()])
ahead = np.array([image.viewing_direction() for image in model.images.values()])
x, y, z = points[tracks >= 3].T
figure = Figure(figsize=(5, 6), layout="constrained")
axes = figure.subplots()
axes.scatter(x, z, 2, -y, cmap="viridis")
axes.plot(cameras[:, 0], cameras[:, 2], "^", color="crimson", label="cameras")
axes.quiver(*cameras[:, [0, 2]].T, *ahead[:, [0, 2]].T, color="crimson", width=0.003)
axes.set(aspect="equal", xlabel="to the right", ylabel="away")
low, high = np.percentile(np.vstack([points, cameras]), [0.5, 99.5], axis=0)
axes.set(xlim=(low[0] - 1, high[0] + 1), ylim=(cameras[:, 2].min() - 1, high[2] + 1))
axes.legend()
figure.savefig("reconstruction.png", dpi=100)
