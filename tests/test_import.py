import ast
import compileall
import importlib
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mkdesc

HEAVY = (
    "numba",
    "scipy",
    "sklearn",
    "cv2",
    "torch",
    "rich",
    "typer",
    "safetensors",
    "pycolmap",
    "h5py",
    "plotly",
    "starlette",
    "uvicorn",
)


ROOMS = [name for name in dir(mkdesc) if name.islower() and name not in mkdesc.__all__]


def loaded_after(code):
    script = f"import sys; {code}; print(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import mkdesc; mkdesc.MKD(); mkdesc.POLAR; mkdesc.patch_map") == []


def test_without_sources(tmp_path):
    """As in a frozen application: compiled modules alone."""
    package = shutil.copytree(
        Path(mkdesc.__file__).parent,
        tmp_path / "mkdesc",
        ignore=shutil.ignore_patterns("__pycache__", "_compiled", "static", "figures"),
    )
    assert compileall.compile_dir(package, quiet=1, legacy=True)
    for file in package.rglob("*.py"):
        file.unlink()
    code = (
        "import mkdesc; assert mkdesc.__file__.endswith('.pyc'), mkdesc.__file__;"
        "import mkdesc.learn; print(*mkdesc.__all__, *mkdesc.learn.__all__);"
        "mkdesc.describe, mkdesc.MKD(backend='numpy').fit(), mkdesc.learn.Recipe()"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*mkdesc.__all__, *mkdesc.learn.__all__]


def test_modules_do_not_hide_functions_of_their_names():
    code = "import mkdesc, mkdesc.visual.figures, mkdesc.visual.inspection; mkdesc.patch_map"
    loaded_after(f"{code}; assert callable(mkdesc.match_kernel), mkdesc.match_kernel")


def test_describing_loads_neither_numba_nor_scipy_once_it_is_compiled():
    code = "import mkdesc, numpy as n; mkdesc.describe(n.zeros((1, 64, 64), n.uint8))"
    loaded_after(code)
    assert loaded_after(code) == ["safetensors"]


def test_importing_every_room_loads_nothing_heavy():
    """Rooms are doors: what is behind them is imported when it is used."""
    names = ", ".join(f"mkdesc.{room}" for room in ROOMS if room != "torch")
    code = f"import mkdesc; {names}; print([m for m in sys.modules if m.startswith('mkdesc.')])"
    done = subprocess.run([sys.executable, "-c", f"import sys; {code}"], capture_output=True)
    loaded = ast.literal_eval(done.stdout.decode())
    assert {f"mkdesc.{room}" for room in ROOMS if room != "torch"} <= set(loaded)
    assert len(loaded) < len(ROOMS) + 4  # and _support's


@pytest.mark.parametrize("package", ["mkdesc", *(f"mkdesc.{room}" for room in ROOMS)])
def test_every_public_name_is_there(package):
    if package == "mkdesc.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(package)
    assert module.__all__
    for name in module.__all__:
        found = getattr(module, name)
        assert not inspect.ismodule(found), name
        assert found.__doc__, name
    assert {*module.__all__} <= {*dir(module)}


def test_modules_of_rooms_are_reached_by_their_names():
    """Whether or not something has imported them before."""
    loaded_after("import mkdesc; assert callable(mkdesc.sfm.pipeline.reconstruct)")
    with pytest.raises(AttributeError, match="no attribute 'recon'; it has Matched"):
        mkdesc.sfm.recon  # noqa: B018


def test_names_and_modules_complete():
    assert set(dir(mkdesc)) == {*mkdesc.__all__, *ROOMS}
    with pytest.raises(AttributeError, match="no attribute 'learns'"):
        mkdesc.learns  # noqa: B018


@pytest.mark.parametrize("name", ROOMS)
def test_modules_are_reached_by_their_names(name):
    if name == "torch":
        pytest.importorskip("torch")
    assert getattr(mkdesc, name).__name__ == f"mkdesc.{name}"


def test_the_client_that_type_checkers_read_runs():
    """mypy and pyright check it too, see the Makefile."""
    client = Path(__file__).parent / "typing" / "client.py"
    done = subprocess.run([sys.executable, client], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_command_loads_no_other():
    code = "import sys; sys.argv = ['mkdesc', 'info']; from mkdesc.cli import _load; _load()"
    names = "('mkdesc.cli.info', 'mkdesc.cli.learn')"
    script = f"{code}; print(*(name in sys.modules for name in {names}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr
