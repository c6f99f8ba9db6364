"""Features of an image, and the ``.npz`` file that keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.files import atomic_path
from mkdesc._support.npy import BROKEN, names_in_archive, read_archive, reason_of
from mkdesc._support.targets import make_folder
from mkdesc._support.workfolder import content_part
from mkdesc.features.features import Features
from mkdesc.images.detectors.keypoints import Keypoints

if TYPE_CHECKING:
    import cv2
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """Keypoints and descriptors of an image, as they are kept.

    Attributes
    ----------
    keypoints
        (N, 4) float32: x, y, sigma, angle; pixel centres at integers, degrees clockwise.
    scores
        (N,) float32: responses of the detector, falling.
    descriptors
        (N, D) float32, int8 or uint8.
    image_size
        (2,) int64: width and height of the image that keypoints lie on.
    source
        () str: fingerprint of the file that was described, if it was a file.
    """

    keypoints: NDArray[np.float32]
    scores: NDArray[np.float32]
    descriptors: NDArray[Any]
    image_size: NDArray[np.int64]
    source: NDArray[Any] = field(default_factory=lambda: np.array(""))

    def __len__(self) -> int:
        return len(self.keypoints)

    def __repr__(self) -> str:
        kind = f"{self.descriptors.shape[1]} x {self.descriptors.dtype}"
        return f"<ImageFeatures: {len(self):,} keypoints, {kind} each>"

    def to_opencv(self) -> list[cv2.KeyPoint]:
        """The keypoints as OpenCV has them."""
        return self._as_keypoints().to_opencv()

    def to_dataframe(self) -> pd.DataFrame:
        """A data frame of pandas: ``x``, ``y``, ``sigma``, ``angle``, ``score`` of keypoints."""
        return self._as_keypoints().to_dataframe()

    def _as_keypoints(self) -> Keypoints:
        return Keypoints(self.keypoints.astype(np.float64), self.scores)


#: Of the arrays of a file.
_NAMES = tuple(one.name for one in fields(ImageFeatures))


def features_path(folder: Path, name: str) -> Path:
    """Where in a folder of features those of an image are."""
    return folder / f"{name}.npz"


def describe_image(
    features: Features, image: NDArray[Any], mask: NDArray[np.uint8] | None = None
) -> ImageFeatures:
    """What is kept of an image.

    Parameters
    ----------
    features
        How to detect and describe.
    image, mask
        As for :meth:`mkdesc.Features.detect`.
    """
    found, descriptors = features.extract(image, mask)
    return ImageFeatures(
        found.points.astype(np.float32),
        found.scores,
        descriptors,
        np.array(image.shape[1::-1], np.int64),
    )


def save_file(path: Path, found: ImageFeatures) -> None:
    """Write features to a file, whole or not at all."""
    whole = BytesIO()  # one write: where many threads work, each costs a wait for the others
    np.savez(whole, **vars(found))
    make_folder(path.parent)
    with atomic_path(path) as partial:
        partial.write_bytes(whole.getbuffer())


def load_features(folder: str | Path, name: str) -> ImageFeatures:
    """The features of an image out of a folder.

    Parameters
    ----------
    folder
        What :func:`extract_features` wrote.
    name
        Of the image.

    Examples
    --------
    >>> import tempfile
    >>> from mkdesc.features import extract_to
    >>> from mkdesc.features.settings import Settings
    >>> from mkdesc.images import write_demo
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write_demo(folder / "demo")
    >>> street, made = folder / "demo" / "street_a.jpg", folder / "features"
    >>> _ = extract_to([street], made, settings=Settings(max_keypoints=50))
    >>> load_features(made, "street_a.jpg").descriptors.shape
    (50, 128)
    """
    return load_file(features_path(Path(folder), name))


def load_file(path: Path) -> ImageFeatures:
    """The same by the file of the features."""
    try:
        found = ImageFeatures(*read_archive(path, _NAMES))
        _check_arrays(found)
    except (FileNotFoundError, PermissionError):
        raise
    except BROKEN as error:
        raise ValueError(f"{path}: not a file of features ({reason_of(error, path)})") from None
    return found


def check_own(path: Path) -> None:
    """Refuse to replace a file that is not of features, not even a damaged one."""
    names = names_in_archive(path)
    if names is None:
        with path.open("rb") as file:
            own = file.read(4) in (b"", b"PK\x03\x04", bytes(4))  # cut, or zeros by a power cut
    else:
        own = names == set(_NAMES)
    if not own:
        raise FileExistsError(
            f"{path}: mkdesc did not write this file and does not replace it; move it away, or "
            "choose another output"
        )


def content_of(folder: Path, name: str) -> str:
    """A digest of the file that the features of an image were made of."""
    (source,) = read_archive(features_path(folder, name), ("source",))
    return content_part(str(source))


def _check_arrays(found: ImageFeatures) -> None:
    """Refuse arrays that cannot be features."""
    count = len(found.keypoints) if found.keypoints.ndim else 0
    expected = {
        "keypoints": (found.keypoints, (count, 4), "f"),
        "scores": (found.scores, (count,), "f"),
        "descriptors": (found.descriptors, (count, *found.descriptors.shape[1:2]), "fiu"),
        "image_size": (found.image_size, (2,), "iu"),
        "source": (found.source, (), "U"),
    }
    for name, (array, shape, kinds) in expected.items():
        if array.shape != shape or array.dtype.kind not in kinds:
            raise ValueError(f"{name}: {array.dtype} {array.shape}")
    str(found.source)  # refuses numbers that are no characters
