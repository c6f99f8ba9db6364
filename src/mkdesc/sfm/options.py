"""How images become a model, and what lies in the folder of a reconstruction."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mkdesc.features.settings import Settings

#: Names inside the folder of a reconstruction.
FEATURES, DATABASE, REPORT = "features", "database.db", "report.json"


#: Settings that are written elsewhere, or matches do not depend on.
_OTHERS = ("settings", "refine", "refine_centres", "seed", "device")
#: Which keypoints may be moved to where the photographs agree.
REFINED = ("none", "tracks")


@dataclass(frozen=True)
class SfmOptions:
    """How images become a model.

    Attributes
    ----------
    settings
        How images are described.
    belief
        Which pairs are used. ``"mapping"``: all but those whose matches are or may be wrong.
        ``"strict"``: those that two photographs alone would be believed. ``"off"``: all.
    refine
        ``"tracks"``: keypoints are moved to where the gray values of all photographs agree
        (:mod:`mkdesc.sfm.tracks`). ``"none"``: they stay where they were found.
    cameras
        Which images share a camera: auto, single, per-image, per-folder.
    camera_model
        COLMAP's name of the camera model.
    refine_centres
        Whether to move principal points (:mod:`mkdesc.sfm.principal_points`) or leave them in the
        middle.
    seed
        The same seed gives the same model on the same machine, mapped by one thread; None: all
        threads are used, and models may differ a little from run to run.
    device
        Where PyTorch describes and matches, such as ``"cuda"``; None: compiled code on the CPU
        does.
    """

    settings: Settings = Settings(max_keypoints=4096, sensitive=True)  # noqa: RUF009 (frozen)
    belief: str = "mapping"
    refine: str = "tracks"
    cameras: str = "auto"
    camera_model: str = "SIMPLE_RADIAL"
    refine_centres: bool = True
    seed: int | None = None
    device: str | None = None

    def to_json(self) -> str:
        """As text: what matches in a database depend on."""
        own = {key: value for key, value in asdict(self).items() if key not in _OTHERS}
        return json.dumps({**json.loads(self.settings.to_json()), **own}, indent=1)


class Matched(NamedTuple):
    """A database of verified matches.

    Attributes
    ----------
    database
        COLMAP's file.
    images
        How many of them are in it.
    bad
        Images that were left out, and why.
    made_of
        Settings, and the number and a digest of the pairs: what the matches depend on.
    """

    database: Path
    images: int
    bad: dict[str, str]
    made_of: dict[str, Any]
