"""A small scene: a plane in three photographs, and two cameras before a box of points."""

import cv2
import numpy as np
import pytest


def texture(seed, shape):
    """Blobs of several sizes."""
    rng = np.random.default_rng(seed)
    total = np.zeros(shape, np.float32)
    for sigma in (1.5, 3, 6):
        noise = cv2.GaussianBlur(rng.normal(size=shape).astype(np.float32), (0, 0), sigma)
        total += noise / noise.std()
    return cv2.normalize(total, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


@pytest.fixture(scope="session")
def homographies():
    return {
        2: np.array([[0.95, 0.1, 5], [-0.1, 0.95, 20], [0, 0, 1]]),
        3: np.array([[0.8, 0.0, 15], [0.05, 0.85, 10], [2e-4, 0, 1]]),
    }


@pytest.fixture(scope="session")
def sequences(tmp_path_factory, homographies):
    """A folder with one sequence in the layout of HPatches."""
    root = tmp_path_factory.mktemp("sequences")
    folder = root / "wall"
    folder.mkdir()
    image = texture(0, (220, 300))
    cv2.imwrite(str(folder / "1.png"), image)
    for number, matrix in homographies.items():
        warped = cv2.warpPerspective(image, matrix, (300, 220))
        cv2.imwrite(str(folder / f"{number}.png"), warped)
        np.savetxt(folder / f"H_1_{number}", matrix)
    return root


@pytest.fixture(scope="session")
def strecha(tmp_path_factory):
    """Two photographs of five planes, with Strecha's cameras for twice the size."""
    folder = tmp_path_factory.mktemp("posed")
    (folder / "images").mkdir()
    (folder / "cameras").mkdir()
    # Pixels of the files; the centre of the first is (0, 0).
    matrix = np.array([[300.0, 0, 159.5], [0, 300, 119.5], [0, 0, 1]])
    turns = np.zeros(3), np.array([0.02, -0.25, 0.03])
    centres = np.zeros(3), np.array([1.2, 0.1, 0.1])
    depths = 3.0, 4.0, 5.0, 6.5, 9.0  # of strips of the first photograph, from the left
    image = texture(1, (240, 320))
    for number, (turn, centre) in enumerate(zip(turns, centres, strict=True)):
        rotation = cv2.Rodrigues(turn)[0]
        seen = np.zeros_like(image)
        for strip, depth in reversed(list(enumerate(depths))):
            # A plane z = depth: x2 ~ K R (I - C n' / depth) K^-1 x1.
            plane = np.eye(3) - np.outer(centre, [0, 0, 1 / depth])
            mapping = matrix @ rotation @ plane @ np.linalg.inv(matrix)
            shown = np.zeros_like(image)
            columns = slice(64 * strip, 64 * strip + 64)
            shown[:, columns] = image[:, columns]
            warped = cv2.warpPerspective(shown, mapping, (320, 240))
            seen = np.where(warped > 0, warped, seen)
        cv2.imwrite(str(folder / "images" / f"{number}.png"), seen)
        large = np.diag([2.0, 2, 1]) @ matrix
        large[:2, 2] += 0.5  # the centre of a pixel of twice the size
        rows = [
            *large.tolist(),
            [0, 0, 0],
            *rotation.T.tolist(),
            centre.tolist(),
            [640, 480],
        ]
        text = "\n".join(" ".join(map(str, row)) for row in rows)
        (folder / "cameras" / f"{number}.png.camera").write_text(text)
    return folder
