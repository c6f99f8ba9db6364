"""``mkdesc features``: keypoints and descriptors of many photographs, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mkdesc.cli.options import Detector, Keypoints, MaxPixels, Model, Side, Upright
from mkdesc.cli.progress import console, progress, resumable
from mkdesc.features.features import DEFAULT_MODEL
from mkdesc.images.reading import MAX_PIXELS

__all__ = ["command"]

FORMATS = ("npz", "hloc", "colmap")
#: What a name for the output says by its ending.
SUFFIXES = {".h5": "hloc", ".hdf5": "hloc", ".db": "colmap"}


def command(
    images: Annotated[list[Path], typer.Argument(help="Photographs, or folders of them.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Folder (npz), .h5 file (hloc) or .db (colmap)."
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="npz: a folder with a file per image; hloc: HDF5; colmap: a database. Default: "
            "what the name of OUT says.",
        ),
    ] = None,
    keypoints: Keypoints = 4096,
    detector: Detector = "sift",
    model: Model = DEFAULT_MODEL,
    side: Side = None,
    upright: Upright = False,
    dtype: Annotated[str, typer.Option(help="Of descriptors: float32 or uint8.")] = "float32",
    max_pixels: MaxPixels = MAX_PIXELS,
) -> None:
    """Detect and describe; a second run goes on where the first one stopped."""
    from mkdesc.features.folder import Settings, extract_features, refuse_foreign, remove_features
    from mkdesc.images.reading import find_images

    if kind is None:
        kind = SUFFIXES.get(output.suffix, "npz")
    if kind not in FORMATS:
        raise ValueError(f"--format: expected one of {', '.join(FORMATS)}, got {kind!r}")
    if SUFFIXES.get(output.suffix, kind) != kind or (kind == "npz" and output.suffix == ".npz"):
        expected = "a folder" if kind == "npz" else f"a file for {kind}"
        raise ValueError(f"--output: expected {expected}, got {output}")
    settings = Settings(detector, keypoints, model, side, upright, dtype)
    found = find_images(images)
    store = _store(kind, found)
    made = settings.to_json()
    stored = store.stored_names(output, made) if store else set()
    missing = {name: file for name, file in found.items() if name not in stored}
    folder = output if store is None else output.with_name(f"{output.name}.parts")
    bad: dict[str, str] = {}
    if store is not None:
        refuse_foreign(folder)
    if missing:
        with resumable(), progress("images") as bar:
            task = bar.add_task("describing", total=len(missing))
            done = extract_features(
                missing, folder, settings, lambda n, _: bar.update(task, completed=n), max_pixels
            )
            bad = done.bad
            if store is not None:
                described = sorted({*done.done, *done.kept})
                if described:
                    store.add(output, folder, described, made)
                remove_features(folder, described)
    if len(bad) == len(found):
        raise ValueError(f"none of {len(found)} images is usable; {next(iter(bad.values()))}")
    for reason in bad.values():
        console.print(f"left out: {reason}", soft_wrap=True)
    console.print(f"{output}: {len(found) - len(bad)} of {len(found)} images", soft_wrap=True)


class _Store:
    """Where features go that are not left in their folder."""

    def __init__(self, module: Any, **fixed: Any) -> None:
        self.stored_names = module.stored_names
        self._add, self._fixed = module.add_features, fixed

    def add(self, path: Path, folder: Path, names: list[str], settings: str) -> None:
        self._add(path, folder, names, settings, **self._fixed)


def _store(kind: str, found: dict[str, Path]) -> _Store | None:
    from mkdesc.features.stores import colmap_database as database
    from mkdesc.features.stores import hloc

    if kind == "hloc":
        return _Store(hloc)
    if kind == "colmap":
        database.pycolmap_module()
        return _Store(database, images=database.common_folder(found))
    return None
