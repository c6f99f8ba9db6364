"""What scikit-learn expects of a transformer, without importing scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from sklearn.utils import Tags

#: What ``transform`` may return: arrays, or data frames of one of two packages.
CONTAINERS = ("default", "pandas", "polars")


class Estimator:
    """Parameters are exactly the constructor's arguments, stored under their own names.

    This is what :func:`sklearn.base.clone`, ``Pipeline`` and ``GridSearchCV`` rely on. What
    ``transform`` of a subclass returns goes into the container that :meth:`set_output` chose.
    """

    #: The choice of :meth:`set_output`, under the name that scikit-learn's ``clone`` copies.
    _sklearn_output_config: dict[str, str]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "transform" in cls.__dict__:
            cls.transform = _contained(cls.transform)  # type: ignore[attr-defined]

    @classmethod
    @cache
    def _arguments(cls) -> Mapping[str, inspect.Parameter]:
        """The arguments of the constructor."""
        return inspect.signature(cls).parameters

    @property
    def _n_features_out(self) -> int:
        """How many numbers ``transform`` returns per row: as many as what was learned makes."""
        head: Any = getattr(self, "head_", None)
        if head is None:
            raise self._not_fitted()
        return int(head.dims_out)

    def _not_fitted(self) -> Exception:
        """What to raise where something must have been learned: scikit-learn's, if it is there."""
        message = f"this {type(self).__name__} is not fitted: call fit first"
        try:
            from sklearn.exceptions import NotFittedError
        except ImportError:
            return ValueError(message)
        return NotFittedError(message)

    def _tags(self, *, needs_y: bool, images: bool = False) -> Tags:
        """scikit-learn's tags of a transformer of vectors, or of images, which needs no fit."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=needs_y),
            transformer_tags=TransformerTags(preserves_dtype=["float32"]),
            input_tags=InputTags(two_d_array=not images, three_d_array=images),
            requires_fit=not images,
        )

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Names of the columns that ``transform`` returns: ``mkd0``, ``mkd1``, ...

        Parameters
        ----------
        input_features
            Not used: every number of the result comes from all of the input.
        """
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(self._n_features_out)], object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``transform`` and ``fit_transform`` return.

        Parameters
        ----------
        transform
            ``"default"``: arrays; ``"pandas"`` or ``"polars"``: data frames whose columns are
            :meth:`get_feature_names_out`; None: leave it as it is. Only what is chosen here
            counts, also by a ``Pipeline``; scikit-learn's global ``transform_output`` does not.
        """
        if transform is not None:
            if transform not in CONTAINERS:
                raise ValueError(
                    f"transform: expected one of {', '.join(CONTAINERS)} or None, "
                    f"got {transform!r}"
                )
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; with ``deep``, those of estimators among them too."""
        params = {}
        for name in self._arguments():
            value = getattr(self, name)
            params[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{key}": item for key, item in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``outer__inner`` reaches into an estimator among them."""
        known = self.get_params(deep=False)
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: expected one of "
                    f"{', '.join(known)}"
                )
            if inner and not hasattr(known[name], "set_params"):
                raise ValueError(f"{key}: {name} is {known[name]!r} and has no parameters")
            if inner:
                known[name].set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = (
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not self._arguments()[name].default
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _contained(transform: Any) -> Any:
    """A method ``transform`` whose result goes into the chosen container."""

    @wraps(transform)
    def wrapped(self: Estimator, X: ArrayLike, *args: Any, **more: Any) -> Any:
        rows = transform(self, X, *args, **more)
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if chosen == "default":
            return rows
        names = self.get_feature_names_out()
        try:
            if chosen == "pandas":
                import pandas as pd

                return pd.DataFrame(rows, getattr(X, "index", None), names, copy=False)
            import polars as pl

            return pl.DataFrame(rows, schema=names.tolist(), orient="row")
        except ImportError:
            raise ImportError(
                f"set_output: {chosen!r} needs {chosen}: pip install {chosen}"
            ) from None

    return wrapped
