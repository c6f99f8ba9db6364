"""How Sphinx makes the site (`make docs`): nothing is fetched, and a warning is an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tools"))

from gallery import write_pages  # noqa: E402
from references import (  # noqa: E402
    svg_of_graph,
    without_dead_links,
    write_api,
    write_command_line,
    write_export,
    write_notebook,
    write_wheel,
)

from mkdesc import __version__  # noqa: E402

project = "mkdesc"
author = "the mkdesc developers"
version = release = __version__
copyright = f"{author}. License: Apache-2.0"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_generated"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch", "triton", "uvicorn"]
autodoc_typehints = "signature"
# As they are written, not what they stand for: that of ArrayLike is a line of numpy's own names.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Describe", "Descriptors")} | {
    "Image": "str | PathLike | ArrayLike"
}
smartquotes_action = "qe"  # not D: --model is no dash
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
nitpicky = True
# Names of our own must lead somewhere; those of others are not looked up, which takes a network.
_INSIDE = r"mkdesc\.(compute|_support|features\.features_torch)\..*"
_OTHERS = rf"(?!mkdesc\.).*|{_INSIDE}|mkdesc\..*\.(Named|S|P|_\w+)"
nitpick_ignore_regex = [(r"py:.*", _OTHERS)]

html_theme = "pydata_sphinx_theme"
html_title = "mkdesc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_extra_path = ["_generated/extra"]
html_show_sourcelink = False
html_copy_source = False
html_logo = html_favicon = "_static/logo.svg"
html_theme_options = {
    "logo": {"text": "mkdesc", "alt_text": ""},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "benchmarks": [], "gallery": []}
html_search_scorer = str(DOCS / "scorer.js")
html_math_renderer = "mathml"  # which browsers show by themselves; MathJax would be fetched


class Mermaid(Directive):
    """A graph, drawn when the site is made."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The picture."""
        return [nodes.raw("", svg_of_graph("\n".join(self.content)), format="html")]


def _mathml(translator: Any, node: nodes.Element) -> None:
    """A formula as MathML."""
    block = isinstance(node, nodes.math_block)
    translator.body.append(tex2mathml(node.astext(), as_block=block))
    raise nodes.SkipNode


def _skip(app: Sphinx, what: str, name: str, member: object, skip: bool, options: Any) -> bool:
    """Fields of named tuples are told of in the class already."""
    return skip or type(member).__name__ == "_tuplegetter"


def _readable(app: Sphinx, what: str, name: str, obj: object, options: Any, *said: Any) -> Any:
    """Write defaults that are functions by their names: Sphinx cannot read them otherwise."""
    return tuple(text and re.sub(r"<function (\w+)[^>]*>", r"\1", text) for text in said)


def _within(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Whether a node is inside of one of some kinds."""
    return node.parent is not None and (
        isinstance(node.parent, kinds) or _within(node.parent, kinds)
    )


def _link_names(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Link the first mention of every name that has a page: `match_images`, `mkdesc.learn`."""
    if page.startswith("reference/"):
        return
    known = {}
    for name, found in app.env.get_domain("py").objects.items():  # type: ignore[attr-defined]
        if found.docname.startswith("reference/api/names/") and found.node_id == name:
            known[name] = (found.docname, name)
            if name.count(".") == 1:
                known[name.partition(".")[2]] = known[name]
    for literal in doctree.findall(nodes.literal):
        called = re.match(r"[\w.]+", literal.astext())
        target = known.pop(called[0], None) if called else None
        # Words such as `product` mean the function only where they are called or named in full.
        plain = called is not None and called[0].islower() and not re.search("[._]", called[0])
        if target and not plain and not _within(literal, (nodes.reference, nodes.title)):
            place = f"{app.builder.get_relative_uri(page, target[0])}#{target[1]}"
            link = nodes.reference("", "", refuri=place, internal=True)
            literal.replace_self(link)
            link += literal


def _own_code_only(app: Sphinx, page: str, template: str, context: Any, doctree: Any) -> None:
    """See :func:`references.without_dead_links`."""
    if page.startswith("_modules/"):
        context["body"] = without_dead_links(context["body"])


#: Tutorials that can be downloaded as notebooks.
NOTEBOOKS = ("match", "retrain", "reconstruct")


def _add_notebook(app: Sphinx, page: str, source: list[str]) -> None:
    """Link a tutorial's notebook below its title: there is none where the page is read as text."""
    folder, _, name = page.rpartition("/")
    if folder == "tutorials" and name in NOTEBOOKS:
        link = f'<a href="../notebooks/{name}.ipynb" download>This page as a notebook</a>'
        source[0] = source[0].replace("\n\n", f"\n\n{link}\n\n", 1)


def setup(app: Sphinx) -> None:
    """Write the references, which come from the source."""
    write_command_line(DOCS / "reference" / "command-line.md")
    write_api(DOCS / "reference" / "api", DOCS / "_generated" / "rooms.md")
    write_export(DOCS / "_generated" / "extra" / "explorer-page.html")
    write_wheel(DOCS / "_generated" / "extra")
    for name in NOTEBOOKS:
        page = DOCS / "tutorials" / f"{name}.md"
        write_notebook(page, DOCS / "_generated" / "extra" / "notebooks" / f"{name}.ipynb")
    write_pages(DOCS / "gallery", DOCS / "_generated" / "gallery.md")
    app.add_directive("mermaid", Mermaid)
    app.connect("source-read", _add_notebook)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _readable)
    app.connect("doctree-resolved", _link_names)
    app.connect("html-page-context", _own_code_only)
    app.add_html_math_renderer("mathml", (_mathml, None), (_mathml, None))
