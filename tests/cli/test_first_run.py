"""The first run on a machine: what it does instead of waiting for the compiler."""

import subprocess

import numpy as np
import pytest

import mkdesc
from mkdesc.cli import first_run
from mkdesc.compute.cpu import backend
from mkdesc.images.demo import write_demo
from mkdesc.images.detectors.dog import Dog
from mkdesc.images.detectors.learned import Learned


@pytest.fixture
def started(monkeypatch):
    """The processes that were started: their arguments."""
    found = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **_: found.append(words))
    return found


@pytest.fixture
def cold(monkeypatch):
    monkeypatch.setattr(backend, "is_compiled", lambda parametrization, size: False)


def test_few_patches_are_described_by_numpy_meanwhile(cold, started):
    features = mkdesc.Features("orb", 100, "paper", upright=True, output="uint8")
    found = first_run.while_compiling(features, many=False)
    assert found.mkd.backend == "numpy"
    assert len(started) == 1
    assert started[0][-1] == "paper"
    image = np.random.default_rng(0).integers(0, 256, (200, 200), np.uint8)
    (here, one), (there, other) = (x.detectAndCompute(image) for x in (features, found))
    assert [k.pt for k in here] == [k.pt for k in there]
    assert len(one) > 50
    assert np.abs(one.astype(int) - other).max() <= 1


def test_the_notice_is_true_of_every_run_until_then(cold, tmp_path, run):
    write_demo(tmp_path)
    for _ in range(2):
        done = run("match", "photo.png", "warped.png", "--keypoints", "100", cwd=tmp_path)
        assert done.returncode == 0
        notice = done.stderr.splitlines()[0]
        assert (
            notice
            == "this first run uses plain numpy; the faster code is compiled in the background "
            "(`mkdesc compile` does it ahead)"
        )


def test_for_many_the_loop_is_worth_waiting_for(cold, started):
    features = mkdesc.Features("orb", 100)
    assert first_run.while_compiling(features, many=True) is features
    assert "compile_others" in " ".join(started[0])
    assert started[0][-1] == "orb"


def test_other_detectors_are_not_compiled(monkeypatch):
    def refuse(*_):
        raise AssertionError("another detector was compiled")

    monkeypatch.setattr(Dog, "detect", refuse)
    monkeypatch.setattr(Learned, "detect", refuse)
    first_run.compile_others("orb")
    with pytest.raises(AssertionError, match="another detector"):
        first_run.compile_others("dog")


def test_no_process_no_harm(cold, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert first_run.while_compiling(mkdesc.Features(10), many=False).mkd.backend == "numpy"


def test_ahead_of_time(monkeypatch, run):
    asked = []
    for name in ("compile_describing", "compile_others"):
        monkeypatch.setattr(first_run, name, asked.append)
    done = run("compile", "--model", "extended", "--detector", "orb")
    assert (done.returncode, asked) == (0, ["extended", "orb"])
    assert done.stdout.startswith("compiled, or found compiled, in 0.")


def test_what_is_compiled_is_used(started):
    """As it is after what the other process does."""
    first_run.compile_describing("photo")
    first_run.compile_others("learned")
    features = mkdesc.Features(100)
    assert first_run.while_compiling(features, many=False) is features
    assert not started
