"""The page's JavaScript: types, style, one scope for all of it; and a page for everybody."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mkdesc.explorer.page import MODULES, bundle, static_text

TOOLS = Path(__file__).parents[2] / "tools" / "javascript"
PACKAGES = TOOLS / "node_modules"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_packages = pytest.mark.skipif(
    shutil.which("node") is None or not PACKAGES.is_dir(),
    reason="npm install --prefix tools/javascript has not been run",
)
#: Wrong in one way each, and what is said of it.
WRONG = {
    "misspelt": ("export const f = (text) => text + Math.sqroot(2);\n", "sqroot"),
    "unused": ("const forgotten = 1;\n", "forgotten"),
}


@pytest.fixture
def page(tmp_path):
    """A folder with all modules of the page."""
    for name in MODULES:
        (tmp_path / name).write_text(static_text(name), encoding="utf-8")
    (tmp_path / "plotly.d.ts").write_text("declare const Plotly: any;\n")
    return tmp_path


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def types(folder):
    options = "--noEmit --allowJs --checkJs --noUnusedLocals --target es2023 --module es2022"
    files = sorted(path.name for path in folder.iterdir())
    more = ["--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable", "--types", ""]
    return run(
        [PACKAGES / ".bin/tsc", *options.split(), "--strict", "false", *more, *files], folder
    )


def style(folder):
    config = ["--config", TOOLS / "eslint.config.mjs", "--max-warnings", "0"]
    return run([PACKAGES / ".bin/eslint", *config, *MODULES], folder)


@needs_packages
@pytest.mark.parametrize("check", [types, style])
def test_nothing_is_found(page, check):
    assert check(page) == (0, "")


@needs_packages
@pytest.mark.parametrize(("check", "wrong"), [(types, "misspelt"), (style, "unused")])
def test_what_is_wrong_is_found(page, check, wrong):
    text, said = WRONG[wrong]
    (page / "composer.js").write_text(static_text("composer.js") + text, encoding="utf-8")
    code, output = check(page)
    assert code != 0
    assert said in output


@needs_node
def test_modules_share_one_scope(tmp_path):
    """In the exported page they are one script, in which a name may be declared once."""
    script = tmp_path / "page.mjs"
    script.write_text(bundle({name: static_text(name) for name in MODULES}), encoding="utf-8")
    assert run(["node", "--check", script], tmp_path) == (0, "")
    script.write_text(script.read_text(encoding="utf-8") + "const norm = 1;\n", encoding="utf-8")
    code, output = run(["node", "--check", script], tmp_path)
    assert code != 0
    assert "'norm' has already been declared" in output


@needs_packages
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_serious_accessibility_fault(open_page, address, scheme):
    page = open_page(address + "#see=ridge&k=extended")
    page.emulate_media(color_scheme=scheme)
    page.wait_for_selector("body[data-tabulated]")
    page.evaluate((PACKAGES / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    assert serious_faults(page) == {}
    page.evaluate("document.querySelector('main').append(document.createElement('select'))")
    assert list(serious_faults(page)) == ["select-name"]  # it looks


def serious_faults(page):
    found = page.evaluate("async () => (await axe.run()).violations")
    return {
        fault["id"]: [node["html"][:120] for node in fault["nodes"]]
        for fault in found
        if fault["impact"] in ("serious", "critical")
    }
