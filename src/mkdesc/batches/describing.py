"""Patches in a file to descriptors in a file, in pieces of some thousand rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc._support.check import check_not_both
from mkdesc._support.files import only_here
from mkdesc._support.locations import as_location, is_address
from mkdesc._support.progress import Progress, no_progress
from mkdesc._support.targets import check_folder, check_target, is_inside, is_same
from mkdesc._support.work import Workers, in_order, share_memory
from mkdesc._support.workfolder import same_input
from mkdesc.batches.outputs import FORMATS, OWN_NPY, Output
from mkdesc.datasets.patch_files import PatchSource, open_patches
from mkdesc.descriptor import MKD
from mkdesc.models import PATCH_MODEL, bundled_models, model_file, open_model, parse_model

#: Patches of a piece of work: a part of the output.
ROWS = 16_384


@dataclass(frozen=True)
class DescribeSettings:
    """What describes: a model, or kernels without whitening.

    Attributes
    ----------
    model
        What :func:`mkdesc.models.open_model` takes; None: ``raw`` says it.
    raw
        Kernels, as for :class:`mkdesc.MKD`.
    patch_size
        Side of the patches, for ``raw``.
    resize
        Whether patches of another size are resampled.
    device
        Where PyTorch computes; None: compiled code on the CPU does.
    dtype
        Of the descriptors; as ``output`` of :class:`mkdesc.MKD`.
    """

    model: str | None
    raw: str | None
    patch_size: int
    resize: bool = False
    device: str | None = None
    dtype: str = "float32"

    def open(self) -> MKD:
        """The descriptor, of one thread: pieces are what is done at a time."""
        if self.model is None:
            mkd = MKD(self.raw or "polar+cartesian", self.patch_size)
        else:
            mkd = open_model(self.model)
        own = {} if self.device is None else {"backend": "torch", "device": self.device}
        return mkd.set_params(n_threads=1, resize=self.resize, output=self.dtype, **own)

    def inputs(self) -> dict[str, Path]:
        """The file of the model, if there is one."""
        file = model_file(self.model)
        return {} if file is None else {"model": file}


def describe_file(
    source: str | Path,
    output: str | Path,
    *,
    model: str | None = None,
    raw: str | None = None,
    resize: bool = False,
    device: str | None = None,
    workers: Workers = None,
    progress: Progress = no_progress,
    overwrite: bool = False,
    dtype: str = "float32",
) -> tuple[int, int]:
    """Describe the patches of a file; interrupted, the same call goes on.

    Parameters
    ----------
    source
        Patches, as :func:`mkdesc.datasets.open_patches` takes them.
    output
        ``.npy``; ``.zarr``, an array; or ``.parquet``, a folder of files with a column
        ``descriptor``. The latter two may be addresses that fsspec knows.
    model
        What :func:`mkdesc.models.open_model` takes; None: ``extended``.
    raw
        Instead, kernels without whitening, such as ``"polar+cartesian"``.
    resize
        Whether patches of another size than the model's are resampled or refused.
    device
        Where PyTorch computes, such as ``"cuda"``; None: compiled code on the CPU does.
    workers
        So many threads (None: one per core), an executor, or a Dask client.
    progress
        Told of every piece, in patches.
    overwrite
        Whether to replace a file ``.npy`` that this function did not write.
    dtype
        Of the descriptors: ``"float32"``, ``"int8"``, ``"uint8"`` or ``"bits"``, packed; as
        ``output`` of :class:`mkdesc.MKD`.

    Returns
    -------
    tuple of int
        Number and length of the descriptors. Patches that cannot be described (NaN) are a
        ValueError in the end, which names them; all others are kept for the next call.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "patches.npy", np.zeros((5, 64, 64), np.uint8))
    >>> describe_file(folder / "patches.npy", folder / "descriptors.npy")
    (5, 128)
    >>> np.load(folder / "descriptors.npy").shape
    (5, 128)
    """
    check_not_both(raw=raw, model=model)
    location = _checked_location(output)
    _check_apart(output, source)
    patches = open_patches(source)
    if Path(location).suffix == ".npy":
        check_target(location, (as_location(source), model_file(model)), OWN_NPY, overwrite)
    for name in (str(source), str(output)):
        if name.startswith("memory://") and not share_memory(workers):
            raise ValueError(f"{name}: other processes cannot read the memory of this one")
    if model is None and raw is None:
        model = PATCH_MODEL
    how = DescribeSettings(model and _everywhere(model), raw, patches.size, resize, device, dtype)
    mkd = how.open()
    if patches.squares != mkd.squares:
        raise ValueError(
            f"{source}: has {patches.squares} square(s) of each keypoint, but the model looks at "
            f"{mkd.squares}: expected patches (N, {mkd.squares}, W, W)"
        )
    described = mkd.transform(np.empty((0, mkd.squares, patches.size, patches.size), np.uint8))
    width, kind = described.shape[1], described.dtype.name
    target = FORMATS[Path(location).suffix](location, patches.count, width, ROWS, kind)
    work = target.work
    with nullcontext() if is_address(location) else only_here(work.location):
        settings = asdict(how) | {"shape": [patches.count, width], "rows": ROWS}
        inputs: dict[str, str | Path] = {"patches": as_location(source), **how.inputs()}
        known = work.open(settings, inputs)
        target.begin()
        _fill(target, source, patches, how, known, progress, workers)
        for name, read in inputs.items():
            if same_input(known[name], read) is None:
                what = source if name == "patches" else read
                raise ValueError(
                    f"{what}: changed while it was read; remove {work.location} and describe again"
                )
        work.complete()
        target.finish()
    return patches.count, width


def _fill(
    target: Output,
    source: str | Path,
    patches: PatchSource,
    how: DescribeSettings,
    known: dict[str, str],
    progress: Progress,
    workers: Workers,
) -> None:
    """Describe what the output lacks."""
    there, work = target.written(), target.work
    missing = [part for part in range(target.parts) if part not in there]
    todo = [last - first for first, last in map(target.bounds, missing)]
    done = patches.count - sum(todo)
    progress("describing", done, patches.count)
    bad = []
    pieces = _pieces(patches, missing, target.rows)
    describe = partial(_describe, as_location(source), how, known, target)
    found = in_order(describe, pieces, workers, partial(_lost, target))
    for reason, count in zip(found, todo, strict=True):
        if reason is not None:
            bad.append(reason)
        done += count
        progress("describing", done, patches.count)
    if bad and not target.written():
        target.discard()
        raise ValueError(bad[0])
    if bad:
        raise ValueError(
            f"{source}: {len(bad)} of {target.parts} parts could not be described, the others "
            f"are kept in {work.location}: {'; '.join(bad[:3])}{', ...' if len(bad) > 3 else ''}"
        )


def _everywhere(model: str) -> str:
    """The name of a model in every process: files by their absolute path."""
    choice = parse_model(model)
    if choice.model in bundled_models() or not choice.exists:
        return model
    return ":".join(filter(None, [str(Path(choice.model).absolute()), choice.set, choice.method]))


def _check_apart(output: str | Path, source: str | Path) -> None:
    """Refuse an output that is the input, or in it, or that has it in it.

    What changes while it is read is refused in the end; this says it before the work.
    """
    place, read = as_location(output), as_location(source)
    if place == read or (not is_address(place) and is_same(place, read)):
        raise ValueError(f"{output}: is an input and would be overwritten; choose another name")
    if place.startswith(f"{read}/") or is_inside(place, read):
        raise ValueError(f"output: {output} lies in the input {source}; choose another place")
    if read.startswith(f"{place}/") or is_inside(read, place):
        raise ValueError(f"output: {output} has the input {source} in it; choose another place")


def _checked_location(output: str | Path) -> str:
    location = as_location(output)
    suffix = Path(location).suffix
    if suffix not in FORMATS or (suffix == ".npy" and is_address(location)):
        kinds = "a name ending in .npy, .zarr or .parquet (at an address one of the latter two)"
        raise ValueError(f"output: expected {kinds}, got {output}")
    if not is_address(location) and not Path(location).parent.is_dir():
        check_folder(Path(output).parent)
        raise FileNotFoundError(f"output: the folder {Path(output).parent} does not exist")
    FORMATS[suffix].load()
    return location


#: Rows to describe, and the patches themselves if they cannot be had otherwise.
Piece = tuple[int, NDArray[Any] | None]


def _pieces(patches: PatchSource, missing: list[int], rows: int) -> Iterator[Piece]:
    if patches.stream is None:
        yield from ((part, None) for part in missing)
        return
    wanted = set(missing)
    for part, block in enumerate(patches.blocks(rows)):
        if part in wanted:
            yield part, block


def _describe(
    source: str, how: DescribeSettings, known: dict[str, str], output: Output, piece: Piece
) -> str | None:
    """Describe a piece into its part of the output; if that cannot be, why."""
    part, patches = piece
    first, last = output.bounds(part)
    try:
        if patches is None:
            patches = _opened(source, known["patches"]).read(first, last)
        rows = _descriptor(how, known.get("model")).transform(patches, first=first)
    except ValueError as error:
        return str(error)
    output.write(part, rows)
    return None


def _lost(output: Output, piece: Piece, reason: str) -> str:
    first, last = output.bounds(piece[0])
    return f"patches {first} to {last - 1}: {reason}"


# Workers outlive a run: what they keep is known by the fingerprints of files, too.
@lru_cache(1)
def _opened(source: str, known: str) -> PatchSource:
    return open_patches(source)


@lru_cache(1)
def _descriptor(how: DescribeSettings, known: str | None) -> MKD:
    return how.open()
