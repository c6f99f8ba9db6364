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


def loaded_after(code):
    script = f"import sys; {code}; print(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import mkdesc; mkdesc.MKD(); mkdesc.POLAR; mkdesc.patch_map") == []


def test_modules_do_not_hide_functions_of_their_names():
    code = "import mkdesc, mkdesc.visual.figures, mkdesc.visual.inspection; mkdesc.patch_map"
    loaded_after(f"{code}; assert callable(mkdesc.match_kernel), mkdesc.match_kernel")


def test_describing_loads_numba_and_its_scipy_alone():
    code = "import mkdesc, numpy as n; mkdesc.MKD(patch_size=8).transform(n.zeros((1, 8, 8)))"
    assert loaded_after(code) == ["numba", "scipy"]


def test_every_public_name_is_there():
    assert set(mkdesc.__all__) == set(mkdesc._HOMES)
    assert all(getattr(mkdesc, name) is not None for name in mkdesc.__all__)


def test_names_and_modules_complete():
    assert {*mkdesc.__all__, "learn", "torch", "visual"} <= set(dir(mkdesc))
    with pytest.raises(AttributeError, match="no attribute 'learns'"):
        mkdesc.learns  # noqa: B018


@pytest.mark.parametrize("name", mkdesc._MODULES)
def test_modules_are_reached_by_their_names(name):
    if name == "torch":
        pytest.importorskip("torch")
    assert getattr(mkdesc, name).__name__ == f"mkdesc.{name}"


def test_the_client_that_type_checkers_read_runs():
    """mypy and pyright check it too, see the Makefile."""
    client = Path(__file__).parent / "typing" / "client.py"
    done = subprocess.run([sys.executable, client], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
