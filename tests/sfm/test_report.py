"""What a report says of a reconstruction: who is missing, doubtful or refused."""

import dataclasses
import json

from mkdesc.sfm.grown_pairs import RefusedPair
from mkdesc.sfm.report import SfmReport, _weak

REPORT = SfmReport(
    5, 3, 10, 30, 3.0, 6, 4.0, 0.5, 0.75, 1, 6, 4, 900, 700,
    unregistered=["d.jpg", "e.jpg"], weak={"c.jpg": ("a.jpg", 40)},
    faint={"b.jpg": 17}, refused=[RefusedPair("a.jpg", "d.jpg", "ambiguous, repeated structure")],
    seconds={"matching": 3.21},
)  # fmt: skip


def test_an_image_that_hangs_on_one_weak_pair_is_doubtful():
    counts = {("a", "b"): 500, ("a", "c"): 99, ("b", "d"): 100, ("d", "x"): 20, ("e", "f"): 30}
    # c has one weak pair; d a strong one (x is of no model); e and f are all of their model.
    assert _weak([{"a", "b", "c", "d"}, {"e", "f"}], counts) == {"c": ("a", 99)}


def test_a_report_names_who_is_missing_or_doubtful():
    text = "\n".join(REPORT.lines())
    assert "not registered: d.jpg, e.jpg" in text
    assert "doubtful: c.jpg hangs on 40 matches with a.jpg alone" in text
    assert "doubtful: b.jpg sees 17 points, where most images see far more" in text
    assert "refused: a.jpg and d.jpg: ambiguous, repeated structure" in text
    assert "mean track length 3.00; 6 in three images or more, 4.00" in text
    assert "mean reprojection error 0.50 px (0.75 px as found)" in text
    assert REPORT.times() == "matching 3.2 s"


def test_a_report_is_read_as_it_was_written():
    written = REPORT.to_dict({})
    assert "seconds" not in written  # the same input gives the same bytes
    assert SfmReport.from_dict(json.loads(json.dumps(written)), {}) == REPORT
    assert written["unregistered"] == ["d.jpg", "e.jpg"]
    assert written["weak"] == {"c.jpg": ("a.jpg", 40)}


def test_most_photographs_are_lost_if_less_than_half_of_what_was_given_is_placed():
    assert not REPORT.most_are_lost  # 3 of 5
    broken = dataclasses.replace(REPORT, bad={"f.jpg": "f.jpg: empty"})
    assert not broken.most_are_lost  # 3 of 6
    lost = dataclasses.replace(broken, bad={"f.jpg": "", "g.jpg": ""})
    assert lost.most_are_lost  # 3 of 7
    assert "less than half of 7 photographs could be placed: add" in lost.lines()[-1]


def test_long_lists_of_refused_pairs_are_cut():
    many = [RefusedPair(f"{k}.jpg", "z.jpg", "wrong") for k in range(23)]
    lines = dataclasses.replace(REPORT, refused=many).lines()
    assert sum(line.startswith("refused: ") for line in lines) == 10
    assert "... and 13 more, see report.json" in lines
