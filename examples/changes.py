"""Find what has changed between two photographs of one place.

The second photograph is laid over the first by the homography that their matches agree on, its
brightness is fitted, and what still differs by more than noise and small shifts explain is
outlined. Without photographs of your own, the demo's portrait is taken twice: the second time
from elsewhere, darker, and with three things gone or added.

``python examples/changes.py BEFORE.jpg AFTER.jpg`` writes changes.jpg.
"""

from __future__ import annotations

import sys

import cv2
import numpy as np

import mkdesc
from mkdesc.images.demo import photograph, warped

#: Gray values that a place must differ by, and pixels that it must at least have.
DIFFERENT, SMALLEST = 45, 60


def changed_boxes(before: np.ndarray, after: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Left, top, width and height of what differs, in the first of two gray photographs."""
    found = mkdesc.match_images(after, before, geometry="homography")
    print(found)
    if not found.verified:
        raise SystemExit(f"these do not show one flat place: {found.reason}")
    size = before.shape[::-1]
    over = cv2.warpPerspective(after, found.matrix, size, flags=cv2.INTER_AREA)
    seen = cv2.warpPerspective(np.full_like(after, 255), found.matrix, size) == 255
    seen = cv2.erode(seen.astype(np.uint8), np.ones((9, 9))) > 0
    # As many pixels are darker than a value as before: that undoes changes of exposure.
    values = np.sort(before[seen])
    ranks = np.searchsorted(np.sort(over[seen]), np.arange(256)).clip(0, len(values) - 1)
    over = values[ranks].astype(np.uint8)[over]
    first, second = (cv2.GaussianBlur(image, (0, 0), 2.5).astype(int) for image in (before, over))
    differs = (np.abs(first - second) > DIFFERENT) & seen
    whole = cv2.morphologyEx(differs.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((15, 15)))
    _, _, boxes, _ = cv2.connectedComponentsWithStats(whole)
    return [tuple(map(int, box[:4])) for box in boxes[1:] if box[4] >= SMALLEST]


def two_photographs() -> tuple[np.ndarray, np.ndarray]:
    """The portrait, and a darker photograph of it from elsewhere after some changes."""
    before = photograph()
    after = before.copy()
    after[480:532, 318:460] = after[533:585, 318:460]  # no ribbons any more
    cv2.circle(after, (70, 330), 26, 240, -1)  # a ball before the flag
    after[50:112, 400:456] = after[58:120, 42:98]  # a star on the wall
    return before, warped(after)[0]


def main() -> None:
    if len(sys.argv) == 3:
        before, after = (cv2.imread(name, cv2.IMREAD_GRAYSCALE) for name in sys.argv[1:])
    else:
        before, after = two_photographs()
    picture = cv2.cvtColor(before, cv2.COLOR_GRAY2BGR)
    for left, top, width, height in changed_boxes(before, after):
        corners = (left - 4, top - 4), (left + width + 4, top + height + 4)
        cv2.rectangle(picture, *corners, (40, 90, 240), 3, cv2.LINE_AA)
    beside = cv2.cvtColor(after, cv2.COLOR_GRAY2BGR)
    beside = cv2.resize(beside, None, fx=len(before) / len(after), fy=len(before) / len(after))
    cv2.imwrite("changes.jpg", np.hstack([picture, beside]))
    print("written: changes.jpg")


if __name__ == "__main__":
    main()
