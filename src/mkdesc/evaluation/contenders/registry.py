"""From names to descriptors.

===========================================  ======================================================
``extended``, ``paper``, ...                 the models that come with the package
``FILE.safetensors``                         a model file of mkdesc
``FILE.safetensors:SET:METHOD``              a file in the layout of kornia/mkd: its training set
                                             (liberty, ...) and whitening (lw, pca, pcawt, pcaws)
``mkd-raw``, ``mkd-polar-raw``,              the descriptors of the paper before whitening
``mkd-cartesian-raw``
``opencv-sift``, ``rootsift``                OpenCV's SIFT, and its square root
``opencv-vgg``, ``opencv-daisy``,            what only opencv-contrib has
``opencv-boostdesc``, ``opencv-teblid``,
``opencv-beblid``, ``opencv-latch``
``tfeat:FILE``, ``hardnet:FILE``             TFeat and HardNet with these weights, by kornia
``kornia-sift``, ``kornia-hardnet[:FILE]``,  kornia's, with weights given or in torch's cache;
``kornia-sosnet[:FILE]``,                    its MKD raw or with a whitening
``kornia-mkd[:FILE:SET:METHOD]``
``csv:FOLDER``                               HPatches descriptors in the official CSV layout
``NAME+METHOD``                              any of these with a whitening learned on the training
                                             part of the benchmark: lw, gda, pca, pcawt, pcaws, or
                                             zca (the "+" variants of the HPatches article)
===========================================  ======================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from mkdesc.descriptor import MKD, check_one_square
from mkdesc.evaluation.contenders import from_kornia as kornia
from mkdesc.evaluation.contenders import from_opencv as opencv
from mkdesc.evaluation.contenders.base import (
    CsvDescriptor,
    Descriptor,
    LearnedDescriptor,
    PatchDescriptor,
    ProjectedDescriptor,
    file_hash,
)
from mkdesc.heads.whitening import METHODS
from mkdesc.images.reading import opencv as load_opencv
from mkdesc.kernels.parametrization import as_parametrization
from mkdesc.models import bundled_models, load_model, open_model, parse_model, read_card
from mkdesc.models.files import new_name

#: Size that raw descriptors are computed at; other patches are resized to it.
PATCH_SIZE = 64
#: Whitenings that can be learned on the training part.
LEARNED = (*METHODS, "zca")

_RAW = {
    "mkd-raw": "polar+cartesian",
    "mkd-polar-raw": "polar",
    "mkd-cartesian-raw": "cartesian",
}
_POLAR_DIMS = 175


def patch_models() -> list[str]:
    """Bundled models that a patch is enough for: they look at one square of a keypoint.

    Examples
    --------
    >>> "extended" in patch_models(), "photo" in patch_models()
    (True, False)
    """
    return [name for name in bundled_models() if load_model(name).squares == 1]


def default_descriptors() -> list[str]:
    """What is evaluated when nothing is named: models for patches, raw MKD, SIFT and RootSIFT."""
    return [*patch_models(), "mkd-raw", "opencv-sift", "rootsift"]


def named_descriptors() -> list[str]:
    """Names that need nothing else: no file, no training part.

    Examples
    --------
    >>> {"mkd-raw", "opencv-sift", "rootsift"} <= set(named_descriptors())
    True
    """
    return [*patch_models(), *_RAW, "opencv-sift", "rootsift", *opencv.CONTRIB, *kornia.MODULES]


def get_descriptors(
    wanted: Iterable[str | Descriptor | Callable[..., Any]],
) -> list[Descriptor]:
    """Several descriptors, each once; see :func:`get_descriptor`."""
    found = [get_descriptor(one) for one in wanted]
    names = [descriptor.name for descriptor in found]
    if not found:
        raise ValueError("descriptors: expected at least one, got none")
    if len(set(names)) < len(names):
        raise ValueError(f"descriptors: expected different names, got {', '.join(names)}")
    return found


def get_descriptor(wanted: str | Descriptor | Callable[..., Any]) -> Descriptor:
    """The descriptor of a name, as the table at the top of this module has them.

    Parameters
    ----------
    wanted
        A name; a descriptor; or any callable that takes uint8 patches (N, W, W) and returns
        (N, D), which is then known by its ``__name__``.

    Examples
    --------
    >>> import numpy as np
    >>> get_descriptor("mkd-polar-raw").describe(np.zeros((2, 65, 65), np.uint8)).shape
    (2, 175)
    >>> get_descriptor("opencv-sift+zca").method
    'zca'
    """
    if isinstance(wanted, Descriptor):
        return wanted
    if not isinstance(wanted, str):
        if not callable(wanted):
            raise ValueError(f"descriptor: expected a name or a callable, got {wanted!r}")
        return PatchDescriptor(getattr(wanted, "__name__", type(wanted).__name__), wanted)
    base, plus, method = wanted.rpartition("+")
    if plus and method in LEARNED:
        found = get_descriptor(base)
        if isinstance(found, (LearnedDescriptor, ProjectedDescriptor)):
            raise ValueError(f"descriptor {wanted!r}: expected one whitening, got two")
        return LearnedDescriptor(wanted, found, method)
    return _fixed(wanted)


def _fixed(name: str) -> PatchDescriptor | ProjectedDescriptor | CsvDescriptor:
    if name in _RAW:
        return _raw(name)
    if name in ("opencv-sift", "rootsift"):
        sift = opencv.describe_sift
        describe = sift if name == "opencv-sift" else lambda patches: opencv.root(sift(patches))
        return PatchDescriptor(name, describe, _opencv_version())
    if name in opencv.CONTRIB:
        opencv.contrib()  # says now, not after hours, that it is not there
        describe = partial(opencv.describe_contrib, name)
        return PatchDescriptor(name, describe, _opencv_version())
    kind, _, rest = name.partition(":")
    if kind in kornia.NETWORKS and not Path(rest).is_file():
        raise ValueError(f"descriptor {name!r}: expected {kind}:FILE with a file of weights")
    if kind in kornia.NETWORKS or kind in kornia.MODULES:
        return _kornia(name, kind, rest)
    if kind == "csv":
        if not Path(rest).is_dir():
            raise ValueError(
                f"descriptor {name!r}: expected csv:FOLDER with a folder of CSV files"
            )
        return CsvDescriptor(name, Path(rest))
    return _model(name)


def _opencv_version() -> dict[str, str]:
    return {"opencv": load_opencv().__version__}


def _raw(name: str) -> PatchDescriptor:
    mkd = MKD(_RAW[name], PATCH_SIZE, resize=True)
    if name == "mkd-raw":
        return PatchDescriptor(name, mkd.transform)
    polar = name == "mkd-polar-raw"
    columns = (0, _POLAR_DIMS) if polar else (_POLAR_DIMS, None)
    return PatchDescriptor(name, mkd.transform, {}, _raw("mkd-raw"), columns)


def _kornia(name: str, kind: str, rest: str) -> PatchDescriptor:
    given, whitening = rest or None, None
    if kind == "kornia-mkd" and rest:
        given, subset, method = parse_model(rest)
        if subset is None or method is None:
            raise ValueError(f"descriptor {name!r}: expected kornia-mkd:FILE:SET:METHOD")
        whitening = (subset, method)
    weights = kornia.weights_file(kind, given)
    describe = kornia.describe_with_kornia(kind, weights, whitening)
    identity = {} if weights is None else {"sha256": file_hash(weights)}
    return PatchDescriptor(name, describe, identity)


def _model(name: str) -> ProjectedDescriptor:
    """A bundled model, a model file, or a file of several models with a choice from it."""
    choice = parse_model(name)
    if not choice.exists:
        raise ValueError(
            f"no descriptor {name!r}{new_name(name)}: neither a file nor one of "
            f"{', '.join(named_descriptors())}, tfeat:FILE, hardnet:FILE, csv:FOLDER, "
            "FILE:SET:METHOD or one of these with +lw, +gda, +pca, +zca"
        )
    mkd = open_model(name)
    check_one_square(mkd, f"descriptor {name!r}", "a patch of a benchmark")
    if choice.set is None:
        identity = {"sha256": read_card(name).sha256}
    else:
        identity = {
            "sha256": file_hash(choice.model),
            "whitening": f"{choice.set}:{choice.method}",
        }
    head = mkd.effective_head()
    assert head is not None  # model files have one
    describe = mkd.set_params(resize=True).transform
    return ProjectedDescriptor(name, describe, _base(mkd), head, identity)


def _base(mkd: MKD) -> PatchDescriptor:
    """The raw descriptor of a model, by the same name for all models that share it."""
    kernels = str(as_parametrization(mkd.parametrization))
    if kernels == str(as_parametrization(_RAW["mkd-raw"])) and mkd.patch_size == PATCH_SIZE:
        return _raw("mkd-raw")
    raw = MKD(mkd.parametrization, mkd.patch_size, resize=True)
    return PatchDescriptor(f"mkd {kernels} {mkd.patch_size} px", raw.transform)
