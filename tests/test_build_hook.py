"""``hatch_build.py``: what it puts into wheels; where it fails, a wheel for everybody."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

#: In the place of what compiles: leaves a file that says what for.
WRITE = """
import os, pathlib
told = os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"], os.environ["PYTHONPATH"]
pathlib.Path(os.environ["NUMBA_CACHE_DIR"], told[0]).write_text(repr(told))
"""


@pytest.fixture
def build(monkeypatch):
    """The module, without hatchling, and a hook of it that says what it warns of."""
    interface = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = object
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", REPOSITORY / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hook = module.CompiledLoops()
    hook.root, warnings = str(REPOSITORY), []
    hook.app = SimpleNamespace(display_warning=warnings.append)
    return module, hook, warnings


def data():
    return {"force_include": {}}


def test_loops_for_each_level_are_added(build, monkeypatch):
    module, hook, warnings = build
    monkeypatch.setattr(module, "LEVELS", "print('x86-64-v4 x86-64-v3')")
    monkeypatch.setattr(module, "COMPILE", WRITE)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # what the builder has set is not of this
    found = data()
    hook.initialize("standard", found)
    ((folder, target),) = found["force_include"].items()
    assert (target, warnings) == ("mkdesc/_compiled", [])
    files = {path.name: path.read_text() for path in Path(folder).iterdir()}
    source = str(REPOSITORY / "src")
    assert files.keys() == {"x86-64-v3", "x86-64-v4"}
    assert files["x86-64-v3"].startswith(f"('x86-64-v3', '', '{source}")
    assert found["tag"].startswith("py3-none-")
    assert not found["tag"].endswith("any")
    assert not found["pure_python"]
    hook.finalize("standard", found, "a.whl")
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        ("print()", WRITE),
        ("raise ImportError('llvmlite')", WRITE),
        ("print('x86-64-v4 x86-64-v3')", WRITE + "assert told[0] != 'x86-64-v3'"),
    ],
    ids=["no level", "nothing to compile with", "one fails"],
)
def test_without_them_the_wheel_is_for_everybody(build, monkeypatch, levels, code):
    module, hook, warnings = build
    monkeypatch.setattr(module, "LEVELS", levels)
    monkeypatch.setattr(module, "COMPILE", code)
    found = data()
    hook.initialize("standard", found)
    assert found == data()
    assert warnings == ["no loops were compiled ahead: first use will compile them"]
    hook.finalize("standard", found, "a.whl")


def test_nothing_is_compiled_for_an_editable_installation(build, monkeypatch):
    module, hook, warnings = build
    monkeypatch.setattr(module, "LEVELS", "raise AssertionError")
    found = data()
    hook.initialize("editable", found)
    hook.finalize("editable", found, "a.whl")
    assert (found, warnings) == (data(), [])


def test_what_is_compiled_is_there(build):
    """The code that the hook runs in children names functions of the package."""
    module, _, _ = build
    from mkdesc._support.machine_code import levels
    from mkdesc.cli.compile import compile_for

    for code, function in ((module.LEVELS, levels), (module.COMPILE, compile_for)):
        names = {}
        exec(code.partition(";")[0], names)
        assert function in names.values()
