"""What makes the site: references that leave nothing out, and a check that finds dead links."""

import importlib
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import mkdesc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import check_site
import references
import rooms


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder of the reference's pages."""
    folder = tmp_path_factory.mktemp("api")
    references.write_api(folder, folder / "rooms.txt")
    return folder


@pytest.fixture(scope="module")
def reference(pages):
    """Names by the module that the pages document them in."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages.rglob("*.md"))
    found = re.findall(r"automodule:: (\S+)\n   :members: (.*)", text)
    documented = {module: names.split(", ") for module, names in found}
    directive = r"currentmodule:: (\S+)\n\n\.\. (?:auto|py:)(?:function|class|data):: (\S+)"
    for module, name in re.findall(directive, text):
        documented.setdefault(module, []).append(name.removeprefix(f"{module}."))
    return documented


def test_every_name_of_the_front_door_has_a_page_and_a_line(pages):
    listing = (pages / "mkdesc.md").read_text(encoding="utf-8")
    lines = dict(
        re.findall(r"^\| \[`(\w+)`\]\(names/mkdesc\.\w+\.md\) \| (.+) \|$", listing, re.M)
    )
    assert sorted(lines) == sorted(mkdesc.__all__)
    page = (pages / "names" / "mkdesc.match_images.md").read_text(encoding="utf-8")
    assert "autofunction:: mkdesc.match_images" in page
    assert "[Match two photographs](../../../tutorials/match.md)" in page
    assert lines["match_images"].startswith("Match two photographs: keypoints")
    assert lines["POLAR"].startswith("The paper's polar kernel")
    listed = (pages / "rooms.txt").read_text(encoding="utf-8")
    assert "| [`mkdesc.learn`](" in listed
    other = (pages / "names" / "mkdesc.torch.match_descriptors.md").read_text(encoding="utf-8")
    assert "autofunction" in other  # it has another name where it is defined
    assert "opencv.md" not in other  # that page uses the other function of this name


@pytest.mark.parametrize("name", [name for name in mkdesc.__all__ if not name.isupper()])
def test_the_front_door_has_examples(name):
    if name == "TrainedHead":
        pytest.importorskip("torch")
    assert ">>> " in getattr(mkdesc, name).__doc__


def test_the_front_door_is_documented_whole(reference):
    assert sorted(reference["mkdesc"]) == sorted(mkdesc.__all__)


@pytest.mark.parametrize(
    "module",
    [
        "mkdesc.learn",
        "mkdesc.sfm",
        "mkdesc.heads",
        "mkdesc.kernels",
        "mkdesc.measures",
    ],
)
def test_every_public_object_has_one_place(reference, module):
    pytest.importorskip("torch")  # some of the modules are PyTorch's
    documented = [
        id(getattr(importlib.import_module(home), name))
        for home, names in reference.items()
        if not home.startswith("mkdesc.torch")
        for name in names
    ]
    loaded = importlib.import_module(module)
    for name in loaded.__all__:
        if callable(getattr(loaded, name)):
            assert documented.count(id(getattr(loaded, name))) == 1, name


def test_a_graph_shows_every_room_and_arrow():
    graph = rooms.picture()
    picture = ET.fromstring(references.svg_of_graph(graph))
    arrows = [line.split(" --> ") for line in graph.splitlines() if "-->" in line]
    drawn = {text.text for text in picture.iter("text")}
    assert drawn == {name.strip() for arrow in arrows for name in arrow}
    assert len(list(picture.iter("path"))) == 2 * len(arrows)


def test_the_list_of_sources_has_ours_alone(tmp_path):
    """Where PyTorch is not installed, Sphinx lists it, as the home of what it decorates."""
    ours = '<li><a href="mkdesc.html">mkdesc</a></li>\n<li><a href="mkdesc/torch.html">t</a></li>'
    others = '<li><a href="torch.html">torch</a></li>\n<li><a href="builtins.html">b</a></li>\n'
    (tmp_path / "mkdesc").mkdir()
    (tmp_path / "mkdesc.html").write_text("")
    (tmp_path / "mkdesc" / "torch.html").write_text("")
    index = tmp_path / "index.html"
    index.write_text(f"<ul>{others}{ours}</ul>")
    assert len(list(check_site.faults(tmp_path))) == 2
    index.write_text(references.without_dead_links(index.read_text()))
    assert list(check_site.faults(tmp_path)) == []
    assert ours in index.read_text()
    back = '<a class="viewcode-back" href="../names/x.html#x">[docs]</a>def f(): ...'
    assert references.without_dead_links(back) == "def f(): ..."


def test_faults_of_a_site_are_found(tmp_path):
    (tmp_path / "whole.html").write_text('<h1 id="top"><a href="#top"></a><img src="data:,">')
    (tmp_path / "other.html").write_text('<a href="whole.html?v=1#top"></a><a href="https://x.y">')
    assert list(check_site.faults(tmp_path)) == []
    (tmp_path / "bad.html").write_text(
        '<a href="gone.html"></a><a href="whole.html#gone"></a><script src="https://x.y/z.js">'
    )
    assert list(check_site.faults(tmp_path)) == [
        "bad.html: no file gone.html",
        "bad.html: loads https://x.y/z.js from elsewhere",
        "bad.html: no place whole.html#gone",
    ]
