"""Matches, grown round by round.

The portrait, and the same picture compressed by six along a diagonal, turned and darkened. Most
nearest neighbours are wrong. Those are kept that fit the gray values and that a neighbour
predicts; in each round, they predict where the keypoints beside them are, and what fits there
predicts in turn. The last picture has what grew until nothing new was found, fitted once more,
with neighbours that agree, and brought back by a fit from the other photograph. Green: within 3
px of the homography that `mkdesc.match_images` finds. (The script does with named parts, from one
photograph, what `mkdesc.grow_matches` does at once from both.)
"""

import cv2
import numpy as np

import mkdesc
from mkdesc.matching.growing.arguments import maps_of_keypoints
from mkdesc.matching.growing.fitting import ROUGH, fit_places
from mkdesc.matching.growing.growth import grow_from
from mkdesc.matching.growing.options import GrowOptions
from mkdesc.matching.growing.pyramid import make_pyramid
from mkdesc.matching.growing.rounds import count_support, find_neighbours

options = GrowOptions()
a, b = (cv2.imread(f"demo/{name}.png", cv2.IMREAD_GRAYSCALE) for name in ("photo", "slanted"))
homography = mkdesc.match_images(a, b, geometry="homography").matrix
one, two = make_pyramid(a), make_pyramid(b)
features = mkdesc.Features(2000)
(keypoints_a, described_a), (keypoints_b, described_b) = map(features.extract, (a, b))
i, j = mkdesc.match_descriptors(described_a, described_b, ratio=None).pairs.T
places = np.ascontiguousarray(keypoints_a.points[:, :2])
near = find_neighbours(places, options.neighbours)


def panel(words, rows, there):
    """The first photograph with dots at the matched places."""
    truth = cv2.perspectiveTransform(places[rows][None], homography)[0]
    right = np.hypot(*(truth - there).T) < 3
    picture = cv2.cvtColor(a, cv2.COLOR_GRAY2BGR) // 2 + 90
    for (x, y), good in zip(places[rows], right, strict=True):
        colour = (30, 150, 20) if good else (40, 40, 230)
        cv2.circle(picture, (round(x), round(y)), 4, colour, -1, cv2.LINE_AA)
    picture = cv2.copyMakeBorder(picture, 44, 0, 4, 4, 0, value=(255, 255, 255))
    caption = f"{words}: {len(rows)}, {right.sum()} right"
    cv2.putText(picture, caption, (6, 30), cv2.FONT_HERSHEY_SIMPLEX, 0.9, 0, 2, cv2.LINE_AA)
    return picture


panels = [panel("neighbours", i, keypoints_b.points[j, :2])]
maps = maps_of_keypoints(keypoints_a.points[i], keypoints_b.points[j])
guess = np.hstack([keypoints_b.points[j, :2], maps])
fits = fit_places(one, two, places[i], guess, 2, ROUGH)
found, correlation = np.zeros((len(places), 6)), np.full(len(places), -1.0)
seeds = i[fits.correlation >= options.min_correlation]
found[i], correlation[seeds] = fits.found, fits.correlation[np.isin(i, seeds)]
fitted = found.copy(), correlation.copy()
around = find_neighbours(places[seeds], options.neighbours)
agree = count_support(places[seeds], around, found[seeds], correlation[seeds], options)
correlation[seeds[agree < 2]] = -1
panels.append(panel("seeds", np.flatnonzero(correlation >= 0), found[correlation >= 0, :2]))
for number in range(1, 7):
    matched = correlation >= 0
    known = (near >= 0) & matched[near]
    best = np.where(known, correlation[near], -2).argmax(axis=1)
    best = near[np.arange(len(near)), best]  # of each place the neighbour that fits best
    rows = np.flatnonzero(known.any(axis=1) & ~matched)
    local = found[best[rows], 2:].reshape(-1, 2, 2)
    apart = places[rows] - places[best[rows]]
    there = found[best[rows], :2] + np.einsum("nij,nj->ni", local, apart)
    fits = fit_places(one, two, places[rows], np.hstack([there, local.reshape(-1, 4)]), 1, ROUGH)
    good = fits.correlation >= options.min_correlation
    found[rows[good]], correlation[rows[good]] = fits.found[good], fits.correlation[good]
    if number in (1, 3, 6):
        matched = np.flatnonzero(correlation >= 0)
        panels.append(panel(f"round {number}", matched, found[matched, :2]))
# All rounds, one more fit, there and back.
grown = grow_from(one, two, places, *fitted, options, fit_places)
panels.append(panel("checked", grown.rows, grown.found[:, :2]))
cv2.imwrite("growth.jpg", np.vstack([np.hstack(panels[:3]), np.hstack(panels[3:])]))
