"""Commands that are killed and run again: ``python tools/kill`` (or ``make kill``).

Every command that writes is run undisturbed once; then again and again in an empty folder, killed
(SIGKILL) at a random moment or at a random change of its folder, and run once more; the last time
it finds no room on the disk instead, and must say so in one line. What is there then must be what
the undisturbed run left: the same names, the same bytes (of databases the same rows), no more. The
inputs must be as they were.

Commands run in forks of this process, which has imported everything and loaded the compiled loops:
what is killed is their work.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from inputs import COMMANDS, earlier, make_inputs

from mkdesc.cli.app import make_app
from mkdesc.cli.compile import compile_for

#: Seconds between two looks at the folder, and after which a command hangs.
LOOK, PATIENCE = 0.001, 900.0
#: Times of the day are written there.
UNLIKE = ("colmap.log",)


class Run(NamedTuple):
    """How a command ended: exit code (negative: killed), seconds, changes of the folder."""

    code: int
    seconds: float
    changes: int


def start(command: str, folder: Path, room: int) -> int:
    """Run a command in a folder by a fork, with files of so many bytes at most; its id."""
    child = os.fork()
    with suppress(
        ProcessLookupError, PermissionError
    ):  # whichever comes first: a group of its own
        os.setpgid(child, child)
    if child:
        return child
    try:
        os.chdir(folder)
        log = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        sys.argv = ["mkdesc", *command.split()]
        from mkdesc.cli import main

        main()
    except SystemExit as ended:
        os._exit(int(ended.code or 0))
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def run(
    command: str,
    folder: Path,
    after: float = 1e9,
    change: int = 10**9,
    room: int = resource.RLIM_INFINITY,
) -> Run:
    """Run a command; kill it after so many seconds, or at this change of its folder."""
    child, begin = start(command, folder, room), time.monotonic()
    seen: set[str] = set()
    changes = 0
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        seconds = time.monotonic() - begin
        if ended:
            return Run(os.waitstatus_to_exitcode(status), seconds, changes)
        names = {str(path) for path in walk(folder)}
        changes += names != seen
        seen = names
        if seconds > min(after, PATIENCE) or changes >= change:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Run(-signal.SIGKILL, seconds, changes)
        time.sleep(LOOK)


def walk(folder: Path) -> Iterator[Path]:
    """All files and folders below one that may be changing."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in [*folders, *files])


def contents(folder: Path) -> dict[str, str]:
    """What is in a folder: names, and digests of files; of runs that measure times names alone."""
    runs = {path.parent for path in walk(folder) if path.name == "config.json" and _is_timed(path)}
    found = {}
    for path in walk(folder):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_dir():
            found[name] = "folder"
        elif path.name not in UNLIKE:
            timed = not runs.isdisjoint(path.parents)
            found[name] = "there" if timed else hashlib.sha256(_data(path)).hexdigest()
    return found


def _is_timed(config: Path) -> bool:
    """Whether a run of evaluate writes down how long it took."""
    text = config.read_text(encoding="utf-8", errors="replace")
    return '"benchmark": "homography"' in text or '"benchmark": "pose"' in text


def _data(path: Path) -> bytes:
    """The bytes of a file; all rows of a database, which may lie in its file in any order."""
    if path.suffix != ".db":
        return path.read_bytes()
    with closing(sqlite3.connect(path)) as base:
        return "\n".join(base.iterdump()).encode()


@contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """A folder with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    yield folder


def compare(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """In what two folders differ, in words."""
    return [
        *(f"missing: {name}" for name in sorted(expected.keys() - found.keys())),
        *(f"left over: {name}" for name in sorted(found.keys() - expected.keys())),
        *(
            f"differs: {name}"
            for name in sorted(expected.keys() & found.keys())
            if expected[name] != found[name]
        ),
    ]


def try_command(name: str, kills: int, seed: int, data: Path, folder: Path) -> int:
    """Disturb a command some times; how often it did not come back as it was."""
    command, log = COMMANDS[name].format(data=data), folder.with_suffix(".log")
    with emptied(folder):
        run(command, folder)  # compiles what is not compiled yet
    with emptied(folder):
        whole = run(command, folder)
        if whole.code:
            print(f"FAILED {name}: {log.read_text(encoding='utf-8')[-500:]}")
            return 1
        expected = contents(folder)
        largest = max(path.stat().st_size for path in walk(folder) if path.is_file())
    inputs = contents(data)
    random, failed, hit = Random(f"{seed} {name}"), 0, 0
    for number in range(kills + 1):
        problems = []
        with emptied(folder):
            if number == kills:  # at last no room on the disk
                first = run(command, folder, room=random.randrange(largest))
                last = log.read_text(encoding="utf-8").strip().rpartition("\n")[2]
                refused = first.code == 2 and last.startswith("error: ")
                if not refused and contents(folder) != expected:  # links need no room
                    problems.append(f"without room it ended with {first.code}: {last}")
            elif number % 2:
                first = run(command, folder, after=random.uniform(0, whole.seconds))
            else:
                first = run(command, folder, change=random.randint(1, max(1, whole.changes)))
            hit += first.code == -signal.SIGKILL
            # Some then refuse to write once more. To look into a database may change it.
            names = {str(path.relative_to(folder)) for path in walk(folder)} - {*UNLIKE}
            done = names == expected.keys() and contents(folder) == expected
            again = run(command, folder)
            problems += compare(expected, contents(folder))
            problems += [f"input {problem}" for problem in compare(inputs, contents(data))]
        if again.code and not done:
            problems.append(f"exit {again.code}: {log.read_text(encoding='utf-8')[-300:]}")
        failed += bool(problems)
        if problems:
            moment = f"{first.seconds:.3f} s, change {first.changes}"
            print(f"FAILED {name}, {number} ({moment}): {'; '.join(problems)}", flush=True)
    print(f"{name:<16}{kills:>5} kills ({hit} before the end), {failed} failures", flush=True)
    return failed


def learn_little() -> None:
    """Let commands learn from few pairs of small views: each run takes minutes otherwise."""
    from mkdesc.learn import comparison, descriptors, keypoint_training, keypoints

    descriptors.CPU_POOL = descriptors.MEASURED_PAIRS = 4
    descriptors.CPU_POINTS, descriptors.CPU_SIZE = 50, 128
    keypoint_training.CHECKED_PAIRS = keypoint_training.MEASURED_PAIRS = 2
    keypoints.CPU_SIZE = 96
    comparison.VIEWS = 2


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="kill", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=11, help="of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", choices=list(COMMANDS))
    options = parser.parse_args()
    make_app()  # imports all commands
    for module in ("cv2", "h5py", "pycolmap", "numba", "matplotlib.pyplot"):
        importlib.import_module(module)
    compile_for()
    learn_little()
    with tempfile.TemporaryDirectory(prefix="mkdesc-kill-") as name:
        place = Path(name).resolve()
        (place / "tmp").mkdir()
        os.environ["TMPDIR"] = str(place / "tmp")  # what is left there is not counted
        tempfile.tempdir = None
        data, folder = place / "data", place / "run"
        make_inputs(data)
        chosen = options.command or list(COMMANDS)
        for command in earlier(chosen):
            with emptied(folder):
                assert run(command.format(data=data), folder).code == 0, command
        failed = sum(try_command(one, options.kills, options.seed, data, folder) for one in chosen)
    print(f"{options.kills * len(chosen)} kills of {len(chosen)} commands, {failed} failures")
    sys.exit(min(1, failed))


if __name__ == "__main__":
    main()
