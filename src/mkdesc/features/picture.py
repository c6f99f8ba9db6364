"""A picture of the keypoints of a photograph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mkdesc._support.files import atomic_path
from mkdesc._support.targets import check_target
from mkdesc.features.settings import Settings
from mkdesc.images.detectors.keypoints import Keypoints
from mkdesc.images.drawing import draw_keypoints
from mkdesc.images.listing import find_images
from mkdesc.images.reading import MAX_PIXELS, in_colour, read_gray
from mkdesc.images.writing import OWN_PICTURE, PICTURES, encode_picture


def save_keypoints(
    sources: Sequence[str | Path],
    output: str | Path,
    *,
    settings: Settings | None = None,
    max_pixels: int = MAX_PIXELS,
    device: str | None = None,
) -> Keypoints:
    """Detect keypoints, and write a picture of them; nothing is described.

    Parameters
    ----------
    sources
        One photograph, or a folder with one in it.
    output
        A name that ends in .png, .jpg or .jpeg. A picture of this package is replaced, another
        file is not.
    settings
        How to detect.
    max_pixels
        Larger images are refused.
    device
        Where PyTorch detects, such as ``"cuda"``; None: the CPU.

    Returns
    -------
    Keypoints
        What was found, the strongest first.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from mkdesc.images.writing import encode_image
    >>> folder = Path(tempfile.mkdtemp())
    >>> noise = np.random.default_rng(0).integers(0, 256, (80, 80), np.uint8)
    >>> _ = (folder / "a.png").write_bytes(encode_image(".png", noise))
    >>> how = Settings(max_keypoints=50)
    >>> save_keypoints([folder / "a.png"], folder / "keypoints.jpg", settings=how)
    Keypoints(50)
    """
    target = check_target(output, sources, OWN_PICTURE)
    if target.suffix.lower() not in PICTURES:
        raise ValueError(f"{target}: expected a name ending in {', '.join(PICTURES)}")
    files = [*find_images(sources).values()]
    if len(files) != 1:
        raise ValueError(
            f"{target}: a picture shows the keypoints of one photograph, got {len(files)}; name "
            "one, or a folder as the output"
        )
    how = settings or Settings()
    gray = read_gray(files[0], max_pixels)
    found = how.make(device=device).find_keypoints(gray)
    caption = f"mkdesc: {len(found):,} keypoints ({how.detector})"
    picture = draw_keypoints(in_colour(gray, files[0]), found.points, caption)
    with atomic_path(target) as partial:
        partial.write_bytes(encode_picture(target.suffix.lower(), picture))
    return found
