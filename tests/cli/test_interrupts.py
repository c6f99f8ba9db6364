"""Ctrl-C and the end of files, at moments that are chosen: each in a process of its own."""

import subprocess
import sys

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
        (IN_THE_SECOND_SEQUENCE, 130, "interrupted; the same command goes on from here"),
        (AT_THE_END_OF_A_FILE, 2, "error: a file ended where more was expected"),
        (A_LONG_MESSAGE, 2, f"error: {'x' * 997}..."),
    ],
)
def test_one_line_says_what_happened(tmp_path, before, code, said):
    program = f"{before}\nfrom mkdesc.cli import main\nmain()"
    command = [sys.executable, "-c", program, "make-hpatches", "a", "b", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert done.stderr.strip().splitlines()[-1] == said
    assert "Traceback" not in done.stderr
