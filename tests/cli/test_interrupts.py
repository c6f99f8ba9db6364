"""Ctrl-C and the end of files, at moments that are chosen: each in a process of its own."""

import os
import signal

import numpy as np
import pytest

IN_THE_MIDDLE_OF_AN_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *rest):
        if name == "rich.progress":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:  # as some compiled modules do
                raise RuntimeError("already initialised")
sys.meta_path.insert(0, Finder())
"""
IN_THE_SECOND_SEQUENCE = """
from pathlib import Path
from mkdesc.cli import make_hpatches
def make(folder, *rest, **keywords):
    if folder.name == "b":
        raise KeyboardInterrupt
make_hpatches.make_sequence = make
"""
BY_A_SCHEDULER = """
import os, signal
from mkdesc.cli import make_hpatches
def make(folder, *rest, **keywords):
    os.kill(os.getpid(), signal.SIGTERM)
make_hpatches.make_sequence = make
"""
WHEN_COLMAP_IS_LOADED = """
import os, signal
from mkdesc.cli import make_hpatches
from mkdesc.datasets.colmap import pycolmap_module
def make(folder, *rest, **keywords):
    pycolmap_module()
    os.kill(os.getpid(), signal.SIGTERM)
make_hpatches.make_sequence = make
"""
AT_THE_END_OF_A_FILE = """
from mkdesc.cli import make_hpatches
def make(*rest, **keywords):
    raise EOFError
make_hpatches.make_sequence = make
"""
A_LONG_MESSAGE = """
from mkdesc.cli import make_hpatches
def make(*rest, **keywords):
    raise ValueError("x" * 61_000 + chr(10) + "y")
make_hpatches.make_sequence = make
"""


@pytest.mark.parametrize(
    ("before", "code", "said"),
    [
        (IN_THE_MIDDLE_OF_AN_IMPORT, 130, "interrupted; nothing was written"),
        (IN_THE_SECOND_SEQUENCE, 130, "interrupted; run the same command again to resume"),
        (BY_A_SCHEDULER, 130, "interrupted; run the same command again to resume"),
        (WHEN_COLMAP_IS_LOADED, 130, "interrupted; run the same command again to resume"),
        (AT_THE_END_OF_A_FILE, 2, "error: a file ended early"),
        (A_LONG_MESSAGE, 2, f"error: {'x' * 997}..."),
    ],
)
def test_one_line_says_what_happened(tmp_path, before, code, said, start):
    if before == WHEN_COLMAP_IS_LOADED:
        pytest.importorskip("pycolmap")
    program = f"{before}\nfrom mkdesc.cli import main\nmain()"
    child = start("-c", program, "make-hpatches", "a", "b", "-o", "out", cwd=tmp_path)
    _, errors = child.communicate(timeout=120)
    assert child.returncode == code, errors
    assert errors.strip().splitlines()[-1] == said
    assert "Traceback" not in errors


WHEN_A_WORKER_STARTS = """
from distributed import Nanny
start = Nanny.start_unsafe
async def tell(self):
    print("now", flush=True)
    return await start(self)
Nanny.start_unsafe = tell
"""
WHEN_A_PIECE_IS_DONE = """
from mkdesc.batches import describing
in_order = describing.in_order
def tell(*rest):
    for done in in_order(*rest):
        print("now", flush=True)
        yield done
describing.in_order = tell
"""


@pytest.mark.parametrize("before", [WHEN_A_WORKER_STARTS, WHEN_A_PIECE_IS_DONE])
def test_workers_of_a_cluster_end_in_silence(tmp_path, before, start):
    pytest.importorskip("distributed")
    np.save(tmp_path / "in.npy", np.zeros((100_000, 32, 32), np.uint8))
    program = f"{before}\nfrom mkdesc.cli import main\nmain()"
    command = ("describe", "in.npy", "-o", "out.npy", "--cluster", "local:1")
    process = start("-c", program, *command, cwd=tmp_path, start_new_session=True)
    assert process.stdout.readline() == "now\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert said.strip().splitlines()[-1] == "interrupted; run the same command again to resume", (
        said
    )
    assert "Traceback" not in said
