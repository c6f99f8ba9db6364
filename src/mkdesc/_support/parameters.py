"""What scikit-learn expects of an estimator's parameters, without importing scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

__all__ = ["Estimator"]


class Estimator:
    """Parameters are exactly the constructor's arguments, stored under their own names.

    This is what :func:`sklearn.base.clone`, ``Pipeline`` and ``GridSearchCV`` rely on.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; with ``deep``, those of estimators among them too."""
        params = {}
        for name in inspect.signature(type(self)).parameters:
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
        defaults = inspect.signature(type(self)).parameters
        shown = (
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not defaults[name].default
        )
        return f"{type(self).__name__}({', '.join(shown)})"
