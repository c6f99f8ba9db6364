"""What features depend on besides the image, as plain values that a file can hold."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from mkdesc._support.version import __version__
from mkdesc.features.choices import sides_for
from mkdesc.features.features import Features
from mkdesc.images.detectors.registry import (
    DEFAULT_DETECTOR,
    Detector,
    make_detector,
    settings_of,
)
from mkdesc.models import DEFAULT_MODEL, bundled_models, load_model, read_card


@dataclass(frozen=True)
class Settings:
    """All that features depend on, besides the image; as for :class:`mkdesc.Features`.

    ``sensitive`` asks for weak keypoints too, where the detector has settings for that: what a
    reconstruction wants. ``as_stored`` leaves photographs as their files store them, as COLMAP
    and hloc do; otherwise they are turned as their EXIF data say, as ``cv2.imread`` does.
    """

    detector: str = DEFAULT_DETECTOR
    max_keypoints: int | None = None
    model: str = DEFAULT_MODEL
    side: float | tuple[float, ...] | None = None
    upright: bool = False
    output: str = "float32"
    sensitive: bool = False
    as_stored: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _plain(getattr(self, field.name)))

    def make(self, n_threads: int | None = None, device: str | None = None) -> Features:
        """The features these settings describe."""
        return Features(
            self._detector(n_threads, device),
            self.max_keypoints,
            self.model,
            self.side,
            self.upright,
            self.output,
            n_threads,
            device,
        )

    def check_numbers(self, whose: str) -> None:
        """Refuse bits where something compares numbers."""
        if self.output == "bits":
            raise ValueError(
                f"output: {whose} compares numbers; expected float32, int8 or uint8, got bits"
            )

    def _detector(self, n_threads: int | None = None, device: str | None = None) -> Detector:
        return make_detector(
            self.detector,
            max_keypoints=self.max_keypoints,
            upright=self.upright,
            n_threads=n_threads,
            device=device,
            sensitive=self.sensitive,
        )

    def to_json(self) -> str:
        """As text, with what names stand for: the model, and how keypoints are found and cut."""
        detector = self._detector()
        side = self.side
        if side is None:
            sides = sides_for(detector, load_model(self.model))
            side = sides if len(sides) > 1 else sides[0]
        made_of = {
            "mkdesc": __version__,
            "model": _identity(self.model),
            "side": side,
            "detector_settings": settings_of(detector),
        }
        return json.dumps({**asdict(self), **made_of}, indent=1)


def _plain(value: Any) -> Any:
    """A setting as it is compared and written: JSON has lists, and knows no numbers of numpy's."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _identity(model: str) -> str:
    """The digest of a model; with the name, if it is a bundled one, by whatever file."""
    own = read_card(model).sha256
    known = {own: model} if model in bundled_models() else _bundled_digests()
    return f"{known[own]} ({own[:16]})" if own in known else f"sha256 {own}"


def _bundled_digests() -> dict[str, str]:
    return {read_card(name).sha256: name for name in bundled_models()}
