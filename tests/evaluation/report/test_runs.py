import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import mkdesc.models
from mkdesc.datasets.hpatches.csv_files import write_csv
from mkdesc.datasets.hpatches.layout import HPatches
from mkdesc.evaluation.hpatches.benchmark import run_hpatches
from mkdesc.evaluation.phototourism.benchmark import find_subsets, run_phototourism
from mkdesc.evaluation.phototourism.protocols import evaluate_revisited
from mkdesc.evaluation.report.compare import compare_runs
from mkdesc.evaluation.report.plots import Plot
from mkdesc.evaluation.report.published import (
    PAPER_ROWS,
    TABLE_1,
    TABLE_2,
    TABLE_4_ALL,
    TABLE_4_OTHERS,
)
from mkdesc.evaluation.report.runs import Results, open_run, read_run, save_results
from mkdesc.evaluation.report.table import Row, Table
from mkdesc.heads.whitening import Whitening

BUNDLED = Path(mkdesc.models.__file__).parent


def means(patches):
    """A descriptor of 64 numbers: means of the cells of an 8 x 8 grid."""
    side = patches.shape[1] // 8 * 8
    cells = patches[:, :side, :side].reshape(len(patches), 8, side // 8, 8, side // 8)
    return cells.mean(axis=(2, 4)).reshape(len(patches), 64)


def column(table, row, name):
    return next(one for one in table.rows if one.name == row).values[table.columns.index(name)]


def test_table_1_whole(tmp_path, subsets_root):
    results = run_phototourism(subsets_root, output=tmp_path / "run")
    (table,) = results.tables
    assert [row.name for row in table.rows] == list(PAPER_ROWS)
    assert [row.values[0] for row in table.rows] == [175, 63, 238, 128, 128, 63, 128]
    assert len(table.columns) == 2 + 6
    assert all(row.published == () for row in table.rows)  # these subsets have other names
    for row in table.rows:
        assert row.values[1] == pytest.approx(np.mean(row.values[2:]))
    # What is not learned does not depend on the training subset.
    assert column(table, "mkd-raw", "door ← castle") == column(table, "mkd-raw", "door ← fox")
    config, kept = read_run(tmp_path / "run")
    assert kept.tables == results.tables
    assert config["protocol"] == "fpr95"
    made = {file.name for file in (tmp_path / "run").iterdir()}
    files = "config.json results.json table.md report.html cache"
    assert set(files.split()) == made
    assert len(list((tmp_path / "run" / "cache").rglob("*.npy"))) == 3


def test_scores_are_those_of_the_protocol(subsets_root, fpr95_of):
    table = run_phototourism(subsets_root, [means, "mkd-cartesian-raw+lw"]).tables[0]
    subsets = find_subsets(subsets_root)
    expected = fpr95_of(subsets["fox"], means)
    assert column(table, "means", "fox ← castle") == pytest.approx(expected)
    # Learning, written out with the classes that users have.
    from mkdesc import MKD

    describe = MKD("cartesian").transform
    castle = np.concatenate([describe(patches) for _, patches in subsets["castle"].blocks()])
    pairs = subsets["castle"].pairs(900)
    ends = (pairs.first[pairs.matching], pairs.second[pairs.matching])
    whitening = Whitening("lw", 63).fit(castle, pairs=ends)
    expected = fpr95_of(subsets["fox"], lambda patches: whitening.transform(describe(patches)))
    got = column(table, "mkd-cartesian-raw+lw", "fox ← castle")
    assert got == pytest.approx(expected, abs=0.23)  # one negative of 450


def test_learning_never_sees_the_test_subset(tmp_path, subsets_root):
    run_phototourism(
        subsets_root, ["mkd-raw+lw"], subsets=["castle", "door"], output=tmp_path / "a"
    )
    statistics = sorted(file.name for file in (tmp_path / "a").rglob("*.statistics.safetensors"))
    assert statistics == [
        "castle.subset.statistics.safetensors",
        "door.subset.statistics.safetensors",
    ]
    one = run_phototourism(subsets_root, ["mkd-raw+lw"], subsets=["castle", "door"]).tables[0]
    assert one.columns == ("D", "mean", "castle ← door", "door ← castle")


def test_revisited(subsets_root):
    table = run_phototourism(subsets_root, [means], subsets=["door"], protocol="revisited").tables[
        0
    ]
    subset = find_subsets(subsets_root)["door"]
    values = np.concatenate([means(patches) for _, patches in subset.blocks()])
    expected = evaluate_revisited(values, subset.labels(), subset.interest().image)
    assert table.columns == ("D", "mean", "door")
    assert table.rows[0].values[2] == pytest.approx(100 * expected.mean_ap, abs=1e-3)
    with pytest.raises(ValueError, match="public_code: needs pairs within"):
        run_phototourism(
            subsets_root, [means], subsets=["door"], protocol="revisited", public_code=True
        )


def test_published_values_stand_beside_ours(tmp_path, subsets_root):
    links = {"liberty": "castle", "notredame": "door", "yosemite": "fox"}
    for theirs, ours in links.items():
        (tmp_path / theirs).symlink_to(subsets_root / ours)
    table = run_phototourism(tmp_path, ["mkd-raw+lw"]).tables[0]
    beside = dict(zip(table.columns, table.rows[0].published, strict=True))
    assert beside["liberty ← yosemite"] == 9.84
    assert beside["yosemite ← liberty"] == 5.02
    assert beside["mean"] == pytest.approx(5.98, abs=0.005)
    assert "(paper 5.02)" in table.markdown()
    assert run_phototourism(subsets_root, ["mkd-raw"]).tables[0].rows[0].published == ()


def test_published_means():
    means_in_the_paper = (22.42, 35.87, 25.37, 8.30, 7.06, 15.13, 5.98)
    for name, mean in zip(PAPER_ROWS, means_in_the_paper, strict=True):
        assert np.mean(list(TABLE_1[name].values())) == pytest.approx(mean, abs=0.011)
    assert TABLE_2["mkd-raw+lw"] == tuple(one["PCW*"] for one in TABLE_4_ALL.values())
    for task, values in TABLE_4_OTHERS.items():
        assert values["PCW"] == TABLE_4_ALL[task]["PCW"] == max(values.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subsets": ["castle"]}, "needs two, got castle"),
        ({"subsets": ["tower"]}, "no subset 'tower'; there are castle, door, fox"),
        ({"protocol": "other"}, "protocol: expected fpr95 or revisited, got 'other'"),
        ({"public_code": True}, "public_code: only for the protocol"),
    ],
)
def test_phototourism_errors(subsets_root, arguments, message):
    with pytest.raises(ValueError, match=message):
        run_phototourism(subsets_root, **arguments)


def test_a_changed_configuration_is_refused(tmp_path, subsets_root):
    run = tmp_path / "run"
    first = run_phototourism(subsets_root, [means], output=run)
    cached = {file: file.stat().st_mtime_ns for file in run.rglob("*.npy")}
    assert run_phototourism(subsets_root, [means], output=run) == first
    assert {file: file.stat().st_mtime_ns for file in run.rglob("*.npy")} == cached
    with pytest.raises(ValueError, match=r"has means, needed again here \(no descriptor"):
        run_phototourism(subsets_root, ["mkd-raw"], output=run)
    with pytest.raises(ValueError, match=r"other settings \(subsets door \d+ instead of nothing"):
        run_phototourism(subsets_root, [means], subsets=["castle", "fox"], output=run)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="full: has files that mkdesc did not write"):
        run_phototourism(subsets_root, [means], output=tmp_path / "full")


@pytest.mark.parametrize("benchmark", ["phototourism", "hpatches"])
def test_a_second_run_adds_descriptors(tmp_path, subsets_root, strips_root, benchmark):
    measure, root = {
        "phototourism": (run_phototourism, subsets_root),
        "hpatches": (run_hpatches, strips_root),
    }[benchmark]
    model = shutil.copy(BUNDLED / "paper-64.safetensors", tmp_path / "mine.safetensors")
    measure(root, ["mkd-raw", str(model)], output=tmp_path / "run")
    cached = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npy")}
    together = measure(root, ["mkd-polar-raw"], output=tmp_path / "run")
    assert together == measure(root, ["mkd-raw", str(model), "mkd-polar-raw"])
    assert read_run(tmp_path / "run")[1].tables == together.tables
    assert {file: file.stat().st_mtime_ns for file in cached} == cached
    # A model that is another one by now is not mixed with what was measured of the first.
    shutil.copy(BUNDLED / "polar.safetensors", model)
    with pytest.raises(ValueError, match=r"descriptors .*mine\.safetensors was another file"):
        measure(root, ["mkd-raw"], output=tmp_path / "run")


def test_files_of_others_in_a_run_folder_are_not_written_over(tmp_path, strips_root):
    run, how = tmp_path / "run", {"split": "full", "tasks": ["matching"]}
    run_hpatches(strips_root, ["mkd-raw"], output=run, **how)
    for name in sorted(file.name for file in run.iterdir() if file.suffix in (".md", ".html")):
        before = (run / name).read_bytes()
        (run / name).write_bytes(b"Dear diary")
        with pytest.raises(FileExistsError, match=f"{name}: is there already, and is another"):
            run_hpatches(strips_root, ["mkd-raw"], output=run, **how)
        assert (run / name).read_bytes() == b"Dear diary"
        (run / name).write_bytes(before)
    (run / "results.json").write_text('{"mine": 1}')
    with pytest.raises(FileExistsError, match=r"results\.json: is there already"):
        run_hpatches(strips_root, ["mkd-raw"], output=run, **how)
    assert (run / "results.json").read_text() == '{"mine": 1}'


@pytest.mark.parametrize("how", ["newer", "older", "same size and time"])
@pytest.mark.parametrize("name", ["castle/patches0001.bmp", "v_boat/e3.png", "v_boat/ref.csv"])
def test_data_that_were_replaced_are_not_taken_for_the_old_ones(
    tmp_path, subsets_root, strips_root, replace_file, name, how
):
    root, descriptors = tmp_path / "data", ["mkd-raw"]
    shutil.copytree(subsets_root if "bmp" in name else strips_root, root)
    if "csv" in name:
        for sequence in HPatches(root):
            for image, patches in sequence.images():
                write_csv(tmp_path / "csv", sequence.folder.name, image, means(patches))
        descriptors.append(f"csv:{tmp_path / 'csv'}")

    def measure():
        if "bmp" in name:
            return run_phototourism(root, descriptors, output=tmp_path / "run")
        return run_hpatches(root, descriptors, tasks=["matching"], output=tmp_path / "run")

    first = measure()
    assert measure() == first
    file = tmp_path / "csv" / name if "csv" in name else root / name
    data = file.read_bytes()
    half = len(data) // 2
    other = data[:half] + data[half:].replace(b"1", b"2")
    assert other != data
    (tmp_path / "other").write_bytes(other)
    replace_file(file, tmp_path / "other", how)
    with pytest.raises(
        ValueError, match=r"run: its inputs have changed \(.*(castle/|v_boat/|csv:)"
    ):
        measure()


def test_results_of_another_version_are_not_mixed(tmp_path, subsets_root, monkeypatch):
    run_phototourism(subsets_root, [means], output=tmp_path / "run")
    monkeypatch.setattr("mkdesc._support.workfolder.__version__", "0.0.9")
    with pytest.raises(ValueError, match=r"other settings \(mkdesc .* instead of 0\.0\.9\)"):
        run_phototourism(subsets_root, [means], output=tmp_path / "run")


def test_without_output_nothing_stays(tmp_path):
    with open_run(None, {}) as folder:
        assert folder.is_dir()
    assert not folder.exists()


def test_hpatches_tables(tmp_path, strips_root):
    results = run_hpatches(strips_root, [means, "mkd-raw"], output=tmp_path / "run")
    assert [table.key for table in results.tables] == [
        "hpatches",
        "hpatches-noise",
        "hpatches-type",
    ]
    main, noise, _ = results.tables
    assert main.columns[:4] == ("D", "verification", "matching", "retrieval")
    row = dict(zip(main.columns, main.rows[0].values, strict=True))
    levels = dict(zip(noise.columns, noise.rows[0].values, strict=True))
    for task in ("verification", "matching", "retrieval"):
        three = [levels[f"{task} {level}"] for level in ("easy", "hard", "tough")]
        assert row[task] == pytest.approx(np.mean(three))
    made = {file.name for file in (tmp_path / "run").iterdir()}
    assert made == {"config.json", "results.json", "table.md", "report.html", "cache"}
    plots = {plot.name for plot in results.plots}
    assert plots == {"noise", "types", "precision-recall", "roc"}
    values = json.loads((tmp_path / "run" / "results.json").read_text())
    assert Table.from_dict(values["tables"][0]) == main
    assert values["details"]["means"]["matching"]["by_noise"]["easy"]["success"] > 0.9


def test_hpatches_split_and_seed(strips_root):
    def few(patches):  # too little to be right always
        return means(patches)[:, :2]

    def lists(**options):
        table = run_hpatches(strips_root, [few], tasks=["verification"], **options).tables[0]
        return table.rows[0].values

    assert lists(seed=1) == lists(seed=1) != lists(seed=2)
    assert lists(split="a") != lists(split="view") != lists()


def test_table_2(strips_root):
    results = run_hpatches(strips_root, split="a", table=2, tasks=["matching", "verification"])
    table = results.tables[0]
    assert [row.name for row in table.rows] == list(PAPER_ROWS)
    assert table.columns[:3] == ("D", "verification", "matching")
    assert table.rows[-1].published[:3] == (None, 88.64, 43.81)
    assert "original HPatches" in table.notes[0]


def test_table_4(strips_root, subsets_root):
    results = run_hpatches(strips_root, split="a", table=4, train_on=subsets_root / "door")
    left, right = (table for table in results.tables if table.corner == "rank")
    assert len(left.rows) == 6 + 2
    assert len(right.rows) == 6 + 1
    for table, ours in ((left, {"PCW, ours", "PCW*, ours"}), (right, {"PCW, ours"})):
        for place in range(3):
            names = [row.values[2 * place] for row in table.rows]
            values = [row.values[2 * place + 1] for row in table.rows]
            assert values == sorted(values, reverse=True)
            assert {name for name in names if not name.endswith("(published)")} == ours


def test_table_4_with_a_model(shared, strips_root):
    model = shared / "golden" / "mkd-concat-64.safetensors"
    results = run_hpatches(
        strips_root, table=4, train_on=f"{model}:liberty:lw", tasks=["matching"]
    )
    assert [row.name for row in results.tables[0].rows] == ["PCW"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"descriptors": ["mkd-raw+lw"]}, "split 'full' has no training sequences for mkd-raw"),
        ({"tasks": ["sorting"]}, "tasks: expected some of verification"),
        ({"table": 3}, "table: expected 2 or 4, got 3"),
        ({"table": 2, "descriptors": ["mkd-raw"]}, "table and descriptors: expected one of them"),
        ({"table": 4}, "table 4: expected something to learn on"),
        ({"split": "z"}, "no split 'z'"),
    ],
)
def test_hpatches_errors(strips_root, arguments, message):
    with pytest.raises(ValueError, match=message):
        run_hpatches(strips_root, **arguments)


def test_compare(tmp_path, subsets_root, strips_root):
    run_phototourism(subsets_root, [means], output=tmp_path / "a")
    run_phototourism(subsets_root, ["mkd-raw"], output=tmp_path / "b")
    both = compare_runs([tmp_path / "a", tmp_path / "b"])
    assert [row.name for row in both.tables[0].rows] == ["a: means", "b: mkd-raw"]
    assert set(both.plots[1].panels["door"]) == {"a: means", "b: mkd-raw"}
    assert both.tables[0].notes == ()
    run_phototourism(subsets_root, ["mkd-raw"], subsets=["door", "fox"], output=tmp_path / "c")
    other = compare_runs([tmp_path / "a", tmp_path / "c"]).tables[0]
    assert other.rows[1].values[other.columns.index("castle")] is None
    assert "differ in: subsets" in other.notes[0]
    run_hpatches(strips_root, [means], tasks=["matching"], output=tmp_path / "d")
    with pytest.raises(ValueError, match="expected one benchmark"):
        compare_runs([tmp_path / "a", tmp_path / "d"])
    with pytest.raises(ValueError, match="expected two or more, got 1"):
        compare_runs([tmp_path / "a"])
    with pytest.raises(ValueError, match=r"results\.json|config\.json: no such file"):
        compare_runs([tmp_path / "a", tmp_path])


def test_real_subsets_give_a_full_table(shared):
    table = run_phototourism(shared / "data" / "phototourism").tables[0]
    assert len(table.rows) == 7
    assert len(table.columns) == 8
    assert column(table, "mkd-raw", "mean") < 1
    assert column(table, "mkd-cartesian-raw+lw", "mean") < column(
        table, "mkd-cartesian-raw", "mean"
    )


def test_a_run_that_was_killed_at_once_begins_again(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config.json.01234567.partial").write_text("{")
    with open_run(tmp_path / "run", {"seed": 1}) as cache:
        assert cache.is_dir()
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"config.json", "cache"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1.5", "[1.5]"),
        ('"values": [1.5]', '"values": [1.5, 2]'),
        ('"panels": {}', '"panels": {"all": {"ours": 3}}'),
        ('"panels": {}', '"panels": [1]'),
        ('"benchmark": "hpatches"', '"benchmark": 7'),
        ('"Scores"', "7"),
    ],
)
def test_results_that_are_none_are_refused(tmp_path, old, new):
    table = Table("demo", "Scores", ("score",), (Row("ours", (1.5,)),))
    results = Results("hpatches", (table,), {}, (Plot("p", "P", "bars", {}),))
    with open_run(tmp_path / "run", {}):
        save_results(tmp_path / "run", dataclasses.replace(results, plots=()))
    text = json.dumps(results.to_dict())
    assert old in text
    file = tmp_path / "run" / "results.json"
    file.write_text(text)
    read_run(tmp_path / "run")
    file.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=r"results\.json: not the results of a run"):
        read_run(tmp_path / "run")
