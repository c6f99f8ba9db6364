"""Building the page: its files, and all of it in a single one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from mkdesc._support.files import atomic_path
from mkdesc._support.optional import needed
from mkdesc._support.targets import check_target
from mkdesc.explorer.data import constants, page_data

#: The page's JavaScript modules, each after those that it imports.
MODULES = (
    "constants.js",
    "kernels.js",
    "heads.js",
    "patches.js",
    "state.js",
    "store.js",
    "views.js",
    "photo.js",
    "composer.js",
    "pixel.js",
    "compare.js",
    "explore.js",
)

_IMPORT = re.compile(r"^import\s[^;]*?from \"\./[\w.]+\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |let |function |async function |class )", re.MULTILINE)


def constants_js() -> str:
    """The page's first module: constants that Python has, so that they are written once."""
    return "".join(f"export const {name} = {to_json(v)};\n" for name, v in constants().items())


def static_text(name: str) -> str:
    """The text of one of the page's files."""
    if name == "constants.js":
        return constants_js()
    return (files("mkdesc.explorer") / "static" / name).read_text(encoding="utf-8")


def plotly_js() -> str:
    """The plotting library, from the installed package."""
    with needed("the explorer needs plotly", "explore"):
        from plotly.offline import get_plotlyjs
    text: str = get_plotlyjs()
    return text


def data_json() -> str:
    """The page's data as JSON, safe inside a ``script`` element."""
    return to_json(page_data())


def to_json(value: Any) -> str:
    r"""Compact JSON without '<', which could end a ``script`` element.

    >>> to_json({"a": "</script>"})
    '{"a":"\\u003c/script>"}'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def bundle(modules: dict[str, str]) -> str:
    """Modules that import one another, in this order, as one script of a single scope.

    >>> bundle({"a.js": "export const one = 1;", "b.js": "export class Two {}"}).split(chr(10))
    ['const one = 1;', 'class Two {}']
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in modules.values())


def _as_script(text: str) -> str:
    """JavaScript that an HTML parser reads to its end; the meaning stays."""
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE).replace("<!--", r"<\!--")


def _policy(scripts: Iterable[str]) -> str:
    """The line by which a page loads nothing, and runs these scripts alone."""
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    content = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return f'<meta http-equiv="content-security-policy" content="{content}">'


def single_page() -> str:
    """The whole page in one text that needs no server."""
    plotly = _as_script(plotly_js())
    modules = _as_script("\n" + bundle({name: static_text(name) for name in MODULES}))
    charset = '<meta charset="utf-8">'
    parts = {
        charset: f"{charset}\n{_policy((plotly, modules))}",
        '<link rel="stylesheet" href="style.css">': f"<style>\n{static_text('style.css')}</style>",
        '<script src="plotly.js" defer></script>': f"<script>{plotly}</script>",
        '<script type="module" src="explore.js"></script>': (
            f'<script type="application/json" id="data">{data_json()}</script>\n'
            f'<script type="module">{modules}</script>'
        ),
    }
    page = static_text("index.html")
    for reference, inlined in parts.items():
        before, found, after = page.partition(reference)
        if not found:
            raise RuntimeError(f"index.html has no {reference}")
        page = before + inlined + after
    return page


def export_page(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the explorer as one HTML file that works from disk and from any static host.

    Parameters
    ----------
    path
        Of the file.
    overwrite
        Whether to replace a file that is no such page.
    """
    check_target(path, own=rb"<title>[^<]*mkdesc explorer</title>", overwrite=overwrite)
    text = single_page()
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")
