"""A reconstruction of real photographs, small ones, against the true cameras."""

import dataclasses
import hashlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from mkdesc._support.files import own_folder
from mkdesc._support.progress import no_progress
from mkdesc.belief.judgement import Verdict
from mkdesc.features.image_features import load_features
from mkdesc.features.settings import Settings
from mkdesc.retrieval.pairs import all_pairs
from mkdesc.sfm.grown_pairs import refused_pairs
from mkdesc.sfm.mapping import check_models
from mkdesc.sfm.options import SfmOptions
from mkdesc.sfm.pipeline import (
    _Clock,
    _match,
    _matcher,
    map_database,
    match_images,
    reconstruct,
)
from mkdesc.sfm.report import SfmReport
from mkdesc.sfm.scenes import certain_pairs

pycolmap = pytest.importorskip("pycolmap")
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("colmap_here")]

OPTIONS = SfmOptions(Settings(max_keypoints=1200, sensitive=True))
FEW = Settings(max_keypoints=500, sensitive=True)


@pytest.fixture
def images(shared, tmp_path):
    """Six views of a half of their size."""
    folder = shared / "data" / "multiview" / "fountain-P11" / "images"
    (tmp_path / "images").mkdir()
    for file in sorted(folder.iterdir())[2:8]:
        image = cv2.imread(str(file), 0)
        small = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(tmp_path / "images" / file.name), small)
    return tmp_path / "images"


@pytest.mark.isolated
def test_cameras_are_where_they_were(shared, images, tmp_path):
    (images / "broken.jpg").write_bytes(b"\xff\xd8")
    out = tmp_path / "model"
    steps = []
    report = reconstruct(images, out, options=OPTIONS, progress=lambda *step: steps.append(step))
    assert (report.images, report.registered, report.models) == (6, 6, 1)
    assert report.points > 800
    assert report.reprojection_error < 0.25 < 0.4 < report.error_before
    assert 300 < report.points_of_many < report.points
    assert list(report.bad) == ["broken.jpg"]
    told = {step for step, *_ in steps}
    assert told == {"describing", "matching", "refining", "verifying", "mapping"}
    assert {*report.seconds} == told
    assert min(report.seconds.values()) > 0

    cameras = shared / "data" / "multiview" / "fountain-P11" / "cameras"
    model = pycolmap.Reconstruction(str(out / "sparse" / "0"))
    found, true = {}, {}
    for image in model.images.values():
        found[image.name] = image.cam_from_world().rotation.matrix()
        numbers = (cameras / f"{image.name}.camera").read_text().split()
        true[image.name] = np.array(numbers[12:21], float).reshape(3, 3).T
    errors = [
        np.linalg.norm(cv2.Rodrigues(found[b] @ found[a].T @ true[a] @ true[b].T)[0])
        for a, b in itertools.combinations(found, 2)
    ]
    assert np.rad2deg(np.median(errors)) < 0.5
    assert (out / "sparse" / "0" / "points.ply").read_bytes().startswith(b"ply")
    written = json.loads((out / "report.json").read_text())
    assert written["points"] == report.points
    assert written["made_of"]["pairs"]["count"] == 15
    log = (out / "colmap.log").read_text()
    assert "Geometric verification" in log
    assert "Registering image" in log
    page = (out / "report.html").read_text()
    assert "6 of 6 images registered" in page
    assert page.count("Plotly.newPlot(") >= 5
    assert page.count("Red: cameras") == 2  # colours are explained
    assert page.count('"mode":"markers+text"') == 3  # dots have names beside them
    there = sorted(path.stem for path in images.iterdir() if path.name not in report.bad)
    names = json.dumps(there, separators=(",", ":"))
    assert page.count(f'"text":{names}') == 3

    # What is there is not replaced together with what others put there.
    (out / "sparse" / "notes.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"notes\.txt: not made by mkdesc; move it away"):
        reconstruct(images, out, options=OPTIONS)
    (out / "sparse" / "notes.txt").unlink()

    # A second run has nothing left to do; other settings are refused.
    steps.clear()
    stamp = (out / "sparse" / "0" / "points3D.bin").stat().st_mtime_ns
    assert (
        reconstruct(images, out, options=OPTIONS, progress=lambda *step: steps.append(step))
        == report
    )
    assert {step for step, *_ in steps} <= {"describing"}
    assert (out / "sparse" / "0" / "points3D.bin").stat().st_mtime_ns == stamp
    with pytest.raises(ValueError, match=r"other settings \(belief mapping instead of off\)"):
        reconstruct(images, out, options=SfmOptions(OPTIONS.settings, belief="off"))


def test_a_wall_of_identical_windows_is_not_mapped(tmp_path):
    """Any shift by a window fits, so none is taken; the message says why."""
    rng = np.random.default_rng(0)
    window = cv2.GaussianBlur(rng.normal(128, 300, (96, 96)), (0, 0), 2)
    wall = np.tile(window, (5, 9))
    (tmp_path / "wall").mkdir()
    for number, left in enumerate((0, 205)):
        noisy = wall[:, left : left + 600] + rng.normal(0, 1, (480, 600))
        cv2.imwrite(str(tmp_path / f"wall/{number}.png"), noisy.clip(0, 255).astype(np.uint8))
    said = r"1 pairs were refused, such as 0\.png and 1\.png \(ambiguous, repeated structure"
    with pytest.raises(ValueError, match=said):
        reconstruct(tmp_path / "wall", tmp_path / "model", options=OPTIONS)
    ((*pair, reason),) = refused_pairs(tmp_path / "model" / "database.db")
    assert pair == ["0.png", "1.png"]
    assert "repeated structure" in reason
    # Who knows better may say so.
    off = dataclasses.replace(OPTIONS, belief="off")
    base = match_images(tmp_path / "wall", tmp_path / "off", off).database
    assert refused_pairs(base) == []
    assert tables(base)["matches"][0][1] > 50


def test_names_that_colmap_cannot_take_are_refused_before_the_work(tmp_path):
    (tmp_path / "in").mkdir()
    for name in (b"a.png", b"caf\xe9.png"):
        file = tmp_path / "in" / os.fsdecode(name)
        file.write_bytes(cv2.imencode(".png", np.zeros((50, 50), np.uint8))[1].tobytes())
    with pytest.raises(ValueError, match=r"caf\\udce9\.png.*: expected a name in UTF-8"):
        reconstruct(tmp_path / "in", tmp_path / "out", options=OPTIONS)
    assert not (tmp_path / "out" / "features").exists()


def digest(folder):
    return hashlib.sha256((folder / "sparse/0/points3D.bin").read_bytes()).hexdigest()


def test_the_same_seed_gives_the_same_model_from_the_same_database(images, tmp_path):
    options = SfmOptions(FEW, seed=3)
    matched = match_images(images, tmp_path / "first", options)
    assert matched.images == 6
    assert not (tmp_path / "first" / "sparse").exists()
    first = reconstruct(images, tmp_path / "first", options=options)
    for number in range(3):
        again = tmp_path / f"again{number}"
        report = map_database(matched.database, images, again, options)
        assert report.points == first.points
        assert digest(again) == digest(tmp_path / "first")
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("again0", "again1")]
    assert pages[0] == pages[1]
    # Without verified matches, matches are verified first.
    with closing(sqlite3.connect(matched.database)) as base:
        base.execute("DELETE FROM two_view_geometries")
        base.commit()
    # (A little differently: COLMAP knows now that one camera took them.)
    last = map_database(matched.database, images, tmp_path / "last", options)
    assert (last.registered, last.verified_pairs) == (6, 15)


@pytest.fixture
def foxes(shared, tmp_path):
    """Five photographs; some of their pairs are verified with one seed and not with another."""
    (tmp_path / "foxes").mkdir()
    for number in range(5):
        name = f"fox_0{number}.jpg"
        (tmp_path / "foxes" / name).symlink_to(shared / "data" / "photos" / name)
    return tmp_path / "foxes"


def tables(database):
    """All that the mapping reads."""
    names = ("images", "cameras", "frames", "rigs", "keypoints", "matches", "two_view_geometries")
    with closing(sqlite3.connect(database)) as base:
        return {
            name: base.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in names
        }


def test_what_is_verified_does_not_depend_on_earlier_runs(foxes, tmp_path):
    options = SfmOptions(Settings(max_keypoints=1500, sensitive=True), seed=1)
    other = dataclasses.replace(options, seed=3)
    expected = tables(match_images(foxes, tmp_path / "fresh", options).database)
    again = tables(match_images(foxes, tmp_path / "fresh", options).database)
    assert again == expected

    assert tables(match_images(foxes, tmp_path / "fresh", other).database) != expected
    assert tables(match_images(foxes, tmp_path / "fresh", options).database) == expected

    (foxes / "fox_01.jpg").rename(tmp_path / "fox_01.jpg")
    steps = []
    match_images(foxes, tmp_path / "later", options)
    (tmp_path / "fox_01.jpg").rename(foxes / "fox_01.jpg")
    match_images(foxes, tmp_path / "later", options, progress=lambda *step: steps.append(step))
    assert tables(tmp_path / "later" / "database.db") == expected
    # Six pairs are of the four that were there.
    assert [done for what, done, _ in steps if what == "matching"] == [*range(6, 11)]


def test_refining_moves_keypoints_and_can_be_undone(images, tmp_path):
    refined = SfmOptions(FEW, seed=3)
    plain = dataclasses.replace(refined, refine="none")
    out = tmp_path / "out"
    expected = tables(match_images(images, out, refined).database)
    base = match_images(images, out, plain).database
    for file in images.iterdir():
        found = load_features(out / "features", file.name).keypoints[:, :2]
        np.testing.assert_array_equal(keypoints(base, file.name)[:, :2], found + np.float32(0.5))
    before = tables(base)
    assert tables(match_images(images, out, refined).database) == expected
    assert before["keypoints"] != expected["keypoints"]
    assert before["matches"] == expected["matches"]


def test_few_matches_stay_for_the_mapper_unless_belief_is_strict(images, tmp_path, monkeypatch):
    def judge(pair, geometry, belief):
        return SimpleNamespace(verdict=Verdict("unverified", "few matches agree"))

    pairs = tmp_path / "pairs.txt"
    first, second = sorted(path.name for path in images.iterdir())[:2]
    pairs.write_text(f"{first} {second}\n")
    monkeypatch.setattr("mkdesc.sfm.matching.judge", judge)
    counts = {}
    for belief in ("mapping", "strict"):
        options = SfmOptions(FEW, belief=belief)
        base = match_images(images, tmp_path / belief, options, pairs).database
        counts[belief] = tables(base)["matches"][0][1]
        assert refused_pairs(base) == []
        assert certain_pairs(base) == []  # no scene is made of them
    assert counts["mapping"] > 100
    assert counts["strict"] == 0


def test_a_good_database_of_others_loses_nothing(images, tmp_path):
    """COLMAP's own SIFT."""
    base = tmp_path / "theirs.db"
    extraction = pycolmap.FeatureExtractionOptions()
    extraction.sift.max_num_features = 1500
    pycolmap.extract_features(base, images, extraction_options=extraction)
    pycolmap.match_exhaustive(base)
    report = map_database(base, images, tmp_path / "out", SfmOptions(seed=0))
    assert report.registered == 6
    assert report.refused == []
    assert report.error_before is None
    with pycolmap.Database.open(base) as file:
        assert report.verified_pairs == file.num_verified_image_pairs()


def test_outputs_that_are_gone_or_changed_are_made_again(images, tmp_path):
    options = SfmOptions(FEW, seed=3)
    out, model = tmp_path / "out", tmp_path / "out" / "sparse" / "0"
    report = reconstruct(images, out, options=options)
    kept = tmp_path / "kept"
    shutil.copytree(out, kept)

    def check():
        assert reconstruct(images, out, options=options) == report
        assert digest(out) == digest(kept)
        assert (out / "report.html").read_bytes() == (kept / "report.html").read_bytes()
        assert tables(out / "database.db") == tables(kept / "database.db")

    os.truncate(model / "points3D.bin", 100)
    check()
    (model / "points.ply").unlink()
    (out / "report.html").unlink()
    check()
    shutil.rmtree(model)
    (out / "database.db").unlink()
    check()
    with closing(sqlite3.connect(out / "database.db")) as base, base:
        base.execute("DELETE FROM matches")
    check()


def match_at_random(images, output):
    """A database of matches that mean nothing."""
    base = match_images(images, output, OPTIONS).database
    rows = np.random.default_rng(0).permuted(
        np.tile(np.arange(60, dtype=np.uint32), (2, 1)), axis=1
    )
    with closing(sqlite3.connect(base)) as file, file:
        data = np.ascontiguousarray(rows.T).tobytes()
        file.execute("UPDATE matches SET rows = 60, data = ?", (data,))
    return base


def test_a_database_that_another_process_writes_is_read_as_it_is_now(noise, tmp_path):
    """What SQLite has written beside a database belongs to it, and to no other one."""
    source = tmp_path / "wal.db"
    shutil.copy(match_at_random(noise, tmp_path / "first"), source)
    before = tables(source)
    assert before["matches"]
    with closing(sqlite3.connect(source)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        for table in ("matches", "two_view_geometries"):
            other.execute(f"DELETE FROM {table}")
        other.commit()
        files = {path.name: path.read_bytes() for path in tmp_path.glob("wal.db*")}
        assert files["wal.db-wal"]
        with pytest.raises(ValueError, match=r"wal\.db: no matches in this database"):
            map_database(source, noise, tmp_path / "second", OPTIONS)
        del files["wal.db-shm"]  # which has the locks of readers
        assert files == {name: (tmp_path / name).read_bytes() for name in files}

    # A killed run has left such a file in the output.
    out = tmp_path / "out"
    out.mkdir()
    (out / "colmap.log").write_text("Log file created at: then\n")
    for ending in ("", "-wal"):
        (out / f"database.db{ending}").write_bytes(files[f"wal.db{ending}"])
    with pytest.raises(ValueError, match="no two of 2 images agree"):
        map_database(tmp_path / "first" / "database.db", noise, out, OPTIONS)
    assert tables(out / "database.db")["matches"] == before["matches"]


def test_reading_a_database_leaves_nothing_beside_it(noise, tmp_path):
    source = match_at_random(noise, tmp_path / "first")
    there = {path.name for path in source.parent.iterdir()}
    with pytest.raises(ValueError, match="no two of 2 images agree"):
        map_database(source, noise, tmp_path / "out", OPTIONS)
    assert {path.name for path in source.parent.iterdir()} == there


def test_databases_that_cannot_be_mapped(images, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.db: does not exist"):
        map_database(tmp_path / "gone.db", images, tmp_path / "out")
    with pycolmap.Database.open(tmp_path / "empty.db"):
        pass
    with pytest.raises(ValueError, match=r"empty\.db: no matches in this database"):
        map_database(tmp_path / "empty.db", images, tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"images: expected a file"):
        map_database(images, images, tmp_path / "out")
    (tmp_path / "text.db").write_text("no database " * 1000)
    with pytest.raises(ValueError, match=r"text\.db: not a COLMAP database"):
        map_database(tmp_path / "text.db", images, tmp_path / "out")


KILLED = """
import os, signal, sys
from mkdesc.features.settings import Settings
from mkdesc.sfm.options import SfmOptions
from mkdesc.sfm.pipeline import match_images
def tell(what, done, total):
    if what == "matching" and done == 7:
        os.kill(os.getpid(), signal.SIGKILL)
options = SfmOptions(Settings(max_keypoints=300, sensitive=True))
match_images(sys.argv[1], sys.argv[2], options, progress=tell)
"""


def test_matching_goes_on_after_a_kill(images, tmp_path):
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, images, out])
    assert done.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(out / "database.db")) as base:
        base.execute("UPDATE matches SET rows = 0, data = NULL")  # to see that they stay
        base.execute("UPDATE mkdesc_grown SET shifts = NULL")
        base.commit()
        kept = {pair for (pair,) in base.execute("SELECT pair_id FROM matches")}
    assert len(kept) == 7
    steps = []
    options = SfmOptions(Settings(max_keypoints=300, sensitive=True))
    match_images(images, out, options, progress=lambda *step: steps.append(step))
    assert [done for what, done, _ in steps if what == "matching"] == [*range(7, 16)]
    with closing(sqlite3.connect(out / "database.db")) as base:
        rows = dict(base.execute("SELECT pair_id, rows FROM matches"))
    assert len(rows) == 15
    assert {pair for pair, count in rows.items() if not count} == kept
    whole = match_images(images, tmp_path / "whole", options)
    with closing(sqlite3.connect(whole.database)) as base:
        expected = dict(base.execute("SELECT pair_id, rows FROM matches"))
    assert {pair: rows[pair] for pair in rows if pair not in kept} == {
        pair: expected[pair] for pair in rows if pair not in kept
    }


KILLED_MAPPING = """
import os, signal, sys
from mkdesc.features.settings import Settings
from mkdesc.sfm import mapping
from mkdesc.sfm.options import SfmOptions
from mkdesc.sfm.pipeline import reconstruct
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def tell(what, done, total):
    if what == "mapping" and sys.argv[3] == "mapping":
        kill()
if sys.argv[3] == "writing":
    mapping._write_model = kill
reconstruct(sys.argv[1], sys.argv[2], progress=tell,
            options=SfmOptions(Settings(max_keypoints=600, sensitive=True)))
"""


@pytest.mark.parametrize("moment", ["mapping", "writing"])
def test_a_kill_leaves_nothing_behind(images, tmp_path, moment):
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED_MAPPING, images, out, moment])
    assert done.returncode == -signal.SIGKILL
    assert not (out / "sparse").exists()
    options = SfmOptions(Settings(max_keypoints=600, sensitive=True))
    assert reconstruct(images, out, options=options).registered == 6
    assert {path.name for path in out.iterdir()} == {
        *("colmap.log", "database.db", "features"),
        *("report.html", "report.json", "sparse"),
    }


def test_each_place_of_a_mix_is_as_it_is_alone(shared, images, tmp_path):
    """Two scenes and two single photographs, in one folder and in folders of their own."""
    options = SfmOptions(FEW, seed=0)
    (tmp_path / "mix").mkdir()
    (tmp_path / "toy").mkdir()
    for file in (shared / "data" / "photos").glob("et_*.jpg"):
        (tmp_path / "toy" / file.name).symlink_to(file)
    singles = [shared / "data" / "photos" / f"sk_{name}.jpg" for name in ("coffee", "chelsea")]
    for file in [*images.iterdir(), *(tmp_path / "toy").iterdir(), *singles]:
        (tmp_path / "mix" / file.name).symlink_to(file)
    alone = {}
    for folder in (images, tmp_path / "toy"):
        reconstruct(folder, tmp_path / "alone" / folder.name, options=options)
        model = pycolmap.Reconstruction(str(tmp_path / "alone" / folder.name / "sparse/0"))
        alone[frozenset(image.name for image in model.images.values())] = model.num_points3D()
        assert model.num_cameras() == 1
    assert all(len(names) >= 4 for names in alone)
    report = reconstruct(tmp_path / "mix", tmp_path / "out", options=options)
    assert report.sizes == sorted(map(len, alone), reverse=True)
    together = {}
    for number in range(2):
        model = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / str(number)))
        together[frozenset(image.name for image in model.images.values())] = model.num_points3D()
        assert model.num_cameras() == 1
    assert together == alone


def test_pairs_are_chosen(images, tmp_path, monkeypatch):
    monkeypatch.setattr("mkdesc.sfm.preparing.FEW", 4)
    monkeypatch.setattr("mkdesc.retrieval.similar.neighbours_for", lambda images: 1)
    options = SfmOptions(Settings(max_keypoints=300, sensitive=True))
    counts = {}
    for way in ("auto", "retrieved", "exhaustive", "sequential"):
        found = match_images(images, tmp_path / way, options, way)
        counts[way] = found.made_of["pairs"]
    assert counts["auto"] == counts["retrieved"]
    assert 5 <= counts["auto"]["count"] < counts["exhaustive"]["count"] == 15
    assert counts["sequential"] == counts["exhaustive"]  # the ten that follow are all


@pytest.fixture
def noise(tmp_path, rng):
    (tmp_path / "in").mkdir()
    for name in "ab":
        noise = cv2.GaussianBlur(rng.integers(0, 256, (90, 120), np.uint8), (0, 0), 1.5)
        cv2.imwrite(str(tmp_path / "in" / f"{name}.png"), cv2.normalize(noise, None, 0, 255, 32))
    return tmp_path / "in"


def keypoints(database, name):
    with pycolmap.Database.open(database) as base:
        return np.array(base.read_keypoints(base.read_image_with_name(name).image_id))


@pytest.mark.parametrize("how", ["newer", "older", "same size and time"])
def test_photographs_that_were_replaced_are_matched_again(noise, tmp_path, replace_file, how):
    for file in (*noise.iterdir(), noise / "c.png"):  # all of one size
        source = file if file.exists() else noise / "b.png"
        cv2.imwrite(str(file.with_suffix(".bmp")), cv2.imread(str(source), 0)[:, ::-1])
    for file in noise.glob("*.png"):
        file.unlink()
    shutil.move(noise / "c.bmp", tmp_path / "c.bmp")
    matched = match_images(noise, tmp_path / "out", OPTIONS)
    first = keypoints(matched.database, "a.bmp")
    replace_file(noise / "a.bmp", tmp_path / "c.bmp", how)
    again = match_images(noise, tmp_path / "out", OPTIONS)
    assert again.made_of != matched.made_of
    now = keypoints(again.database, "a.bmp")
    assert not np.array_equal(now, first)
    np.testing.assert_allclose(now, keypoints(again.database, "b.bmp"), atol=1e-4)
    with closing(sqlite3.connect(again.database)) as base:
        (count,) = base.execute("SELECT rows FROM matches").fetchone()
    assert count == len(now)  # of the same photograph, not of the one that was there


def test_photographs_that_are_gone_are_not_mapped(noise, tmp_path):
    cv2.imwrite(str(noise / "c.png"), cv2.imread(str(noise / "a.png"), 0)[::-1])
    match_images(noise, tmp_path / "out", OPTIONS)
    (noise / "c.png").unlink()
    matched = match_images(noise, tmp_path / "out", OPTIONS)
    with pycolmap.Database.open(matched.database) as base:
        assert {image.name for image in base.read_all_images()} == {"a.png", "b.png"}


def test_only_the_pairs_that_are_asked_for_stay_matched(noise, tmp_path):
    cv2.imwrite(str(noise / "c.png"), cv2.imread(str(noise / "a.png"), 0)[::-1])
    pairs = tmp_path / "pairs.txt"

    def matched(out, text):
        pairs.write_text(text)
        base = match_images(noise, tmp_path / out, OPTIONS, pairs).database
        with closing(sqlite3.connect(base)) as file:
            return [
                {pair for (pair,) in file.execute(f"SELECT pair_id FROM {table}")}
                for table in ("matches", "two_view_geometries")
            ]

    first = matched("out", "a.png b.png\na.png c.png\n")
    again = matched("out", "b.png c.png\nb.png a.png\n")
    assert again == matched("fresh", "b.png c.png\nb.png a.png\n") != first


def test_matches_of_another_version_are_not_mixed(noise, tmp_path, monkeypatch):
    match_images(noise, tmp_path / "out", OPTIONS)
    monkeypatch.setattr("mkdesc.features.settings.__version__", "0.0.9")
    with pytest.raises(ValueError, match=r"other settings \(mkdesc .* instead of 0\.0\.9\)"):
        match_images(noise, tmp_path / "out", OPTIONS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"belief": "blind"}, "belief: expected one of strict"),
        ({"refine": "all"}, "refine: expected one of none"),
        ({"cameras": "many"}, "cameras: expected one of auto"),
        ({"camera_model": "EYE"}, "camera_model: expected one of (?!.*INVALID)"),
        ({"seed": -1}, "seed: expected an integer >= 0"),
        ({"seed": 2**31}, "seed: expected an integer >= 0"),
        ({"camera_model": "INVALID"}, "camera_model: expected one of"),
    ],
)
def test_what_is_wrong_is_said_before_the_work(noise, tmp_path, wrong, message):
    with pytest.raises(ValueError, match=message):
        reconstruct(noise, tmp_path / "out", options=SfmOptions(OPTIONS.settings, **wrong))
    assert not (tmp_path / "out").exists()


def test_two_at_once_are_refused(noise, tmp_path):
    with (
        own_folder(tmp_path / "out"),
        pytest.raises(ValueError, match="out: another process is writing here"),
    ):
        match_images(noise, tmp_path / "out", OPTIONS)


@pytest.mark.isolated
@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
@pytest.mark.parametrize("table", ["matches", "two_view_geometries"])
def test_no_room_on_the_disk(images, tmp_path, table):
    """COLMAP raises an error where it writes matches, and ends its process where it verifies."""
    import resource

    out = tmp_path / "out"
    matched = match_images(images, out, SfmOptions(FEW))
    base, wanted = (
        matched.database,
        list(all_pairs(sorted(file.name for file in images.iterdir()))),
    )
    matcher = _matcher(images, out, SfmOptions(FEW), 10**8)
    with closing(sqlite3.connect(base)) as file:
        file.execute("PRAGMA journal_mode=DELETE")
        file.execute("DELETE FROM two_view_geometries")
        file.execute(f"DELETE FROM {table}")
        file.commit()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"database\.db: cannot be written, is there room"):
            _match(matched, matcher, wanted, SfmOptions(FEW), no_progress, None, _Clock())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    match_images(images, out, SfmOptions(FEW))
    with closing(sqlite3.connect(base)) as file:
        assert file.execute("SELECT COUNT(*) FROM two_view_geometries").fetchone() == (15,)


def test_pairs_are_read_before_the_work(noise, tmp_path):
    with pytest.raises(
        ValueError, match=r"pairs: expected auto, .* or a text file, got 'retreived'"
    ):
        reconstruct(noise, tmp_path / "out", options=OPTIONS, pairs="retreived")
    (tmp_path / "pairs.txt").write_text("a.png gone.png")
    with pytest.raises(ValueError, match=r"line 1: no image 'gone\.png'"):
        reconstruct(noise, tmp_path / "out", options=OPTIONS, pairs=tmp_path / "pairs.txt")
    assert not (tmp_path / "out").exists()
    (noise / "broken.png").write_bytes(b"nothing")
    (tmp_path / "pairs.txt").write_text("a.png broken.png")
    with pytest.raises(ValueError, match=r"pairs\.txt: no pairs of usable images"):
        reconstruct(noise, tmp_path / "out", options=OPTIONS, pairs=tmp_path / "pairs.txt")


def test_models_of_someone_else_are_left_alone(noise, tmp_path):
    model = tmp_path / "out" / "sparse" / "0" / "points3D.bin"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"years of work")
    with pytest.raises(ValueError, match="sparse/0: not made by mkdesc; move it away or choose"):
        reconstruct(noise, tmp_path / "out", options=OPTIONS)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["sparse"]
    assert model.read_bytes() == b"years of work"


@pytest.mark.parametrize("name", ["notes.txt", "0/cameras.txt", "kept/points3D.bin"])
def test_what_others_put_among_the_models_is_not_replaced(tmp_path, name):
    for own in ("cameras.bin", "points3D.bin", "points.ply"):
        (tmp_path / "sparse/0").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sparse/0" / own).touch()
    (tmp_path / "report.json").write_text('{"mkdesc": "0.1.0", "models": 1}')
    check_models(tmp_path)
    file = tmp_path / "sparse" / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    with pytest.raises(ValueError, match=r"sparse/.*: not made by mkdesc; move it away"):
        check_models(tmp_path)


@pytest.mark.parametrize("extra", ["7", "1", "00"])
def test_models_that_no_report_counts_are_refused_before_the_work(noise, tmp_path, extra):
    out = tmp_path / "out"
    for number in ("0", extra):
        (out / "sparse" / number).mkdir(parents=True)
        (out / "sparse" / number / "points3D.bin").write_bytes(b"years of work")
    (out / "report.json").write_text('{"mkdesc": "0.1.0", "models": 1}')
    with pytest.raises(ValueError, match=rf"sparse/{extra}: not made by mkdesc; move it away"):
        reconstruct(noise, out, options=OPTIONS)
    assert {path.name for path in out.iterdir()} == {"sparse", "report.json"}


def test_an_empty_folder_that_was_there_stays(tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("out", "new"):
        with pytest.raises(FileNotFoundError, match="nothere"):
            reconstruct(tmp_path / "nothere", tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"someone": "else"}'])
def test_damaged_reports_are_named(noise, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.json").write_text(text)
    with pytest.raises(ValueError, match=r"report\.json: damaged, or not a report"):
        reconstruct(noise, tmp_path / "out", options=OPTIONS)
    assert (tmp_path / "out" / "report.json").read_text() == text


def test_a_report_of_another_version_or_with_gaps_is_made_again():
    whole = SfmReport(2, 2, 9, 18, 2.0, 3, 3.0, 0.5, 0.7, 1, 1, 1, 20, 18).to_dict({})
    assert SfmReport.from_dict(whole, {}) is not None
    assert SfmReport.from_dict({**whole, "mkdesc": "0.0.9"}, {}) is None
    assert SfmReport.from_dict(whole, {"pairs": 3}) is None
    whole.pop("points")
    assert SfmReport.from_dict(whole, {}) is None


@pytest.mark.isolated
def test_scenes_that_have_nothing_in_common(noise, tmp_path, capfd):
    (noise / "broken.png").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"no two of 2 images have a match: ") as caught:
        reconstruct(noise, tmp_path / "out", options=OPTIONS)
    assert "the photographs may overlap too little" in str(caught.value)
    assert "broken.png" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Geometric verification" in (tmp_path / "out" / "colmap.log").read_text()
    assert capfd.readouterr().err == ""
    assert not (tmp_path / "out" / "sparse").exists()
    assert not list((tmp_path / "out").glob(".*"))
    (noise / "broken.png").unlink()
    (noise / "b.png").unlink()
    with pytest.raises(ValueError, match="expected two images or more, got 1"):
        reconstruct(noise, tmp_path / "other", options=OPTIONS)


def test_inputs_in_the_folder_of_models_are_refused(images, tmp_path):
    inside = tmp_path / "out" / "sparse" / "photographs"
    shutil.copytree(images, inside)
    with pytest.raises(ValueError, match=r"is an input in .*sparse, which is replaced"):
        match_images(inside, tmp_path / "out")
    with pytest.raises(ValueError, match="sparse/photographs: not made by mkdesc"):
        reconstruct(inside, tmp_path / "out")
    pairs = tmp_path / "out" / "sparse" / "pairs.txt"
    first, second = sorted(path.name for path in images.iterdir())[:2]
    pairs.write_text(f"{first} {second}\n")
    with pytest.raises(ValueError, match=r"is an input in .*sparse, which is replaced"):
        match_images(images, tmp_path / "out", pairs=pairs)
    assert pairs.exists()
    assert len(list(inside.iterdir())) == len(list(images.iterdir()))


def test_a_database_of_others_is_neither_replaced_nor_removed(images, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "database.db").write_bytes(b"somebody's")
    (tmp_path / "text.db").write_text("no database")
    with pytest.raises(ValueError, match=r"database\.db: not made by mkdesc"):
        map_database(tmp_path / "text.db", images, out)
    with pytest.raises(ValueError, match="not a COLMAP database"):
        map_database(tmp_path / "text.db", images, tmp_path / "another")
    assert (out / "database.db").read_bytes() == b"somebody's"


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_files_with_names_of_journals_stay(noise, tmp_path, ending):
    output = tmp_path / "output"
    output.mkdir()
    diary = output / f"database.db{ending}"
    diary.write_text("diary")
    with pytest.raises(ValueError, match=rf"database\.db{ending}: not made by mkdesc"):
        reconstruct(noise, output)
    pairs = "\n".join(f"{a.name} {b.name}" for a, b in itertools.pairwise(sorted(noise.iterdir())))
    diary.write_text(pairs)
    with pytest.raises(ValueError, match=rf"database\.db{ending}: is an input"):
        reconstruct(noise, output, pairs=diary)
    assert diary.read_text() == pairs


def test_a_log_of_colmap_does_not_make_a_database_ours(noise, tmp_path):
    match_images(noise, tmp_path / "made")
    output = tmp_path / "output"
    output.mkdir()
    (output / "colmap.log").write_text("Log file created at: 2026\n")
    (output / "database.db").write_text("diary")
    with pytest.raises(ValueError, match=r"database\.db: not made by mkdesc"):
        map_database(tmp_path / "made" / "database.db", noise, output)
    assert (output / "database.db").read_text() == "diary"


def test_matches_of_a_database_of_others_are_not_taken_for_ours(images, tmp_path):
    """Somebody has changed the matches in it."""
    match_images(images, tmp_path / "made")
    base = tmp_path / "made" / "database.db"
    with closing(sqlite3.connect(base)) as file, file:
        file.execute("DELETE FROM matches WHERE pair_id IN (SELECT pair_id FROM matches LIMIT 1)")
    map_database(base, images, tmp_path / "output")
    with pytest.raises(ValueError, match=r"database\.db: not a COLMAP database written by mkdesc"):
        reconstruct(images, tmp_path / "output")
