"""Damaged files against every reader: ``python tools/fuzz`` (or ``make fuzz``).

A case passes if its file is read, or refused by a ValueError or OSError of one short line that
names it, within 2 seconds of computing and 500 MB. Everything else is a failure: other errors,
crashes, hangs. Cases are numbered; a number, a target and a seed always give the same file. Files
that fail are kept.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from targets import TARGETS
from worker import damaged

#: Limits of a case: seconds of computing, MB, and seconds after which it hangs, however busy the
#: machine is.
SECONDS, MEGABYTES, PATIENCE = 2.0, 500.0, 20.0
#: Seconds that a worker may take to begin: imports, and files to make.
BEGINNING = 200.0
#: Cases of one target in a row.
SLICE = 50


class Child:
    """A worker, started again when it is gone."""

    def __init__(self, seed: int) -> None:
        self._command = [sys.executable, str(Path(__file__).with_name("worker.py")), str(seed)]
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def ask(self, target: str, first: int, count: int) -> Iterator[dict[str, Any]]:
        """Go through cases: what the worker says of each, or how it ended."""
        case, last = first, first + count
        while case < last:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            process.stdin.write(f"{target} {case} {last - case}\n".encode())
            process.stdin.flush()
            if self._line(process, BEGINNING) is None:
                raise RuntimeError(f"{target}: its good files cannot be made or read")
            while case < last:
                line = self._line(process, PATIENCE)
                if line is None:
                    yield {"case": case, **self._ended()}
                    case += 1
                    break
                yield json.loads(line)
                case += 1

    def _start(self) -> subprocess.Popen[bytes]:
        self._rest = b""
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, stdin=pipe, stdout=pipe, start_new_session=True)

    def _line(self, process: subprocess.Popen[bytes], patience: float) -> bytes | None:
        assert process.stdout is not None
        end = time.monotonic() + patience
        while b"\n" not in self._rest:
            ready, _, _ = select.select([process.stdout], [], [], max(0, end - time.monotonic()))
            more = os.read(process.stdout.fileno(), 65536) if ready else b""
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _ended(self) -> dict[str, Any]:
        assert self._process is not None
        code = self._process.poll()
        self.stop()
        why = "it hung" if code is None else f"the process ended with {code}"
        return {"outcome": "died", "why": why, "seconds": 0.0, "megabytes": 0.0}

    def stop(self) -> None:
        """End the worker and all that it started."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
        self._process = None


@dataclass
class Tally:
    """What became of the cases of a target."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    slowest: float = 0.0
    largest: float = 0.0
    next: int = 0

    def add(self, result: dict[str, Any]) -> str:
        """Count a case; why it failed, if it did."""
        self.outcomes[result["outcome"]] += 1
        self.slowest = max(self.slowest, result["seconds"])
        self.largest = max(self.largest, result["megabytes"])
        self.next = result["case"] + 1
        why: str = result["why"]
        if result["seconds"] > SECONDS:
            why = why or f"it took {result['seconds']:.1f} s"
        if result["megabytes"] > MEGABYTES:
            why = why or f"it took {result['megabytes']:.0f} MB"
        self.failures += bool(why)
        return why


def keep(folder: Path, name: str, seed: int, case: int, why: str) -> None:
    """Write a file that failed, and why."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as temporary:
        target.prepare(Path(temporary))
        victim, data = damaged(target, seed, case, Path(temporary))
    place = folder / f"{name}-{seed}-{case}"
    place.mkdir(parents=True, exist_ok=True)
    (place / Path(victim).name).write_bytes(data)
    (place / "why.txt").write_text(f"{why}\n", encoding="utf-8")


def run(options: argparse.Namespace) -> int:
    """Go through the cases and print what became of them; the number of failures."""
    tallies = {name: Tally(next=options.first) for name in options.target or TARGETS}
    shares = sum(TARGETS[name].share for name in tallies)
    ends = {
        name: options.first + max(1, round(options.cases * TARGETS[name].share / shares))
        for name in tallies
    }
    child, end = Child(options.seed), time.monotonic() + options.seconds
    try:
        while left := [name for name in tallies if tallies[name].next < ends[name]]:
            for name in left:
                if time.monotonic() > end:
                    return summary(tallies)
                tally, target = tallies[name], TARGETS[name]
                count = min(max(1, round(SLICE * target.share)), ends[name] - tally.next)
                for result in child.ask(name, tally.next, count):
                    why = tally.add(result)
                    if why:
                        print(f"FAILED {name} {result['case']}: {why}", flush=True)
                        keep(options.keep, name, options.seed, result["case"], why)
    finally:
        child.stop()
    return summary(tallies)


def summary(tallies: dict[str, Tally]) -> int:
    """Print a line per target and one for all; the number of failures."""
    print(f"{'target':<16}{'cases':>8}{'read':>8}{'refused':>8}{'failed':>8}{'s':>8}{'MB':>7}")
    for name, tally in tallies.items():
        counts = f"{tally.outcomes['read']:>8}{tally.outcomes['refused']:>8}{tally.failures:>8}"
        total = tally.outcomes.total()
        print(f"{name:<16}{total:>8}{counts}{tally.slowest:>8.2f}{tally.largest:>7.0f}")
    cases = sum(tally.outcomes.total() for tally in tallies.values())
    failures = sum(tally.failures for tally in tallies.values())
    print(f"{cases} cases, {failures} failures")
    return failures


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000, help="in all, at most")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="may be repeated")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="for what fails")
    sys.exit(min(1, run(parser.parse_args())))


if __name__ == "__main__":
    main()
