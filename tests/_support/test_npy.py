"""Headers of numpy's files, read by several threads."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest

from mkdesc._support.npy import read_array_header


class Garbage:
    """What only the collector finds; it then runs Python, and another thread may go on."""

    def __init__(self):
        self.me = self

    def __del__(self):
        sum(range(50))


@pytest.fixture
def restless():
    """Threads that give way, and a collector that comes, all the time."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


def test_threads_that_read_headers_do_not_disturb_each_other(restless):
    file = BytesIO()
    np.save(file, np.zeros((3, 4)))

    def read(_):
        Garbage()
        return read_array_header(BytesIO(file.getvalue())).shape

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(read, range(20_000))) == {(3, 4)}
