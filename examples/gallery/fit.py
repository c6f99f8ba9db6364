"""One match, refined.

Two keypoints were matched; their sizes and angles say roughly how the surroundings of one become
those of the other. Least squares of the gray values mend that guess: the second photograph is
sampled through six numbers, a place and a map, and each step changes these so that the samples
differ less (below). Brightness and contrast do not count. The script has the whole method in 20
lines of numpy.
"""

import cv2
import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

import mkdesc

RADIUS, SPACING, SHOWN = 7, 2.0, (0, 1, 2, 4, 8)
a, b = (cv2.imread(f"demo/{name}.png", cv2.IMREAD_GRAYSCALE) for name in ("photo", "slanted"))
smooth_a, smooth_b = (gaussian_filter(image.astype(float), 0.8) for image in (a, b))
grid = np.arange(-RADIUS, RADIUS + 1)
offsets = np.stack(np.meshgrid(grid, grid), axis=-1) * SPACING  # (15, 15, 2): x, y
weights = np.exp(-0.5 * (offsets**2).sum(axis=-1) / (0.6 * RADIUS * SPACING) ** 2)
weights /= weights.sum()


def samples(image, place, local, at):
    x, y = np.moveaxis(place + at @ local.T, -1, 0)
    return map_coordinates(image, [y, x], order=1, mode="nearest")


def normalised(gray):
    gray = gray - (weights * gray).sum()
    return gray / max(1e-6, np.sqrt((weights * gray**2).sum()))


def steps(here, there, local):
    """The place, the map and the correlation at each step of a fit."""
    template = normalised(samples(smooth_a, here, np.eye(2), offsets))
    ty, tx = np.gradient(template, SPACING)
    u, v = np.moveaxis(offsets, -1, 0)
    j = np.stack([tx, ty, tx * u, tx * v, ty * u, ty * v], axis=-1)
    j -= np.tensordot(weights, j, 2)
    equations = np.einsum("xy,xyi,xyk->ik", weights, j, j)
    for step in range(SHOWN[-1] + 1):
        seen = normalised(samples(smooth_b, there, local, offsets))
        yield there, local, (weights * seen * template).sum()
        n = 2 if step < 2 else 6  # the place first
        error = np.einsum("xy,xyi,xy->i", weights, j[..., :n], seen - template)
        change = np.zeros(6)
        change[:n] = np.linalg.solve(equations[:n, :n] * (1 + 1e-3 * np.eye(n)), error)
        change *= min(1.0, SPACING / max(1e-9, np.hypot(*change[:2])))
        local = local @ np.linalg.inv(np.eye(2) + change[2:].reshape(2, 2))
        there = there - local @ change[:2]


features = mkdesc.Features(2000)
(keypoints_a, described_a), (keypoints_b, described_b) = map(features.extract, (a, b))
pairs = mkdesc.match_descriptors(described_a, described_b, ratio=None).pairs
star = np.hypot(*(keypoints_a.points[pairs[:, 0], :2] - [33, 82]).T).argmin()
(x, y, size, angle), (x_b, y_b, size_b, angle_b) = (
    points[row]
    for points, row in zip((keypoints_a.points, keypoints_b.points), pairs[star], strict=True)
)
turn, scale = np.radians(angle_b - angle), size_b / size
guess = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
fits = list(steps(np.array([x, y]), np.array([x_b, y_b]), guess))

fine = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 150)]), axis=-1) * RADIUS * SPACING
views = [("first photograph", samples(smooth_a, np.array([x, y]), np.eye(2), fine))]
for k in SHOWN:
    view = samples(smooth_b, *fits[k][:2], fine)
    view = (view - view.mean()) / view.std() * views[0][1].std() + views[0][1].mean()
    views.append((f"{'guess' if k == 0 else f'step {k}'}: {fits[k][2]:.2f}", view))
row = []
for words, view in views:
    panel = cv2.copyMakeBorder(np.clip(view, 0, 255).astype(np.uint8), 26, 4, 4, 4, 0, value=255)
    cv2.putText(panel, words, (6, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.45, 0, 1, cv2.LINE_AA)
    row.append(panel)
row = cv2.cvtColor(np.hstack(row), cv2.COLOR_GRAY2BGR)


def outlined(image, boxes, centre, reach=40):
    """Part of a photograph, enlarged, with the window as it lies there."""
    left, top = (max(0, int(one) - reach) for one in centre)
    part, zoom = image[top : top + 2 * reach, left : left + 3 * reach], 4
    part = cv2.resize(part, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_CUBIC)
    part = cv2.cvtColor(part, cv2.COLOR_GRAY2BGR)
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * RADIUS * SPACING
    for (place, local), colour in boxes:
        corners = (place + square @ local.T - [left, top] + 0.5) * zoom
        cv2.polylines(part, [corners.round().astype(np.int32)], True, colour, 2, cv2.LINE_AA)
    return part


first = outlined(a, [((np.array([x, y]), np.eye(2)), (40, 200, 40))], (x, y))
second = outlined(b, [(fits[0][:2], (40, 40, 230)), (fits[-1][:2], (40, 200, 40))], fits[-1][0])
above = np.hstack([first, np.full((len(first), 8, 3), 255, np.uint8), second])
above = cv2.resize(above, (row.shape[1], round(len(above) * row.shape[1] / above.shape[1])))
cv2.imwrite("fit.png", np.vstack([above, row]))
