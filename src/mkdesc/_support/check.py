"""Arguments that mean nothing are refused: by name, with what was expected and what came."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path

#: Squares around one keypoint, at most.
MOST_SQUARES = 16


def check_integer(
    name: str, value: object, least: int = 1, most: int | None = None, optional: bool = False
) -> None:
    """Refuse anything but an integer within bounds; with ``optional``, None is accepted too.

    >>> check_integer("k", 0)
    Traceback (most recent call last):
    ValueError: k: expected an integer >= 1, got 0
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and least <= value and (most is None or value <= most):  # type: ignore[operator]
        return
    bounds = f">= {least}" if most is None else f"from {least} to {most}"
    _refuse(name, value, f"an integer {bounds}", optional)


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    optional: bool = False,
) -> None:
    """Refuse anything but a finite number within bounds; ``optional``: None is accepted too.

    >>> check_number("power", 2, above=0, most=1)
    Traceback (most recent call last):
    ValueError: power: expected a number > 0 and <= 1, got 2
    """
    number = _as_float(value)
    if (
        math.isfinite(number)
        and (above is None or number > above)
        and (least is None or number >= least)
        and (most is None or number <= most)
        and (below is None or number < below)
    ):
        return
    bounds = {">": above, ">=": least, "<=": most, "<": below}
    words = " and ".join(f"{sign} {b:g}" for sign, b in bounds.items() if b is not None)
    _refuse(name, value, f"a number {words}".rstrip(), optional)


def checked_sides(side: object) -> tuple[float, ...]:
    """Sides of squares around a keypoint, given as one number or as several; refuses all else.

    >>> checked_sides(20), checked_sides((14, 40))
    ((20.0,), (14.0, 40.0))
    >>> checked_sides(())
    Traceback (most recent call last):
    ValueError: side: expected a number or 1 to 16 of them, got ()
    """
    if not isinstance(side, (tuple, list)):
        check_number("side", side, above=0)
        return (float(side),)  # type: ignore[arg-type]
    if not 1 <= len(side) <= MOST_SQUARES:
        raise ValueError(f"side: expected a number or 1 to {MOST_SQUARES} of them, got {side!r}")
    for one in side:
        check_number("side", one, above=0)
    return tuple(map(float, side))


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Refuse anything but one of these texts, and return the text.

    >>> check_choice("method", "ica", ["pca", "lw"])
    Traceback (most recent call last):
    ValueError: method: expected one of pca, lw, got 'ica'
    """
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
    return value


def check_ending(name: str, path: Path, endings: Iterable[str]) -> None:
    """Refuse a file whose name ends in none of these, in capitals or not.

    >>> check_ending("--output", Path("folder/model.pkl"), [".safetensors"])
    Traceback (most recent call last):
    ValueError: --output: expected a name ending in .safetensors, got model.pkl
    """
    known = list(endings)
    if path.suffix.lower() not in known:
        raise ValueError(f"{name}: expected a name ending in {', '.join(known)}, got {path.name}")


def check_not_both(**given: object) -> None:
    """Refuse two arguments that exclude each other, unless one of them is None.

    >>> check_not_both(head=None, whitening=3)
    >>> check_not_both(head=1, whitening=3)
    Traceback (most recent call last):
    ValueError: head and whitening: expected one of them, got both
    """
    if all(value is not None for value in given.values()):
        raise ValueError(f"{' and '.join(given)}: expected one of them, got both")


def _as_float(value: object) -> float:
    """A number as Python has it: numpy's of fewer bits overflow beside one. NaN: it is none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # integers may be larger
        return math.inf


def _refuse(name: str, value: object, expected: str, optional: bool) -> None:
    if optional and value is None:
        return
    raise ValueError(f"{name}: expected {expected}{' or None' if optional else ''}, got {value!r}")
