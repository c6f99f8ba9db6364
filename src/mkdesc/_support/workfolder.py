"""Folders of results that say what they were made of, so that work goes on where it stopped.

Results depend on the settings, the version of this package and the inputs. A folder keeps a record
of these: work on the same goes on in it, work on anything else is refused. An input is known by
its *fingerprint*: how many bytes it has, what the file system says of it, and a digest of its
content. The content is read again only where the file system leaves doubt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from mkdesc._support.locations import (
    exists,
    facts_of,
    inside,
    is_address,
    names_in,
    read_location,
    remove_location,
    write_location,
)
from mkdesc._support.targets import check_folder
from mkdesc._support.text import shorten
from mkdesc._support.version import __version__
from mkdesc._support.work import in_order

T = TypeVar("T")

#: Bytes of a file that one thread digests, and that it reads at a time.
SLICE, BLOCK = 1 << 26, 1 << 20
#: Names of parts of results, and of what a kill leaves of one.
_PART = re.compile(r"part-[0-9]{6,}\.\w+|\.part-[0-9]{6,}\.\w+\.[0-9a-f]{8}\.(partial|new)")
#: What to do about a folder of other results.
AWAY = "remove it or choose another output"


def fingerprint(location: str | Path) -> str:
    """What tells an input from any other: its size, its state in the file system, its content.

    Parameters
    ----------
    location
        A file or a folder, of which every file counts; or an address, whose content is not read:
        what its store says of it has to do.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = file.write_text("hello")
    >>> size, state, content = fingerprint(file).split()
    >>> size, len(state), len(content)
    ('5', 32, 32)
    """
    size, state = _state(location)
    return f"{size} {state} {state if is_address(str(location)) else _content(location)}"


def same_input(known: str | None, location: str | Path) -> str | None:
    """The fingerprint of an input if it still is what it was, or None.

    Parameters
    ----------
    known
        Its fingerprint then. It is returned where nothing has happened to the input; where it was
        only touched, copied or moved, the new one is.
    location
        As for :func:`fingerprint`.

    Examples
    --------
    >>> import os, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = file.write_text("hello")
    >>> known = fingerprint(file)
    >>> same_input(known, file) == known
    True
    >>> os.utime(file, (0, 0))
    >>> same_input(known, file) in (known, None)
    False
    >>> _ = file.write_text("there")
    >>> same_input(known, file) is None
    True
    """
    if is_untouched(known, location):
        return known
    if not same_size(known, location):
        return None
    try:
        now = fingerprint(location)
    except OSError:  # whoever reads it will say so
        return None
    return now if content_part(now) == content_part(str(known)) else None


def same_size(known: str | None, location: str | Path) -> bool:
    """Whether an input has as many bytes as it had.

    Parameters
    ----------
    known, location
        As for :func:`same_input`.
    """
    try:
        return str(known).startswith(f"{_state(location)[0]} ")
    except OSError:
        return False


def is_untouched(known: str | None, location: str | Path) -> bool:
    """Whether the file system says that nothing has happened to an input.

    Parameters
    ----------
    known, location
        As for :func:`same_input`.
    """
    try:
        return str(known).split(" ")[:2] == [*_state(location)]
    except OSError:
        return False


def cached_reader(size: int) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Keep what a function has read of the last files, for as long as nothing happens to these."""

    def decorate(read: Callable[[Path], T]) -> Callable[[Path], T]:
        kept = lru_cache(size)(lambda path, state: read(path))
        return wraps(read)(lambda path: kept(path, state_of(path)))

    return decorate


def state_of(location: str | Path) -> str:
    """What the file system says of an input, its size included: it changes with the input."""
    return " ".join(_state(location))


def content_part(known: str) -> str:
    """The part of a fingerprint that depends on the content alone."""
    return known.rpartition(" ")[2]


def _state(location: str | Path) -> tuple[str, str]:
    """How many bytes a location has, and a digest of what is known of its files unread."""
    facts = facts_of(str(location))
    size = sum(size for _, size, _ in facts)
    return str(size), hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _content(location: str | Path) -> str:
    """A digest of what is in the files of a location."""
    slices = [
        (name, Path(location, name) if name else Path(location), start)
        for name, size, _ in facts_of(str(location))
        for start in range(0, max(size, 1), SLICE)
    ]
    whole = hashlib.sha256()
    found = map(_digest, slices) if len(slices) == 1 else in_order(_digest, slices)
    for (name, _, start), digest in zip(slices, found, strict=True):
        whole.update(f"{name} {start} ".encode(errors="surrogateescape") + digest)
    return whole.hexdigest()[:32]


def _digest(piece: tuple[str, Path, int]) -> bytes:
    _, file, start = piece
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        stream.seek(start)
        for _ in range(SLICE // BLOCK):
            block = stream.read(BLOCK)
            digest.update(block)
            if len(block) < BLOCK:
                break
    return digest.digest()


def check_settings(where: str | Path, found: Any, wanted: Mapping[str, Any]) -> None:
    """Refuse to mix results that were made with different settings.

    Parameters
    ----------
    where
        What has the results, for the message.
    found
        The settings they were made with, or JSON of these; anything else is refused too.
    wanted
        Those asked for.
    """
    if isinstance(found, (str, bytes)):
        found = _parsed(found)
    if not isinstance(found, dict):
        raise ValueError(f"{where}: has no record of how it was made; {AWAY}")
    known, asked = _flat(found), _flat(json.loads(json.dumps(wanted)))
    differing = [
        f"{shorten(key.removesuffix(' sha256'), 300)} was another file"
        if key.endswith(" sha256")
        else f"{shorten(key)} {_shown(known.get(key))} instead of {_shown(asked.get(key))}"
        for key in sorted({*known, *asked})
        if known.get(key) != asked.get(key)
    ]
    if differing:
        more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        raise ValueError(
            f"{where}: made with other settings ({', '.join(differing[:3])}{more}); {AWAY}"
        )


def _flat(settings: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Settings in settings by one key."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        inner = value if isinstance(value, dict) and value else None
        flat |= _flat(inner, f"{above}{key} ") if inner else {f"{above}{key}": value}
    return flat


def _shown(value: object) -> str:
    return "nothing" if value is None else shorten(str(value))


def _parsed(text: str | bytes) -> Any:
    """What JSON says; None for text that is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class WorkFolder:
    """A folder of results that says what they were made of.

    Attributes
    ----------
    location
        The folder: a path or an address.
    record
        The file that says it, in the folder or beside it.

    Examples
    --------
    >>> import tempfile
    >>> name = tempfile.mkdtemp()
    >>> folder = WorkFolder(name, f"{name}/record.json")
    >>> folder.open({"dims": 3})
    {}
    >>> folder.write(7, ".txt", b"one of the results")
    >>> folder.open({"dims": 3})
    {}
    >>> folder.done(".txt")
    {7}
    >>> folder.open({"dims": 4})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...: made with other settings (dims 3 instead of 4); remove it or choose another...
    """

    location: str
    record: str

    def open(
        self,
        settings: Mapping[str, Any],
        inputs: Mapping[str, str | Path] | None = None,
        grows: str = "",
        fresh: bool = False,
        **notes: Any,
    ) -> dict[str, str]:
        """Begin work, or go on with it; ValueError if the folder has anything else.

        Parameters
        ----------
        settings
            All that results depend on, besides the version and the inputs; plain values.
        inputs
            What the work reads, by names for messages. There may be more of them than before.
        grows
            A setting with settings in it, of which there may be more than before.
        fresh
            Whether all that is there was made of this just now, whatever the record says.
        notes
            What else the record says, for people.

        Returns
        -------
        dict
            Fingerprints of the inputs.
        """
        wanted = json.loads(json.dumps({"mkdesc": __version__, **settings}))
        if not is_address(self.location):
            check_folder(self.location)
        names = names_in(self.location) - {Path(self.record).name}
        found = None
        visible = [name for name in names if not name.startswith(".")]  # others: left by a kill
        if not fresh:
            found = self.read()  # refuses a record that is none, whatever else is there
            if visible and found is None:
                raise ValueError(
                    f"{self.location}: has files that mkdesc did not write; choose another output"
                )
            found = found if visible else None  # of what was removed
        if found is not None:
            known = found["settings"]
            if isinstance(known.get(grows), dict):
                known = {**known, grows: {**wanted.get(grows, {}), **known[grows]}}
            check_settings(self.location, known, wanted)
        before: dict[str, Any] = {} if found is None else found["inputs"]
        now: dict[str, str] = {}
        for name, location in (inputs or {}).items():
            same = same_input(before[name], location) if name in before else fingerprint(location)
            now |= {} if same is None else {name: same}
        changed = [name for name in {**before, **(inputs or {})} if name not in now]
        if changed:
            raise ValueError(
                f"{self.location}: its inputs have changed ({shorten(changed[0])}); {AWAY}"
            )
        state = {"settings": wanted, "inputs": now}
        if found is None or {**found, **state} != found:
            self._write({"complete": False, **(found or {}), **state, **notes})
        return now

    def read(self) -> dict[str, Any] | None:
        """What the record says: ``settings``, ``inputs``, ``complete``; None if there is none."""
        text = read_location(self.record)
        if text is None:
            return None
        found = _parsed(text)
        if not isinstance(found, dict) or not all(
            isinstance(found.get(key), dict) for key in ("settings", "inputs")
        ):
            raise ValueError(f"{self.record}: damaged, or not written by mkdesc; {AWAY}")
        return found

    def _write(self, record: dict[str, Any]) -> None:
        write_location(self.record, json.dumps(record, indent=1).encode())

    def part(self, number: int, suffix: str) -> str:
        """The location of a part of the results."""
        return inside(self.location, f"part-{number:06d}{suffix}")

    def done(self, suffix: str) -> set[int]:
        """Numbers of the parts that are there."""
        names = names_in(self.location)
        numbers = (name.removeprefix("part-").removesuffix(suffix) for name in names)
        found = {int(number) for number in numbers if number.isdecimal()}
        return {number for number in found if Path(self.part(number, suffix)).name in names}

    def write(self, number: int, suffix: str, content: bytes | memoryview) -> None:
        """Write a part, whole or not at all."""
        write_location(self.part(number, suffix), content)

    def complete(self) -> None:
        """Say that all results are there."""
        self._write({**(self.read() or {}), "complete": True})

    def discard(self, own: Collection[str] = ()) -> None:
        """Remove all parts; the record last, so that a kill leaves nothing unknown.

        What others put into the folder stays, and then so does the folder.

        Parameters
        ----------
        own
            Names of what else is in the folder, and is removed.
        """
        record = Path(self.record).name
        for name in sorted(names_in(self.location)):
            half = name.startswith(f".{record}.") and name.endswith(".partial")
            if half or name in own or _PART.fullmatch(name):
                remove_location(inside(self.location, name))
        if exists(self.record):
            remove_location(self.record)
        if exists(self.location) and not names_in(self.location):
            remove_location(self.location)
