"""A little of what `make fuzz` and `make kill` do for an hour; and places that cannot be used."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"

pytestmark = pytest.mark.long


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted as Linux does")
def test_damaged_files_are_read_or_refused(tmp_path):
    pytest.importorskip("pycolmap")
    pytest.importorskip("h5py")
    command = [sys.executable, TOOLS / "fuzz", "--cases", "3000", "--keep", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith(" cases, 0 failures")


@pytest.mark.skipif(sys.platform != "linux", reason="commands run in forks")
def test_killed_commands_come_back_as_they_were():
    """Those that write most: files, folders, folders of files, stores of others."""
    pytest.importorskip("h5py")
    names = ("describe", "features-h5", "index", "make-hpatches")
    chosen = [part for name in names for part in ("--command", name)]
    command = [sys.executable, TOOLS / "kill", "--kills", "2", *chosen]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 kills of 4 commands, 0 failures" in done.stdout


@pytest.fixture
def patches(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((3, 64, 64), np.uint8))
    return tmp_path / "in.npy"


def describe(patches, output, **environment):
    command = [sys.executable, "-m", "mkdesc", "describe", patches, "-o", output]
    command += ["--model", "paper"]  # which is compiled sooner than others
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_folder_that_cannot_be_written_to(tmp_path, patches):
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):  # nothing is forbidden to root, but to write here
        folder = Path("/sys")
        if not folder.is_dir():
            pytest.skip("no folder that root may not write to")
    done = describe(patches, folder / "out.npy")
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert "ermi" in last or "Read-only" in last
    assert "Traceback" not in done.stderr


def test_neither_a_home_nor_a_cache(tmp_path, patches):
    """Compiled code cannot be kept then; the descriptors are the same."""
    (tmp_path / "file").write_text("in the place of a folder")
    nowhere = str(tmp_path / "file" / "below")
    for name, changes in {
        "usual": {},
        "nowhere": {
            "HOME": nowhere,
            "XDG_CACHE_HOME": nowhere,
            "NUMBA_CACHE_DIR": nowhere,
            "MPLCONFIGDIR": nowhere,
        },
    }.items():
        done = describe(patches, tmp_path / f"{name}.npy", **changes)
        assert done.returncode == 0, done.stderr
    usual, other = (np.load(tmp_path / f"{name}.npy") for name in ("usual", "nowhere"))
    np.testing.assert_array_equal(usual, other)
