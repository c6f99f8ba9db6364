"""Cameras as COLMAP has them: a model, the size of the photograph, and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.arrays import is_number
from mkdesc.geometry.lenses import LENSES, distort, undistort

#: Parameters, widths and heights are smaller.
LARGEST = 1e9

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Camera:
    """What brings positions in a photograph to rays, and back.

    Parameters
    ----------
    model
        One of COLMAP's: ``"SIMPLE_PINHOLE"`` (f, cx, cy), ``"PINHOLE"`` (fx, fy, cx, cy),
        ``"SIMPLE_RADIAL"`` (f, cx, cy, k1), ``"RADIAL"`` (f, cx, cy, k1, k2), ``"OPENCV"`` (fx,
        fy, cx, cy, k1, k2, p1, p2), and its other ones with up to 12 parameters.
    width, height
        Pixels of the photograph.
    params
        As in COLMAP's files: the centre of the first pixel is at (0.5, 0.5). Positions that are
        given to the methods have it at (0, 0), as OpenCV does.

    Examples
    --------
    >>> camera = Camera("SIMPLE_RADIAL", 640, 480, (500.0, 320.0, 240.0, -0.1))
    >>> camera.matrix.tolist()
    [[500.0, 0.0, 319.5], [0.0, 500.0, 239.5], [0.0, 0.0, 1.0]]
    >>> camera.rays([[319.5, 239.5], [550, 239.5]]).round(4).tolist()
    [[0.0, 0.0], [0.4715, 0.0]]
    """

    model: str
    width: int
    height: int
    params: tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or self.model not in LENSES:
            known = ", ".join(LENSES)
            raise ValueError(f"camera: expected a model of {known}; got {str(self.model)[:40]!r}")
        names = LENSES[self.model].parameters
        for side in ("width", "height"):
            value = getattr(self, side)
            if not (is_number(value) and 0 < value < LARGEST and value == int(value)):
                raise ValueError(f"camera: expected a {side} in pixels > 0, got {value!r}")
            object.__setattr__(self, side, int(value))
        if len(self.params) != len(names):
            raise ValueError(
                f"camera: expected {len(names)} parameters for {self.model} ({', '.join(names)}), "
                f"got {len(self.params)}"
            )
        for name, value in zip(names, self.params, strict=True):
            good = is_number(value) and abs(value) < LARGEST
            if not good or (name[0] == "f" and value <= 0):
                wanted = "a number > 0" if name[0] == "f" else "a finite number"
                raise ValueError(f"camera: expected {wanted} for {name}, got {value!r}")
        object.__setattr__(self, "params", tuple(float(value) for value in self.params))

    @classmethod
    def from_focal(cls, focal: float, width: int, height: int) -> Camera:
        """A pinhole camera whose optical axis meets the middle of the photograph.

        Examples
        --------
        >>> Camera.from_focal(500, 640, 480)
        Camera(model='SIMPLE_PINHOLE', width=640, height=480, params=(500.0, 320.0, 240.0))
        """
        return cls("SIMPLE_PINHOLE", width, height, (focal, width / 2, height / 2))

    @classmethod
    def from_matrix(
        cls, matrix: ArrayLike, width: int | None = None, height: int | None = None
    ) -> Camera:
        """A pinhole camera with a calibration matrix (3, 3); pixel centres at integers.

        Where no size is given, the optical axis is taken to meet the middle of the photograph.

        Examples
        --------
        >>> Camera.from_matrix([[500, 0, 319.5], [0, 510, 239.5], [0, 0, 1]], 640, 480).params
        (500.0, 510.0, 320.0, 240.0)
        """
        given = np.asarray(matrix)
        good = given.shape == (3, 3) and given.dtype.kind in "iuf" and np.isfinite(given).all()
        if good:
            (fx, skew, cx), (zero, fy, cy), last = given.tolist()
            good = fx > 0 and fy > 0 and zero == 0 and list(last) == [0, 0, 1]
        if not good:
            raise ValueError(
                "camera: expected an invertible matrix (3, 3) with focal lengths > 0 and the rows "
                f"0 fy cy and 0 0 1, got {str(given.tolist())[:100]}"
            )
        if abs(skew) > 1e-6 * fx:
            raise ValueError(f"camera: expected a matrix without skew, got {skew:g}")
        width = max(1, round(2 * cx + 1)) if width is None else width
        height = max(1, round(2 * cy + 1)) if height is None else height
        return cls("PINHOLE", width, height, (fx, fy, cx + 0.5, cy + 0.5))

    @classmethod
    def from_colmap(cls, camera: Any) -> Camera:
        """What a ``pycolmap.Camera`` says."""
        model = str(getattr(camera.model, "name", camera.model))
        return cls(model, camera.width, camera.height, tuple(float(x) for x in camera.params))

    @property
    def matrix(self) -> Floats:
        """(3, 3): from rays to pixels, whose centres are at integers, without distortion."""
        values = self._values
        fx, fy = values.get("fx", values.get("f", 0.0)), values.get("fy", values.get("f", 0.0))
        return np.array([[fx, 0, values["cx"] - 0.5], [0, fy, values["cy"] - 0.5], [0, 0, 1]])

    @property
    def focal(self) -> float:
        """The focal length in pixels; of two, their geometric mean."""
        matrix = self.matrix
        return float(np.sqrt(matrix[0, 0] * matrix[1, 1]))

    @property
    def _values(self) -> dict[str, float]:
        return dict(zip(LENSES[self.model].parameters, self.params, strict=True))

    def rays(self, xy: ArrayLike) -> Floats:
        """Rays (N, 2), at depth 1, of positions (N, 2); NaN where the lens shows none."""
        matrix = self.matrix
        places = np.asarray(xy, np.float64).reshape(-1, 2)
        seen = (places - matrix[:2, 2]) / matrix.diagonal()[:2]
        return undistort(seen, LENSES[self.model], self._values)

    def project(self, rays: ArrayLike) -> Floats:
        """Positions (N, 2) of rays (N, 2) at depth 1: the reverse of :meth:`rays`."""
        matrix = self.matrix
        seen = distort(
            np.asarray(rays, np.float64).reshape(-1, 2), LENSES[self.model], self._values
        )
        return np.asarray(seen * matrix.diagonal()[:2] + matrix[:2, 2], np.float64)

    def undistorted(self, xy: ArrayLike) -> Floats:
        """Where positions (N, 2) would be without distortion: in pixels of :attr:`matrix`."""
        matrix = self.matrix
        return np.asarray(self.rays(xy) * matrix.diagonal()[:2] + matrix[:2, 2], np.float64)

    def resized(self, width: int, height: int) -> Camera:
        """The camera of the same photograph in another size."""
        scale = {"x": width / self.width, "y": height / self.height}
        scale[""] = float(np.sqrt(scale["x"] * scale["y"]))
        values = {
            name: value * scale[name[1:]] if name[0] in "fc" else value
            for name, value in self._values.items()
        }
        return Camera(self.model, width, height, tuple(values.values()))


def as_camera(
    name: str, camera: Camera | ArrayLike, size: tuple[int, int] | None = None
) -> Camera:
    """A camera of a photograph of this height and width, from a camera or a matrix (3, 3).

    Parameters
    ----------
    name
        What it is called in messages.
    camera
        As it was given.
    size
        Height and width of the photograph; None: whatever the camera says.

    Examples
    --------
    >>> as_camera("cameras[0]", Camera.from_focal(500, 640, 480), (240, 320))
    Traceback (most recent call last):
    ValueError: cameras[0]: a camera of 640 x 480 pixels, but the photograph has 320 x 240
    """
    height, width = size or (None, None)
    if not isinstance(camera, Camera):
        try:
            return Camera.from_matrix(camera, width, height)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {str(error).removeprefix('camera: ')}") from None
    if size is not None and (camera.width, camera.height) != (width, height):
        raise ValueError(
            f"{name}: a camera of {camera.width} x {camera.height} pixels, but the photograph has "
            f"{width} x {height}"
        )
    return camera


def both_cameras(
    cameras: Sequence[Camera | ArrayLike],
    sizes: tuple[tuple[int, int], tuple[int, int]] | None = None,
) -> tuple[Camera, Camera]:
    """The cameras of two photographs, checked: see :func:`as_camera`."""
    if not isinstance(cameras, (tuple, list)) or len(cameras) != 2:
        raise ValueError(f"cameras: expected two, got {str(cameras)[:100]}")
    first, second = (
        as_camera(f"cameras[{i}]", camera, size)
        for i, (camera, size) in enumerate(zip(cameras, sizes or (None, None), strict=True))
    )
    return first, second
