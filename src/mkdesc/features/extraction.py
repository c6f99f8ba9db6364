"""Photographs to features in the format of one's choice; interrupted, the same call goes on."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from mkdesc._support.check import check_choice
from mkdesc._support.files import Damaged, own_folder
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.targets import check_target
from mkdesc._support.work import Workers
from mkdesc._support.workfolder import same_input
from mkdesc.datasets.colmap import pycolmap_module
from mkdesc.features.folder import Extracted, extract_features, remove_features, work_folder
from mkdesc.features.settings import Settings
from mkdesc.features.stores import colmap_database, hloc
from mkdesc.images.listing import check_names, find_images
from mkdesc.images.reading import MAX_PIXELS

#: A folder with a file per image, hloc's HDF5 file, COLMAP's database.
FORMATS = ("npz", "hloc", "colmap")
#: What the name of a file says by its ending.
SUFFIXES = {".h5": "hloc", ".hdf5": "hloc", ".db": "colmap"}


def extract_to(
    sources: Sequence[str | Path],
    output: str | Path,
    *,
    settings: Settings | None = None,
    format: str | None = None,
    progress: Progress = no_progress,
    max_pixels: int = MAX_PIXELS,
    workers: Workers = None,
    device: str | None = None,
) -> Extracted:
    """Detect and describe; what is there already is kept.

    Parameters
    ----------
    sources
        Photographs and folders of them, as for :func:`mkdesc.images.find_images`.
    output
        A folder (npz), or the file of another program: replaced as a whole at the end. Until
        then features wait in a folder beside it, ``<output>.parts``, where they stay if the
        work is interrupted and from where the next call takes them. What is damaged is made
        again; a damaged file stays as ``<output>.damaged``.
    settings
        How to detect and describe; one output holds features of one kind only. Files of other
        programs are made with ``as_stored``: that is how these read photographs.
    format
        One of :data:`FORMATS`; None: what the name of ``output`` says.
    progress
        Told of every image.
    max_pixels
        Larger images are refused.
    workers
        Images at a time (None: one per core), an executor or a Dask client.
    device
        Where PyTorch describes patches, such as ``"cuda"``; None: compiled code on the CPU does.

    Returns
    -------
    Extracted
        A bad image stops nothing; it is listed. ValueError if all are bad.

    Examples
    --------
    >>> import tempfile, cv2, numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> noise = np.random.default_rng(0).integers(0, 256, (80, 80), np.uint8)
    >>> _ = cv2.imwrite(str(folder / "a.png"), noise)
    >>> extract_to([folder], folder / "features").done
    ['a.png']
    >>> extract_to([folder], folder / "features").kept
    ['a.png']
    """
    how = settings or Settings()
    target = Path(output)
    kind = _checked_format(target, format)
    images = find_images(sources)
    if kind != "npz":
        how.check_numbers(kind)
        how = replace(how, as_stored=True)

    def describe(some: Mapping[str, Path], folder: Path) -> Extracted:
        return extract_features(
            some,
            folder,
            settings=how,
            progress=progress,
            max_pixels=max_pixels,
            workers=workers,
            device=device,
        )

    if kind == "npz":
        how.make(device=device)  # refuses what is wrong before there is a folder
        with own_folder(target, lambda: _say_waiting(target), keep=target.is_dir()):
            found = describe(images, target)
    else:
        found = _extract_into(kind, target, images, how.to_json(), describe)
    if len(found.bad) == len(images):
        raise ValueError(
            f"none of {len(images)} images is usable; {next(iter(found.bad.values()))}"
        )
    return found


def _checked_format(output: Path, format: str | None) -> str:
    kind = SUFFIXES.get(output.suffix, "npz") if format is None else format
    check_choice("format", kind, FORMATS)
    if SUFFIXES.get(output.suffix, kind) != kind or (kind == "npz" and output.suffix == ".npz"):
        expected = "a folder" if kind == "npz" else f"a file for {kind}"
        raise ValueError(f"output: expected {expected}, got {output}")
    return kind


def _extract_into(
    kind: str,
    target: Path,
    images: Mapping[str, Path],
    settings: str,
    describe: Callable[[Mapping[str, Path], Path], Extracted],
) -> Extracted:
    """Describe what a store lacks into a folder beside it, add it as a whole, and clean up."""
    check_names(images, kind)
    if os.path.lexists(target):
        check_target(target)
    store: ModuleType = hloc
    own = {}
    if kind == "colmap":
        pycolmap_module()  # said before the work if it is not there
        store, own["images"] = colmap_database, colmap_database.common_folder(images)
    with own_folder(_parts(target), lambda: _say_waiting(target)) as parts:
        known = _stored(store, target, settings)
        stored = sorted(known.keys() & images.keys())
        if changed := [name for name in stored if not same_input(known[name], images[name])]:
            raise ValueError(
                f"{target}: {len(changed)} photographs have changed since it was written, for "
                f"example {changed[0]}; remove it to describe all again, or "
                "choose another output"
            )
        work_folder(parts).open(json.loads(settings))  # refuses what is not ours to remove
        missing = {name: file for name, file in images.items() if name not in known}
        found = Extracted([], [], {})
        if missing:
            found = describe(missing, parts)
            described = sorted({*found.done, *found.kept})
            if described:
                store.add_features(target, parts, described, settings, **own)
        # Of stored ones too: an earlier run may have ended before it cleaned up.
        remove_features(parts, images.keys() - found.bad.keys())
    return found._replace(kept=sorted({*stored, *found.kept}))


def _free_name(path: Path) -> Path:
    """A name that no file has: this one, or with a number behind it."""
    names = (path, *(path.with_name(f"{path.name}-{k}") for k in range(2, 1000)))
    return next(name for name in names if not os.path.lexists(name))


def _parts(target: Path) -> Path:
    return target.with_name(f"{target.name}.parts")


def _say_waiting(target: Path) -> None:
    warnings.warn(f"{target}: waiting for another process that is writing it", stacklevel=2)


def _stored(store: ModuleType, target: Path, settings: str) -> dict[str, str]:
    """Fingerprints of the images that a store has; a damaged store is put aside."""
    try:
        return dict(store.stored_images(target, settings))
    except Damaged as error:
        aside = _free_name(target.with_name(f"{target.name}.damaged"))
        target.rename(aside)
        warnings.warn(f"{error}; kept as {aside.name}, and made again", stacklevel=2)
        return {}
