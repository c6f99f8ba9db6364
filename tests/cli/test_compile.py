"""``mkdesc compile``: what the first use would compile."""

import subprocess
import sys

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
