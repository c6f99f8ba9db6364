"""``mkdesc compile``: what the first use would compile."""

import subprocess
import sys

import pytest

from mkdesc.cli import compile as command
from mkdesc.images.demo import write_demo


def test_ahead_of_time(monkeypatch, run):
    asked = []
    monkeypatch.setattr(command, "compile_for", lambda *words: asked.append(words))
    done = run("compile", "--model", "extended", "--detector", "orb")
    assert (done.returncode, asked) == (0, [("orb", "extended")])
    assert done.stdout.startswith("compiled, or found compiled, in 0.")


def test_matching_needs_no_compiler_then(tmp_path):
    command.compile_for()
    write_demo(tmp_path)
    code = (
        "import sys; sys.modules['numba'] = None; from mkdesc.cli import main;"
        "sys.argv[1:] = ['match', 'photo.png', 'warped.png']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_images_of_floats_need_no_compiler_either(kind):
    command.compile_for()
    code = (
        "import sys; sys.modules['numba'] = None; import numpy, mkdesc;"
        "image = numpy.random.default_rng(0).random((90, 90)).astype(sys.argv[1]);"
        "print(len(mkdesc.Features(5).extract(image)[0]))"
    )
    words = [sys.executable, "-c", code, kind]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
