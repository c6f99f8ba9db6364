"""Whitening: the linear projection, learned from statistics, that makes descriptors good."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_choice, check_integer, check_number
from mkdesc._support.parameters import Estimator
from mkdesc.heads.head import L2, Affine, Head, Power
from mkdesc.heads.statistics import Statistics
from mkdesc.measures.descriptors import as_descriptors

if TYPE_CHECKING:
    from sklearn.utils import Tags


Array = NDArray[np.float64]

#: The methods, and whether they need matching pairs.
METHODS = {"pca": False, "pcawt": False, "pcaws": False, "lw": True, "gda": True}
UNSUPERVISED = tuple(name for name, needed in METHODS.items() if not needed)

#: Share of the mean variance that is added where the statistics are singular.
RIDGE = 1e-6
#: Ratio of the smallest to the largest eigenvalue below which they count as singular.
SINGULAR = 1e-10
#: Share of the covariance of all descriptors in the denominator of ``gda``.
MIXING = 0.1


@dataclass(eq=False, repr=False)
class Whitening(Estimator):
    """A learned projection of descriptors, as a scikit-learn transformer.

    Parameters
    ----------
    method
        ``"lw"``: the paper's learned whitening: whiten the differences of matching pairs, then
        PCA. ``"gda"``: generalised discriminant analysis, which weighs the dimensions by how
        well they tell pairs apart. ``"pca"``: PCA and signed square root. ``"pcawt"``: PCA,
        each dimension divided by its standard deviation to the power ``t``. ``"pcaws"``: PCA
        with whitening by shrunk eigenvalues.
    dims
        How many dimensions to keep, at most; a warning says if the data have not as many.
    t
        Attenuation of ``pcawt``: 0 leaves PCA, 1 is full whitening.
    shrinkage
        For ``pcaws``: an index (int) of the eigenvalue, relative to the largest, that all are
        shrunk to; or this value itself (float, between 0 and 1).
    ridge
        Share of the mean variance added to the diagonal before anything is inverted. None adds
        none, or 1e-6 with a warning where the statistics are singular.
    power
        Exponent of a signed power (and l2) applied to descriptors before all else; 1: none.
        Three quarters evens out the numbers of a descriptor and helps most of the time.

    Attributes
    ----------
    head_ : Head
        What was learned.
    statistics_ : Statistics
        What it was learned from; models that were loaded have none.

    Notes
    -----
    Parameters that are changed after fitting count: the whitening is learned again from its
    statistics when it is next used. Where that cannot be (another ``power``, or a model that was
    loaded), using it is an error until the parameter is as it was, or ``fit`` is called.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat(rng.normal(size=(500, 10)), 2, axis=0)
    >>> X, labels = points + rng.normal(scale=0.1, size=points.shape), np.repeat(np.arange(500), 2)
    >>> Whitening("lw", dims=4).fit(X, labels).transform(X).shape
    (1000, 4)
    """

    method: str = "lw"
    dims: int = 128
    t: float = 0.7
    shrinkage: int | float = 40
    ridge: float | None = None
    power: float = 1.0
    head_: Head = field(init=False)
    statistics_: Statistics = field(init=False)
    learned_with_: dict[str, Any] = field(init=False)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        pairs: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Learn from descriptors (N, D) and what matches among them.

        Parameters
        ----------
        X
            Descriptors.
        y
            (N,) what each shows: all pairs of equal labels match. A label that comes once
            adds to the covariance of all and to nothing else.
        pairs
            Instead of ``y``, two arrays of row indices of matching descriptors.
        """
        self.check()
        if METHODS[self.method] and y is None and pairs is None:
            raise ValueError(
                f"method: {self.method!r} learns from what matches: expected labels (y) or pairs, "
                f"but the target y is None; {', '.join(UNSUPERVISED)} need none"
            )
        return self.fit_statistics(self._gathered(X, y, pairs))

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        pairs: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Add data to what earlier calls have seen; ``transform`` then uses all of it.

        Pairs are formed within one call.
        """
        if hasattr(self, "statistics_"):
            new = self._gathered(X, y, pairs, self.statistics_.dims)
            # A sum of its own: statistics that it was given stay as they are.
            self.statistics_ = self.statistics_ + new
        elif hasattr(self, "head_"):
            raise ValueError("X: a loaded whitening has no statistics to add to")
        else:
            self.statistics_ = self._gathered(X, y, pairs)
        self.__dict__.pop("head_", None)
        return self

    def _gathered(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        pairs: tuple[ArrayLike, ArrayLike] | None,
        dims: int | None = None,
    ) -> Statistics:
        """The statistics of data."""
        self.check()
        X = as_descriptors(X, name="X", dims=dims, keep_float=True)
        labels = y if METHODS[self.method] else None
        return Statistics(X.shape[1], self.power).update(X, labels, pairs)

    def fit_statistics(self, statistics: Statistics) -> Self:
        """Learn from statistics of the same ``power`` that were gathered, merged or loaded."""
        self.check()
        head = learn_head(
            statistics, self.method, self.dims, self.t, self.shrinkage, self.ridge, self.power
        )
        self.statistics_, self.head_ = statistics, head
        self.learned_with_ = self.get_params()
        return self

    @classmethod
    def of_head(cls, head: Head, **params: Any) -> Self:
        """A whitening that has learned a head, by what these parameters say.

        >>> Whitening.of_head(linear_head(np.zeros(3), np.eye(3)), method="lw", dims=3).dims
        3
        """
        whitening = cls(**params)
        whitening.check()
        whitening.head_ = head
        whitening.learned_with_ = whitening.get_params()
        return whitening

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Project descriptors (N, D) to unit vectors (N, dims), float32."""
        head = self.learned()
        return head.apply(as_descriptors(X, name="X", dims=head.dims_in, keep_float=True))

    def learned(self) -> Head:
        """What was learned, by the parameters as they are now; an error if nothing was."""
        if not hasattr(self, "head_") and not hasattr(self, "statistics_"):
            raise self._not_fitted()
        if not hasattr(self, "head_"):
            self.fit_statistics(self.statistics_)
        now = self.get_params()
        changed = [name for name, value in self.learned_with_.items() if now[name] != value]
        if changed:
            if not hasattr(self, "statistics_"):
                name = changed[0]
                raise ValueError(
                    f"{name}: this whitening was learned with {self.learned_with_[name]!r} and "
                    f"has no statistics to learn again with {now[name]!r}: call fit"
                )
            self.fit_statistics(self.statistics_)
        return self.head_

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        pairs: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> NDArray[np.float32]:
        """Learn from descriptors and project them."""
        return self.fit(X, y, pairs).transform(X)

    @property
    def _n_features_out(self) -> int:
        return self.learned().dims_out

    @property
    def n_features_in_(self) -> int:
        """Length of the descriptors it was learned from."""
        if hasattr(self, "statistics_"):
            return self.statistics_.dims
        if hasattr(self, "head_"):
            return self.head_.dims_in
        raise AttributeError("n_features_in_")

    def check(self) -> None:
        """Refuse bad parameters."""
        check_choice("method", self.method, METHODS)
        check_integer("dims", self.dims)
        check_number("power", self.power, above=0, most=1)
        check_number("t", self.t)
        if not isinstance(self.shrinkage, Real) or isinstance(self.shrinkage, bool):
            raise ValueError(f"shrinkage: expected an index or a value, got {self.shrinkage!r}")
        check_number("ridge", self.ridge, least=0, optional=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "statistics_") or hasattr(self, "head_")

    def __sklearn_tags__(self) -> Tags:
        return self._tags(needs_y=METHODS[self.method])


def linear_head(
    mean: NDArray[np.floating],
    matrix: NDArray[np.floating],
    *,
    power: float = 1.0,
    square_root: bool = False,
) -> Head:
    """A signed power and l2, ``(x - mean) @ matrix``, perhaps a signed root, and l2.

    >>> len(linear_head(np.zeros(4), np.eye(4), power=0.75).stages)
    4
    """
    before = () if power == 1 else (Power(power), L2())
    after = (Power(0.5), L2()) if square_root else (L2(),)
    return Head((*before, Affine(matrix, mean), *after))


def learn_head(
    statistics: Statistics,
    method: str = "lw",
    dims: int = 128,
    t: float = 0.7,
    shrinkage: int | float = 40,
    ridge: float | None = None,
    power: float = 1.0,
) -> Head:
    """The head that a method makes of statistics of the same power; see :class:`Whitening`.

    Columns come by decreasing eigenvalue; the largest number of each is positive.
    """
    from scipy.linalg import eigh

    if statistics.power != power:
        raise ValueError(
            f"power: expected statistics of {power}, got some gathered with {statistics.power}"
        )
    covariance = statistics.covariance
    if not METHODS[method]:
        values, vectors = eigh(_regular(covariance, ridge, "descriptors", method == "pca"))
        values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
        scale = pca_scale(values, method, t, shrinkage)
    else:
        within = statistics.pair_covariance
        if method == "gda":
            within = within + MIXING * covariance
        values, vectors = eigh(covariance, _regular(within, ridge, "matching pairs"))
        values, vectors = values[::-1], vectors[:, ::-1]
        scale = np.ones_like(values)
        if method == "gda":
            # What a dimension adds to the evidence that two descriptors match.
            excess = np.maximum(values - 0.5, 0)
            scale = np.sqrt(excess / (2 * excess + 0.5))
    matrix = (vectors * scale)[:, : min(dims, statistics.dims)]
    largest = np.take_along_axis(matrix, np.abs(matrix).argmax(axis=0)[None], axis=0)
    matrix = matrix * np.where(largest < 0, -1, 1)
    if not np.isfinite(matrix).all():
        raise ValueError(f"{method}: the statistics are too degenerate to learn from")
    _warn_of_dims(dims, statistics)
    return linear_head(statistics.mean, matrix, power=power, square_root=method == "pca")


def _warn_of_dims(dims: int, statistics: Statistics) -> None:
    """Say so if fewer dimensions can be learned than were asked for."""
    spanned = statistics.n - 1
    if dims > statistics.dims:
        problem = f"the descriptors have {statistics.dims} numbers, and no more are kept"
    elif spanned < dims:
        problem = f"{statistics.n} descriptors span at most {spanned}; the rest is arbitrary"
    else:
        return
    warnings.warn(f"dims: {dims} requested, but {problem}", stacklevel=4)


def _regular(matrix: Array, ridge: float | None, what: str, as_it_is: bool = False) -> Array:
    """A covariance with a ridge, as asked for or, with a warning, as needed."""
    mean_variance = np.trace(matrix) / len(matrix)
    if not mean_variance > 0:
        raise ValueError(f"the {what} are all alike: nothing to learn from")
    if ridge is None:
        values = np.linalg.eigvalsh(matrix)
        if as_it_is or values[0] > SINGULAR * values[-1]:
            return matrix
        ridge = RIDGE
        warnings.warn(
            f"the covariance of the {what} is singular (too few, or dependent dimensions); "
            f"{RIDGE:g} of the mean variance was added",
            stacklevel=4,
        )
    return matrix + ridge * mean_variance * np.eye(len(matrix))


def pca_scale(
    values: NDArray[np.floating], method: str, t: float, shrinkage: int | float
) -> NDArray[np.floating]:
    """What the PCA methods multiply each dimension by, given decreasing eigenvalues (D,).

    >>> pca_scale(np.array([4.0, 1.0]), "pcawt", t=1, shrinkage=0).tolist()
    [0.5, 1.0]
    """
    if method == "pcawt":
        return values ** (-t / 2)
    if method == "pcaws":
        relative = values / values[0]
        b = _shrinkage(relative, shrinkage)
        return ((1 - b) * relative + b) ** -0.5
    return np.ones_like(values)


def _shrinkage(relative: NDArray[np.floating], shrinkage: int | float) -> float:
    """The value that relative eigenvalues are shrunk to."""
    if isinstance(shrinkage, (int, np.integer)):
        if not 0 <= shrinkage < len(relative):
            raise ValueError(
                f"shrinkage: expected an index below {len(relative)} (the dimensions) or a value "
                f"between 0.0 and 1.0, got {shrinkage}"
            )
        return float(relative[shrinkage])
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage: expected a value between 0.0 and 1.0, got {shrinkage}")
    return float(shrinkage)
