"""Damaging bytes: what disks, networks and ill will do to files."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

__all__ = ["mutate"]

#: Whole numbers at the edges of their types.
_NUMBERS = (0, 1, 2, 255, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
#: What may stand in a text in the place of a number, a name or a bracket.
_WORDS = (
    *(b"", b"-1", b"0", b"1e999", b"-1e308", b"nan", b"inf", b"99999999999", b"9" * 400),
    *(b"1.5", b"null", b"true", b'""', b"[]", b"{}", b"[" * 20_000, b'{"a":' * 20_000),
    *(b"\xff\xfe", b"\0", b"\xf0\x9f", b"\r\n", b"\n\n\n", b"#", b"x" * 5000, b"../../x", b"1_0"),
)


def mutate(data: bytes, random: Random) -> bytes:
    """Damage bytes in one to four ways.

    >>> mutate(b"abc", Random(0)) == mutate(b"abc", Random(0))
    True
    """
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        data = random.choice(_WAYS)(data, random)
    return data


def _place(data: bytes, random: Random) -> int:
    """A position: half of them near the beginning, where headers are."""
    most = min(len(data), 128) if random.random() < 0.5 else len(data)
    return random.randrange(most + 1)


def _piece(data: bytes, random: Random) -> tuple[int, int]:
    start = _place(data, random)
    return start, min(len(data), start + random.choice((1, 2, 4, 8, 16, 100, 1000)))


def _cut(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[_place(data, random) % len(changed)] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    return data[:start] + random.randbytes(end - start) + data[end:]


def _clear(data: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    return data[:start] + random.choice((b"\0", b"\xff")) * (end - start) + data[end:]


def _number(data: bytes, random: Random) -> bytes:
    size = random.choice((1, 2, 4, 8))
    start = _place(data, random)
    value = random.choice((*_NUMBERS, len(data), random.getrandbits(64))) % 256**size
    order = random.choice(("little", "big"))
    return data[:start] + value.to_bytes(size, order) + data[start + size :]


def _remove(data: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    return data[:start] + data[end:]


def _repeat(data: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    return data[:end] + data[start:end] * random.choice((1, 1, 3, 50)) + data[end:]


def _move(data: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    to = _place(data, random)
    return data[:to] + data[start:end] + data[to + end - start :]


def _insert(data: bytes, random: Random) -> bytes:
    start = _place(data, random)
    return data[:start] + random.choice(_WORDS) + data[start:]


def _word(data: bytes, random: Random) -> bytes:
    """Another word in the place of a number or a name of a text."""
    words = list(re.finditer(rb"-?[\w.+-]+", data[:20_000]))
    if not words:
        return _insert(data, random)
    chosen = random.choice(words)
    return data[: chosen.start()] + random.choice(_WORDS) + data[chosen.end() :]


_WAYS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_cut, _flip, _flip, _overwrite, _clear, _number, _number, _remove, _repeat, _move),
    *(_insert, _word, _word),
)
