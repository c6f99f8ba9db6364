"""Text for people."""

from __future__ import annotations


def shorten(text: str, most: int = 80) -> str:
    """Text for an error message: in one line, of at most ``most`` characters.

    >>> shorten("x(1,1)" + chr(10) + "*y(1,1)", most=10)
    'x(1,1) ...'
    """
    line = "".join(c if c.isprintable() else " " for c in text[: most + 1])
    return line if len(line) <= most else f"{line[: most - 3]}..."
