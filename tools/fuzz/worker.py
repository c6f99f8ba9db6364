"""The child that reads damaged files; its parent starts another one if it dies or hangs."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from random import Random
from typing import Any

from mutations import mutate
from targets import TARGETS, Target

__all__ = ["damaged", "work"]

#: Characters of an error message, at most.
LONGEST = 800
#: Bytes that may be asked for beyond what the child has when it begins, so that the machine lives.
MOST_ADDRESSES = 1500 * 2**20


def damaged(target: Target, seed: int, case: int, folder: Path) -> tuple[str, bytes]:
    """Which file of a target is damaged in a case, and its bytes then."""
    random = Random(f"{seed} {target.name} {case}")
    name = random.choice(target.victims)
    return name, target.damage(
        name, (folder / name).read_bytes(), lambda data: mutate(data, random)
    )


def work(seed: int) -> None:
    """Answer each line ``TARGET FIRST COUNT`` of the input with an empty line and one per case."""
    out = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "uint16 counts from")  # a hint; the file is read
    with tempfile.TemporaryDirectory(prefix="mkdesc-fuzz-") as name:
        made: dict[str, Path] = {}
        for line in sys.stdin:
            wanted, first, count = line.split()
            target = TARGETS[wanted]
            folder = made.setdefault(wanted, Path(name).resolve() / wanted)
            if not folder.exists():
                folder.mkdir()
                target.prepare(folder)
                target.read(folder)  # what is not damaged can be read; loads all that it needs
                _limit_addresses()
            print(file=out, flush=True)  # ready: from here on time counts
            for case in range(int(first), int(first) + int(count)):
                print(json.dumps(_try(target, seed, case, folder)), file=out, flush=True)


def _limit_addresses() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    limit = pages * resource.getpagesize() + MOST_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _memory(field: str) -> float:
    """A line of what the kernel says of this process, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def _try(target: Target, seed: int, case: int, folder: Path) -> dict[str, Any]:
    """Read one damaged file."""
    name, data = damaged(target, seed, case, folder)
    victim = folder / name
    good = victim.read_bytes()
    victim.write_bytes(data)
    Path("/proc/self/clear_refs").write_text(
        "5", encoding="utf-8"
    )  # the peak of the memory is counted from here
    before, start = _memory("VmRSS"), time.process_time()
    why = ""
    try:
        target.read(folder)
        outcome = "read"
    except (ValueError, OSError) as error:
        text = str(error)
        outcome = "refused"
        if "\n" in text or len(text) > LONGEST:
            lines = text.count("\n") + 1
            why = f"a message of {lines} lines, {len(text)} characters: {text[:200]!r}"
        elif target.named and name not in text and str(folder) not in text:
            why = f"the message does not name the file: {text}"
    except BaseException as error:
        outcome, why = "raised", f"{type(error).__name__}: {error}"[:300]
    seconds = time.process_time() - start
    megabytes = _memory("VmHWM") - before
    victim.write_bytes(good)
    return {
        "case": case,
        "outcome": outcome,
        "why": why,
        "seconds": round(seconds, 4),
        "megabytes": round(max(0.0, megabytes), 1),
    }


if __name__ == "__main__":
    work(int(sys.argv[1]))
