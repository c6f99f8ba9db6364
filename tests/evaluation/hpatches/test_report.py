"""Tables and plots of made-up scores: each number in its place."""

import pytest

from mkdesc.datasets.hpatches.layout import NOISES, Split
from mkdesc.evaluation.hpatches.report import hpatches_results
from mkdesc.evaluation.hpatches.scores import TaskResult
from mkdesc.evaluation.report.published import TASKS

KINDS = ("illumination", "viewpoint")


def result(task, start):
    """Scores start, start + 0.01, ...: all different."""
    at = iter(start + 0.01 * step for step in range(100))

    def scores():
        return {"ap": next(at), "ap_trapezoid": next(at), "auc": next(at)}

    curve = {"fpr": [0.1], "tpr": [0.2], "recall": [0.3], "precision": [0.4]}
    curves = {noise: dict.fromkeys(("intra", "inter"), curve) for noise in NOISES}
    mean = scores()
    by_noise = {noise: scores() for noise in NOISES}
    by_type = {kind: scores() for kind in KINDS}
    return TaskResult(task, mean, by_noise, by_type, {}, curves)


@pytest.fixture
def found():
    return {
        label: {task: result(task, start + k / 10) for k, task in enumerate(TASKS)}
        for label, start in (("PCW", 0.1), ("PCW*", 0.5))
    }


def report(found, table=None, sequences=2):
    split = Split("a", tuple(f"v_{k}" for k in range(sequences)))
    return hpatches_results(found, {"PCW": 3, "PCW*": 4}, {"PCW": "x", "PCW*": "y"}, table, split)


def test_numbers_are_in_their_columns(found):
    main, noise, kinds = report(found).tables
    for table in (main, noise, kinds):
        assert [row.name for row in table.rows] == ["PCW", "PCW*"]
    one = found["PCW*"]
    row = dict(zip(main.columns, main.rows[1].values, strict=True))
    assert row.pop("D") == 4
    assert row.pop("ROC AUC") == 100 * one["verification"].mean["auc"]
    expected = {task: 100 * one[task].mean["ap"] for task in TASKS}
    expected |= {f"{task}, trapezoid": 100 * one[task].mean["ap_trapezoid"] for task in TASKS}
    assert row == expected
    row = dict(zip(noise.columns, noise.rows[1].values, strict=True))
    assert row == {f"{t} {n}": 100 * one[t].by_noise[n]["ap"] for t in TASKS for n in NOISES}
    row = dict(zip(kinds.columns, kinds.rows[1].values, strict=True))
    assert row == {f"{t} {k}": 100 * one[t].by_type[k]["ap"] for t in TASKS for k in KINDS}


def test_plots_show_the_same(found):
    plots = {plot.name: plot for plot in report(found).plots}
    assert list(plots) == ["noise", "types", "precision-recall", "roc"]
    bars = plots["types"].panels["matching"]["PCW"]
    assert bars == {k: 100 * found["PCW"]["matching"].by_type[k]["ap"] for k in KINDS}
    assert plots["roc"].panels["hard, inter"]["PCW"] == {"x": [0.1], "y": [0.2]}
    assert plots["precision-recall"].panels["easy, intra"]["PCW*"] == {"x": [0.3], "y": [0.4]}
    assert plots["roc"].log_x
    assert not plots["precision-recall"].log_x


@pytest.mark.parametrize(("sequences", "note"), [(40, False), (39, True)])
def test_published_numbers_of_other_sequences_are_marked(found, sequences, note):
    tables = {table.key: table for table in report(found, 4, sequences).tables}
    for key in ("hpatches", "table-4-all", "table-4-others"):
        assert ("original HPatches" in "".join(tables[key].notes)) == note
    assert tables["hpatches-noise"].notes == ()
    assert all(table.notes == () for table in report(found, None, sequences).tables)
