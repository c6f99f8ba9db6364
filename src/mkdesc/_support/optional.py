"""Packages that are not always there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """Say how to get a package that an import inside the context does not find.

    Parameters
    ----------
    what
        What needs which package, for the message.
    extra
        The extra of this package that has it.

    Examples
    --------
    >>> with needed("flying needs wings", "birds"):
    ...     import wings
    Traceback (most recent call last):
    ImportError: flying needs wings: pip install 'mkdesc[birds]'
    """
    try:
        yield
    except ImportError:
        raise ImportError(f"{what}: pip install 'mkdesc[{extra}]'") from None
