"""MKD: patches in, descriptors out.

May use: _support, kernels, heads, compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import (
    check_choice,
    check_integer,
    check_not_both,
    check_number,
    checked_sides,
)
from mkdesc._support.parameters import Estimator
from mkdesc._support.threads import checked_threads
from mkdesc.compute.backends import BACKENDS, load_backend
from mkdesc.heads.head import Head
from mkdesc.heads.quantise import OUTPUTS, quantise
from mkdesc.heads.whitening import Whitening
from mkdesc.kernels.parametrization import Parametrization, as_parametrization
from mkdesc.kernels.patches import (
    SMALLEST,
    as_patches,
    check_range,
    naming_stacks,
    resize_patches,
)

if TYPE_CHECKING:
    from sklearn.utils import Tags


#: Sides of the squares of a keypoint, in units of its sigma: one, or several; None: not known.
Side = float | Sequence[float] | None

#: Keypoints whose patches are resized, stacked or rounded at a time; bounds the memory beyond
#: input and output.
CHUNK = 2048


def check_one_square(mkd: MKD, name: str, what: str) -> None:
    """Refuse a model, by its name, that looks at several squares where ``what`` shows one.

    >>> check_one_square(MKD("polar", side=(14, 40)), "mkd", "a map")
    Traceback (most recent call last):
    ValueError: mkd: looks at 2 squares of every keypoint, but a map shows one
    """
    if mkd.squares > 1:
        raise ValueError(
            f"{name}: looks at {mkd.squares} squares of every keypoint, but {what} shows one"
        )


@dataclass(eq=False, repr=False)
class MKD(Estimator):
    """The multiple-kernel descriptor: a transformer from patches to unit vectors.

    Parameters
    ----------
    parametrization
        Which products of kernels to sum: a name or text such as ``"polar+cartesian"``,
        ``"polar"``, ``"x(1,1)*y(1,1)*theta(8,3)"``, or a
        :class:`~mkdesc.Parametrization`.
    patch_size
        Side W of the patches in pixels, at least 8. Kernels whose preparation reduces patches to
        one side (``"extended"``: 32 px) take every multiple of that side as it is, and
        ``patch_size`` must be one; all others take ``patch_size`` alone.
    whitening
        What is applied to the raw descriptors, a fitted :class:`~mkdesc.Whitening`;
        None: nothing, or ``head``.
    resize
        Whether patches of a size that is not taken are resampled to ``patch_size`` or refused.
    backend
        ``"cpu"``: compiled and fast. ``"numpy"``: the same sums without compiling.
        ``"reference"``: the definition, one patch at a time. ``"torch"``: PyTorch, on a GPU
        (docs/torch.md).
    n_threads
        Number of threads; None: one per core.
    output
        ``"float32"``, or a quarter of the memory: ``"int8"``, the numbers times 254, rounded, and
        limited to -127 .. 127, whose order by dot product or distance stays nearly the same; or
        ``"uint8"``, the numbers times 256, plus 128, rounded, for Euclidean distances alone. Or
        ``"bits"``, a 32nd: the signs, packed (N, D / 8) as by :func:`numpy.packbits`, for the
        Hamming distance.
    head
        Instead of a whitening, a :class:`~mkdesc.heads.Head` of any stages.
    side
        Side of the squares around keypoints, in units of their sigma, that this descriptor is
        best used at; for those who cut patches, such as :class:`mkdesc.Features`. None: unknown.
        Several: it looks at as many squares of every keypoint, from patches (N, k, W, W), and
        the head takes their raw descriptors end to end.
    device
        Where the backend ``"torch"`` computes, such as ``"cuda"``; None: on the GPU if there is
        one.
    ratio
        Of Lowe's test, that suits these descriptors; for those who match, see
        :func:`mkdesc.match_descriptors`. None: unknown.

    Notes
    -----
    There is nothing to fit: ``fit`` only checks the parameters, and ``transform`` works
    without it. The class follows scikit-learn's conventions (``clone``, ``Pipeline``,
    ``set_params``, ``set_output``, pickling) without importing it.

    References
    ----------
    A. Mukundan, G. Tolias, O. Chum. Multiple-Kernel Local-Patch Descriptor. BMVC 2017.

    Examples
    --------
    >>> patches = np.random.default_rng(0).integers(0, 256, (10, 64, 64), np.uint8)
    >>> descriptors = MKD().transform(patches)
    >>> descriptors.shape
    (10, 238)
    >>> MKD("polar").transform(patches).shape
    (10, 175)
    """

    parametrization: str | Parametrization = "polar+cartesian"
    patch_size: int = 64
    whitening: Whitening | None = None
    resize: bool = False
    backend: str = "cpu"
    n_threads: int | None = None
    output: str = "float32"
    head: Head | None = None
    side: Side = None
    device: str | None = None
    ratio: float | None = None

    def _checked(self) -> tuple[Parametrization, int]:
        """The parametrization and the number of threads, after checking every parameter."""
        check_integer("patch_size", self.patch_size, SMALLEST)
        check_choice("backend", self.backend, BACKENDS)
        if self.device is not None and not isinstance(self.device, str):
            raise ValueError(f"device: expected text or None, got {self.device!r}")
        if self.device is not None and self.backend != "torch":
            raise ValueError(f"device: only the backend 'torch' has one, got {self.backend!r}")
        if self.whitening is not None and not isinstance(self.whitening, Whitening):
            raise ValueError(f"whitening: expected a Whitening or None, got {self.whitening!r}")
        if self.head is not None and not isinstance(self.head, Head):
            raise ValueError(f"head: expected a Head or None, got {self.head!r}")
        check_not_both(head=self.head, whitening=self.whitening)
        check_choice("output", self.output, OUTPUTS)
        self.squares  # noqa: B018 - refuses what is no side
        check_number("ratio", self.ratio, above=0, most=1, optional=True)
        parametrization = as_parametrization(self.parametrization)
        parametrization.preparation.reduction(int(self.patch_size))  # refuses what does not fit
        return parametrization, checked_threads(self.n_threads)

    def effective_head(self) -> Head | None:
        """What raw descriptors go through: ``head``, or what the whitening has learned.

        None if there is neither; an error if it takes other than these raw descriptors.

        >>> print(MKD("polar").effective_head())
        None
        """
        return self._head_for(self._checked()[0])

    def _head_for(self, parametrization: Parametrization) -> Head | None:
        """The head, after checking that it takes these raw descriptors."""
        head = self.head if self.whitening is None else self.whitening.learned()
        dims = self.squares * parametrization.dims
        if head is not None and head.dims_in != dims:
            several = f" of {self.squares} squares" if self.squares > 1 else ""
            raise ValueError(
                f"{'head' if self.whitening is None else 'whitening'}: learned on {head.dims_in} "
                f"numbers, but the descriptor{several} has {dims}"
            )
        return head

    @property
    def squares(self) -> int:
        """How many squares of a keypoint are described together.

        >>> MKD("polar").squares, MKD("polar", side=(14, 40)).squares
        (1, 2)
        """
        return 1 if self.side is None else len(checked_sides(self.side))

    def fit(self, X: ArrayLike | None = None, y: object = None) -> Self:
        """Check the parameters; there is nothing to learn."""
        self._checked()
        return self

    def transform(self, X: ArrayLike, first: int = 0) -> NDArray[Any]:
        """Describe patches.

        Parameters
        ----------
        X
            Patches (N, W, W), (N, 1, W, W) or one (W, W); with several sides, k, (N, k, W, W).
            uint8, uint16, or float32 or float64 from 0 to 1; contiguous or not, read-only or
            memory-mapped.
        first
            Index of the first patch in error messages, for those who pass them in pieces.

        Returns
        -------
        ndarray of shape (N, D), float32, int8 or uint8
            Unit vectors, one per keypoint, or bytes that stand for them (``output``). Several
            squares without a head: k unit vectors end to end.
        """
        parametrization, threads = self._checked()
        squares = self.squares
        patches = as_patches(X, squares)
        check_range(patches, first)
        size = int(self.patch_size)
        reduced = (
            parametrization.preparation.reduced_size
        )  # to which all multiples of it are reduced
        fits = patches.shape[-1] == size or (
            reduced is not None and patches.shape[-1] % reduced == 0
        )
        if not fits and not self.resize:
            others = "" if reduced is None else f" or another multiple of {reduced} px"
            raise ValueError(
                f"patches: expected {size} x {size} px (patch_size){others}, got "
                f"{patches.shape[-1]} x {patches.shape[-1]}; resize=True (--resize) resamples them"
            )
        head = self._head_for(parametrization)
        compute = load_backend(self.backend, self.device)

        def described(part: NDArray[Any], start: int) -> NDArray[Any]:
            part, start = part.reshape(-1, *part.shape[-2:]), start * squares
            if not fits:
                part = resize_patches(part, size, start)
            done = compute(
                part, parametrization, head=head, squares=squares, n_threads=threads, first=start
            )
            return quantise(done, self.output)

        with naming_stacks(squares):
            if fits and self.output == "float32" and squares == 1:
                return described(patches, first)
            starts = range(0, max(len(patches), 1), CHUNK)
            chunks = [described(patches[i : i + CHUNK], first + i) for i in starts]
            return np.concatenate(chunks)

    def fit_transform(self, X: ArrayLike, y: object = None, **_: Any) -> NDArray[Any]:
        """Describe patches; the same as :meth:`transform`."""
        return self.transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> MKD:
        # Whitening and head are what a model is made of, not something that fit would learn again.
        copy = type(self)(**deepcopy(self.get_params(deep=False)))
        return copy.set_output(**getattr(self, "_sklearn_output_config", {}))

    @property
    def _n_features_out(self) -> int:
        parametrization, _ = self._checked()
        head = self._head_for(parametrization)
        return self.squares * parametrization.dims if head is None else head.dims_out

    def __sklearn_tags__(self) -> Tags:
        return self._tags(needs_y=False, images=True)
