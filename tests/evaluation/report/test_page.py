"""The page of a run: whole, by itself, and with the numbers of the run."""

import csv
import json
import math
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from mkdesc.evaluation.photographs.base import PhotographOptions
from mkdesc.evaluation.photographs.gallery import COLOURS
from mkdesc.evaluation.photographs.homography import run_homography
from mkdesc.evaluation.report.compare import compare_runs
from mkdesc.evaluation.report.page import page_of, pairs_csv
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.runs import read_run, save_results
from mkdesc.evaluation.report.svg import panel_svg
from mkdesc.evaluation.report.table import Row, Table

FEW = PhotographOptions(keypoints=150)
VOID = {"meta", "link", "img", "br"}


class Reader(HTMLParser):
    """Tags that are closed in order, what they refer to, and the cells of tables."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.cells, self.tags = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A sequence of two photographs, the second of which is the first moved by 20 px."""
    root = tmp_path_factory.mktemp("plane")
    noise = np.random.default_rng(0).normal(size=(160, 240)).astype(np.float32)
    image = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)
    moved = np.array([[1.0, 0, -20], [0, 1, 0], [0, 0, 1]])
    for name, matrix in (("1", np.eye(3)), ("2", moved)):
        seen = cv2.warpPerspective(image.astype(np.uint8), matrix, (240, 160))
        cv2.imwrite(str(root / f"{name}.png"), seen)
    np.savetxt(root / "H_1_2", moved)
    return root


@pytest.fixture(scope="module")
def runs(plane, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    run_homography(plane, ["rootsift", "orb"], options=FEW, output=folder / "one")
    run_homography(plane, ["sift+photo"], options=FEW, output=folder / "two")
    return folder


def test_the_page_is_whole_and_needs_no_other_file(runs):
    text = (runs / "one" / "report.html").read_text()
    page = Reader(text)
    assert page.links
    assert all(link.startswith("data:image/jpeg;base64,") for link in page.links)
    for word in ("<script", "@import", "url(", "http://", "https://"):
        assert word not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_page_has_the_numbers_of_the_table(runs):
    page = Reader((runs / "one" / "report.html").read_text())
    lines = (runs / "one" / "table.md").read_text().splitlines()
    row = next(line for line in lines if line.startswith("| rootsift"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    start = page.cells.index("rootsift")
    assert page.cells[start : start + len(cells)] == cells


def test_pictures_have_lines_in_the_colour_of_their_error(runs):
    """As many of each colour as the curve of matching accuracy says."""
    page = Reader((runs / "one" / "report.html").read_text())
    scores = read_run(runs / "one")[1].details["rootsift"]["pairs"]
    (only,) = scores.values()
    colours = [
        "rgb({},{},{})".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))
        for colour in COLOURS
    ]
    strokes = [tag["stroke"] for name, tag in page.tags if name == "line" and "stroke" in tag]
    drawn = [stroke for stroke in strokes if stroke in colours]
    # One pair is best, median and worst at once, and is drawn once for each of two methods.
    assert len(page.links) == 2
    assert set(drawn) <= set(colours)
    first = drawn[: min(only["matches"], 120)]
    within = [only["accuracy"][0], only["accuracy"][2] - only["accuracy"][0]]
    for colour, share in zip(colours, within, strict=False):
        assert first.count(colour) / len(first) == pytest.approx(share, abs=0.15)


def test_scores_of_pairs_are_a_table_too(runs):
    with (runs / "one" / "pairs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    results = json.loads(
        (runs / "one" / "results.json").read_text(), parse_constant=lambda word: pytest.fail(word)
    )
    assert [row["method"] for row in rows] == ["rootsift", "orb"]
    for row in rows:
        scores = results["details"][row["method"]]["pairs"][row["pair"]]
        assert int(row["right"]) == scores["right"]
        assert float(row["corner_error"]) == scores["corner_error"]
        assert len(row["accuracy"].split()) == 10


def test_two_runs_are_compared_pair_by_pair(runs, tmp_path):
    results = compare_runs([runs / "one", runs / "two"])
    plot = next(one for one in results.plots if one.name == "pairs-distinct")
    names, values = plot.pairs_of("")
    assert len(names) == 1
    assert list(values) == ["one: rootsift", "one: orb", "two: sift+photo"]
    (tmp_path / "both").mkdir()
    written = save_results(tmp_path / "both", results)
    assert {"report.html", "pairs.csv"} <= set(written)
    page = Reader((tmp_path / "both" / "report.html").read_text())
    dots = [tag for name, tag in page.tags if name == "circle"]
    assert len(dots) == 2 * 2  # two methods against the first, in two plots
    assert "two: sift+photo" in page.cells
    with (tmp_path / "both" / "pairs.csv").open(newline="") as file:
        assert [row["method"] for row in csv.DictReader(file)] == list(values)


def test_runs_with_other_settings_say_so(runs, plane, tmp_path):
    run_homography(
        plane, ["orb"], options=PhotographOptions(keypoints=99), output=tmp_path / "few"
    )
    notes = compare_runs([runs / "one", tmp_path / "few"]).tables[0].notes
    assert notes == ("The runs differ in: keypoints.",)


def test_names_cannot_break_the_page():
    evil = "</title><script>alert(1)</script>&'\""
    table = Table("t", evil, (evil,), (Row(evil, (evil,)),), (evil,), evil)
    curve = Plot("c", evil, "curves", {evil: {evil: {"x": [0, 1], "y": [0, 1]}}}, evil, evil)
    pairs = Plot("p", evil, "pairs", {evil: {evil: {evil: 1.0}, "b": {evil: 2.0}}}, evil)
    bars = Plot("b", evil, "bars", {evil: {evil: {evil: 1.0}}})
    page = Reader(page_of(evil, [table], [curve, pairs, bars]))
    assert "script" not in {name for name, _ in page.tags}
    assert page.cells == [evil] * 4


def test_a_curve_goes_through_its_points():
    curve = {"x": [0, 5, 10], "y": [0, 1, 0.5]}
    svg = panel_svg(Plot("c", "C", "curves", {"": {"ours": curve}}), "")
    points = next(tag["points"] for name, tag in Reader(svg).tags if name == "polyline")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, one.split(",")) for one in points.split())
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y1 - y0 == pytest.approx(2 * (y2 - y0), abs=0.3)  # down is more
    assert y1 < y0


def test_dots_lie_where_both_values_are_the_same_far_along_logarithmic_axes():
    series = {"a": {"1": 0.1, "2": 1.0, "3": 10.0}, "b": {"1": 0.1, "2": 1.0, "3": 10.0}}
    tags = Reader(panel_svg(Plot("p", "P", "pairs", {"": series}, log_x=True), "")).tags
    places = [(float(t["cx"]), float(t["cy"])) for name, t in tags if name == "circle"]
    steps = np.diff(places, axis=0)
    np.testing.assert_allclose(steps[0], steps[1], atol=0.2)
    line = next(tag for _, tag in tags if tag.get("class") == "equal")
    slope = (float(line["y2"]) - float(line["y1"])) / (float(line["x2"]) - float(line["x1"]))
    assert steps[0][1] / steps[0][0] == pytest.approx(slope, abs=0.01)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "spiral"},
        {"panels": {"": {"a": {"x": [1], "y": [1, 2]}}}},
        {"panels": {"": {"a": {"x": ["1"], "y": [1]}}}},
        {"kind": "pairs", "panels": {"": {"a": {"1-2": "many"}}}},
        {"kind": "bars", "panels": {"": {"a": {"1-2": None}}}},
    ],
)
def test_plots_that_cannot_be_drawn_are_refused(change):
    values = {"name": "c", "title": "C", "kind": "curves", "panels": {}} | change
    with pytest.raises(TypeError, match="not a plot"):
        Plot.from_dict(values)


def test_no_pairs_no_table():
    assert pairs_csv({"mkd-raw": {"fpr95": {"a": math.nan}}}) is None
    assert pairs_csv({}) is None
