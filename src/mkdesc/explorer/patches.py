"""Patches to play with: drawn ones, and some of a portrait if matplotlib brings it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mkdesc.images.demo import photograph

#: Side of the patches that the page compares.
PATCH_SIZE = 64
#: Side of what they are cut from: half as much again, so that they can be turned and shifted.
SOURCE_SIZE = 96

Gray = NDArray[np.uint8]

#: Squares of the sample photograph that show something: label, centre (x, y) and size in pixels.
_PHOTO_PATCHES = {
    "eye": ("Eye (photo)", 236, 187, 72),
    "other-eye": ("Other eye (photo)", 300, 176, 72),
    "collar": ("Collar (photo)", 310, 380, 96),
    "ribbons": ("Ribbons (photo)", 404, 502, 72),
    "insignia": ("Cap insignia (photo)", 258, 62, 96),
}


def bundled_patches(photo: Gray | None = None) -> dict[str, tuple[str, Gray]]:
    """Patches by name: a label and (96, 96) uint8, whose central 64 x 64 is the patch itself.

    Parameters
    ----------
    photo
        What :func:`sample_photo` returns; None: drawn patches alone.

    Examples
    --------
    >>> patches = bundled_patches()
    >>> patches["corner"][1].shape
    (96, 96)
    """
    patches = {name: (label, _to_gray(value)) for name, (label, value) in _drawn().items()}
    if photo is not None:
        from mkdesc.images.cutting import cut_patches

        for name, (label, x, y, size) in _PHOTO_PATCHES.items():
            half = size / 2 * SOURCE_SIZE / PATCH_SIZE
            frame = [[[half, 0, x], [0, half, y]]]
            patches[name] = (label, cut_patches(photo, frame, SOURCE_SIZE)[0])
    return patches


def _drawn() -> dict[str, tuple[str, NDArray[np.float64]]]:
    """Drawn patches: a label and brightness in [0, 1]."""
    u = (np.arange(SOURCE_SIZE) - (SOURCE_SIZE - 1) / 2) / (PATCH_SIZE / 2)
    y, x = np.meshgrid(u, u, indexing="ij")

    def step(distance: NDArray[np.float64], width: float = 0.06) -> NDArray[np.float64]:
        """From 0 to 1 across a border, as soft as a lens makes it."""
        return 0.5 + 0.5 * np.tanh(distance / width)

    slanted = 0.9 * x + 0.3 * y
    # Noise of one octave: what is left of white noise between two Gaussian widths.
    noise = np.fft.fft2(np.random.default_rng(7).normal(size=x.shape))
    f2 = np.add.outer(*[np.fft.fftfreq(SOURCE_SIZE) ** 2] * 2)
    texture = np.fft.ifft2(noise * (np.exp(-250 * f2) - np.exp(-900 * f2))).real
    return {
        "corner": ("Corner", 0.15 + 0.7 * step(x + 0.15) * step(y + 0.1)),
        "edge": ("Edge", 0.2 + 0.6 * step(slanted)),
        "blob": ("Blob", 0.2 + 0.7 * np.exp(-(x**2 + y**2) / 0.18)),
        "ridge": ("Ridge", 0.2 + 0.7 * np.exp(-(slanted**2) / 0.03)),
        "cross": ("Cross", 0.2 + 0.6 * np.maximum(step(0.16 - abs(x)), step(0.16 - abs(y)))),
        "texture": ("Texture", 0.5 + 0.16 * texture / texture.std()),
    }


def _to_gray(brightness: NDArray[np.float64]) -> Gray:
    return np.rint(255 * brightness.clip(0, 1)).astype(np.uint8)


def sample_photo() -> Gray | None:
    """The portrait that comes with the package, gray; None without OpenCV."""
    try:
        return photograph()
    except ImportError:
        return None
