import os
import signal

import pytest

from mkdesc._support.isolation import run_isolated
from mkdesc._support.npy import map_array


def test_what_ends_well_says_nothing(tmp_path):
    run_isolated(os.mkdir, str(tmp_path / "made"))
    assert (tmp_path / "made").is_dir()


def test_many_arguments_find_their_way():
    """More than a command line may have."""
    run_isolated(print, ["x" * 100] * 10_000)


def test_errors_are_said_in_one_line(tmp_path):
    with pytest.raises(RuntimeError, match=r"^FileNotFoundError: .*nothing\.npy'$"):
        run_isolated(map_array, str(tmp_path / "nothing.npy"))


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_process_that_is_ended_is_an_error():
    with pytest.raises(RuntimeError, match=rf"the process ended: -{signal.SIGABRT.value}"):
        run_isolated(os.abort)
