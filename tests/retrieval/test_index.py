"""Indexes: what is found, and that they stay right whatever happens to the photographs."""

import json
import os
import shutil
from contextlib import suppress
from itertools import chain

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features.settings import Settings
from mkdesc.matching.judging import Verdict
from mkdesc.retrieval.agreement import Agreement
from mkdesc.retrieval.groups import find_groups, verified_pairs
from mkdesc.retrieval.manifest import Manifest
from mkdesc.retrieval.signature import make_signature

FEW = Settings(max_keypoints=300, output="uint8")


def groups(index, k=3):
    """What is found for each image: the scenes of the first ``k``."""
    return {
        name: [one.name[0] for one in index.find_features(index.features(name), k)]
        for name in index.names
    }


def test_views_of_a_scene_are_found(index, scenes):
    assert len(index) == 9
    assert groups(index) == {name: [name[0]] * 3 for name in index.names}
    found = index.find(cv2.imread(str(scenes / "1/2.png")), k=4)
    assert found[0].name == "1/2.png"
    assert found[0].similarity == pytest.approx(1)
    assert [one.inliers for one in found] == [0] * 4
    own = index.image_path("1/2.png")
    for same in (own, own.parent / "../1/2.png"):
        assert index.find(same, k=3) == found[1:]  # a file of the index does not find itself
    assert [one.inliers for one in found] == [0] * 4
    assert [one.similarity for one in found] == sorted((o.similarity for o in found), reverse=True)
    with pytest.raises(ValueError, match="k: expected an integer >= 1, got 0"):
        index.find(scenes / "1/2.png", k=0)


def test_what_agrees_comes_first(index, scenes):
    query = cv2.imread(str(scenes / "2/1.png"))
    found = index.find(query, k=9, verify=9)
    assert [one.name[0] for one in found[:3]] == ["2"] * 3
    assert all(one.inliers > 50 for one in found[:3])
    assert all(one.inliers < 30 for one in found[3:])
    # A turn of 65 degrees about the middle, and a zoom: matched places obey it.
    other = next(one for one in found if one.name == "2/2.png")
    turns = [
        np.vstack([cv2.getRotationMatrix2D((120, 100), *how), [0, 0, 1]])
        for how in [(25, 1.1), (-40, 0.9)]
    ]
    motion = turns[1] @ np.linalg.inv(turns[0])
    there = other.agreement.here @ motion[:2, :2].T + motion[:2, 2]
    assert np.median(np.linalg.norm(there - other.agreement.there, axis=1)) < 1.5


def test_a_part_of_the_query(index, view, tmp_path):
    both = np.hstack([view(0)[:, :120], view(2)[:, 120:]])
    cv2.imwrite(str(tmp_path / "both.png"), both)
    for box, scene in [((0, 0, 120, 200), "0"), ((120, 0, 240, 200), "2")]:
        found = index.find(tmp_path / "both.png", 3, box=box)
        assert {one.name[0] for one in found} == {scene}
    with pytest.raises(ValueError, match=r"box: expected left < right <= 240 .* got 0, 0, 999, 1"):
        index.find(tmp_path / "both.png", box=(0, 0, 999, 1))


def test_updates_leave_what_a_new_index_has(scenes, view, tmp_path, monkeypatch):
    monkeypatch.setattr("mkdesc.retrieval.segments.SEGMENT", 4)
    monkeypatch.setattr("mkdesc.retrieval.updating.SEGMENT", 4)
    target = tmp_path / "index"
    mkdesc.build_index(scenes, target, FEW)
    assert mkdesc.build_index(scenes, target) == ([], [], [], sorted(_names(scenes)), {})
    (scenes / "0/1.png").unlink()
    shutil.copy(scenes / "2/0.png", scenes / "1/0.png")
    cv2.imwrite(str(scenes / "2/9.png"), view(2, 10))
    (scenes / "broken.png").write_bytes(b"nothing")
    news = mkdesc.build_index(scenes, target)
    assert (news.added, news.changed, news.gone) == (["2/9.png"], ["1/0.png"], ["0/1.png"])
    assert list(news.bad) == ["broken.png"]
    index = mkdesc.Index(target)
    assert sorted(index.names) == sorted(_names(scenes) - {"broken.png"})
    assert [one.name for one in index.find(scenes / "2/0.png", 1)] == ["1/0.png"]
    # Signatures are those of the features that are there, by the words that are there.
    for segment in index.signatures.segments:
        for name, _, stored in segment.entries():
            made = make_signature(index.features(name).descriptors, index.signatures.words)
            np.testing.assert_array_equal(stored.codes, made.codes)
    listed = json.loads((target / "index.json").read_text())
    assert {file.name for file in target.iterdir()} == {
        "index.json",
        "features",
        listed["words"],
        *listed["segments"],
    }


def _names(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*.png")}


@pytest.mark.parametrize("step", ["describing", "indexing"])
def test_interrupted_work_goes_on(scenes, tmp_path, monkeypatch, step):
    monkeypatch.setattr("mkdesc.retrieval.segments.SEGMENT", 2)

    def stop(what, done, total):
        if (what, done) == (step, 5):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mkdesc.build_index(scenes, tmp_path / "index", FEW, stop)
    described = {file: file.stat().st_mtime_ns for file in tmp_path.glob("index/features/*/*")}
    assert len(described) >= 5
    if step == "indexing":  # what is there is whole
        assert len(mkdesc.Index(tmp_path / "index")) == 4
    mkdesc.build_index(scenes, tmp_path / "index", FEW)
    assert {file: file.stat().st_mtime_ns for file in described} == described
    index = mkdesc.Index(tmp_path / "index")
    assert groups(index) == {name: [name[0]] * 3 for name in sorted(_names(scenes))}


def test_an_index_that_is_being_updated_is_searched(scenes, view, tmp_path):
    """It has the old answer until the new one is there: never an error, or half of one."""
    target = tmp_path / "index"
    mkdesc.build_index(scenes, target, FEW)
    old = set(mkdesc.Index(target).names)
    opened = mkdesc.Index(target)
    (scenes / "0/1.png").unlink()
    shutil.copy(scenes / "2/0.png", scenes / "1/0.png")
    cv2.imwrite(str(scenes / "2/9.png"), view(2, 10))
    seen = []

    def search(*news):
        for index in (opened, mkdesc.Index(target)):
            found = index.find(view(0), 3, verify=9)
            assert {one.name[0] for one in found if one.inliers > 30} == {"0"}
            assert set(index.names) == old
        seen.append(sorted(chain(*find_groups(index))))

    mkdesc.build_index(scenes, target, FEW, search)
    assert len(seen) > 5
    assert all(names == sorted(old) for names in seen)
    assert set(mkdesc.Index(target).names) == old - {"0/1.png"} | {"2/9.png"}
    assert not (target / "features" / "0" / "1.png.npz").exists()
    with pytest.raises(FileNotFoundError, match=r"features of 0/1\.png; .* being updated, try"):
        opened.find(view(0), 3, verify=9)


def test_an_index_that_is_updated_while_it_is_opened(scenes, view, tmp_path, monkeypatch):
    target = tmp_path / "index"
    mkdesc.build_index(scenes, target, FEW)
    read = Manifest.load_words

    def late(manifest, folder):
        monkeypatch.undo()
        cv2.imwrite(str(scenes / "2/9.png"), view(2, 10))
        mkdesc.build_index(scenes, target)
        return read(manifest, folder)

    monkeypatch.setattr(Manifest, "load_words", late)
    assert "2/9.png" in mkdesc.Index(target).names


def test_two_at_once_are_refused(scenes, tmp_path):
    def again(what, done, total):
        mkdesc.build_index(scenes, tmp_path / "index", FEW)

    with pytest.raises(ValueError, match="index: another process is writing here"):
        mkdesc.build_index(scenes, tmp_path / "index", FEW, again)
    mkdesc.build_index(scenes, tmp_path / "index", FEW)
    assert len(mkdesc.Index(tmp_path / "index")) == 9


def test_what_others_put_into_an_index_stays(scenes, tmp_path):
    index = tmp_path / "index"
    mkdesc.build_index(scenes, index, FEW)
    before = {path.relative_to(index) for path in index.rglob("*")}
    (index / "segment-000042").mkdir()
    (index / "segment-000042" / "photo.bmp").write_bytes(b"the only copy")
    (index / "segment-000043").write_text("a file")
    mkdesc.build_index(scenes, index, FEW)
    assert (index / "segment-000042" / "photo.bmp").read_bytes() == b"the only copy"
    assert (index / "segment-000043").read_text() == "a file"
    assert before < {path.relative_to(index) for path in index.rglob("*")}


def test_an_index_that_was_killed_before_it_was_one(scenes, tmp_path):
    index = tmp_path / "index"
    (index / ".segment-000001.01234567.partial").mkdir(parents=True)
    for name in ("words-000000.npy", ".index.json.01234567.partial"):
        (index / name).write_text("half")
    mkdesc.build_index(scenes, index, FEW)
    mkdesc.build_index(scenes, tmp_path / "other", FEW)
    listed = [
        {path.relative_to(folder) for path in folder.rglob("*")}
        for folder in (index, tmp_path / "other")
    ]
    assert listed[0] == listed[1]


@pytest.mark.parametrize("how", ["newer", "older", "same size and time"])
@pytest.mark.parametrize("when", ["while work is interrupted", "afterwards"])
def test_photographs_that_were_replaced(scenes, tmp_path, replace_file, when, how):
    for file in scenes.rglob("*.png"):  # all of one size
        cv2.imwrite(str(file.with_suffix(".bmp")), cv2.imread(str(file), 0))
        file.unlink()

    def stop(what, done, total):
        if done == 9 and when.startswith("while"):
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        mkdesc.build_index(scenes, tmp_path / "index", FEW, stop)
    replace_file(scenes / "0/0.bmp", scenes / "2/0.bmp", how)
    found = mkdesc.build_index(scenes, tmp_path / "index", FEW)
    assert found.changed == ([] if when.startswith("while") else ["0/0.bmp"])
    index = mkdesc.Index(tmp_path / "index")
    assert [one.name for one in index.find(scenes / "2/0.bmp", 1)] == ["0/0.bmp"]
    here, there = (index.features(name).descriptors for name in ("0/0.bmp", "2/0.bmp"))
    np.testing.assert_array_equal(here, there)


def test_photographs_that_were_touched_are_kept_and_read_once(scenes, tmp_path, monkeypatch):
    mkdesc.build_index(scenes, tmp_path / "index", FEW)
    for file in scenes.rglob("*.png"):
        os.utime(file, ns=(0, 0))
    monkeypatch.setattr("mkdesc.features.folder.read_gray", None)  # nothing is described
    assert mkdesc.build_index(scenes, tmp_path / "index").kept == sorted(_names(scenes))
    monkeypatch.setattr("mkdesc._support.workfolder._content", None)
    assert mkdesc.build_index(scenes, tmp_path / "index").kept == sorted(_names(scenes))
    assert len(mkdesc.Index(tmp_path / "index")) == 9


def test_an_index_of_another_version_is_searched_but_not_added_to(scenes, index, monkeypatch):
    for module in ("features.settings", "_support.workfolder"):
        monkeypatch.setattr(f"mkdesc.{module}.__version__", "9.9.9")
    with pytest.raises(ValueError, match=r"other settings \(mkdesc .* instead of 9\.9\.9\)"):
        mkdesc.build_index(scenes, index.path)
    assert mkdesc.Index(index.path).find(scenes / "1/2.png", k=1)[0].name[0] == "1"


def test_full_segments_are_not_written_again(scenes, view, tmp_path, monkeypatch):
    for module in ("segments", "updating"):
        monkeypatch.setattr(f"mkdesc.retrieval.{module}.SEGMENT", 4)
    target = tmp_path / "index"
    mkdesc.build_index(scenes, target, FEW)
    before = json.loads((target / "index.json").read_text())["segments"]
    assert len(before) == 3  # of 4, 4 and 1 images
    cv2.imwrite(str(scenes / "2/9.png"), view(2, 10))
    mkdesc.build_index(scenes, target)
    after = json.loads((target / "index.json").read_text())["segments"]
    assert after[:2] == before[:2]
    assert len(after) == 3
    assert before[2] not in after


def test_words_are_learned_again_when_there_are_many_more(scenes, tmp_path):
    (tmp_path / "few").mkdir()
    shutil.copy(scenes / "0/0.png", tmp_path / "few/a.png")
    mkdesc.build_index(tmp_path / "few", tmp_path / "index", FEW)
    few = len(mkdesc.Index(tmp_path / "index").signatures.words)
    mkdesc.build_index([tmp_path / "few", scenes], tmp_path / "index")
    index = mkdesc.Index(tmp_path / "index")
    assert len(index.signatures.words) > 5 * few
    assert len(index) == 10
    assert len(list((tmp_path / "index").glob("words-*"))) == 1


def test_what_is_no_index_is_refused(scenes, tmp_path):
    with pytest.raises(
        FileNotFoundError, match="not an index; expected a folder that mkdesc index made"
    ):
        mkdesc.Index(tmp_path)
    (tmp_path / "index").mkdir()
    (tmp_path / "index/thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="index: expected an index, or a new or empty folder"):
        mkdesc.build_index(scenes, tmp_path / "index")
    (tmp_path / "index/index.json").write_text("{}")
    with pytest.raises(ValueError, match=r"index\.json: damaged, or not an index"):
        mkdesc.Index(tmp_path / "index")


def _cut(file):
    file.write_bytes(file.read_bytes()[:150])


def _rows_of_others(file):
    np.save(file, np.load(file) + np.uint16(9))


def _all_the_same(file):
    np.save(file, np.zeros_like(np.load(file)))


def _another_name(name):
    """A list of images with a name that the folder of an image cannot give it."""

    def write(file):
        (_, source), *others = json.loads(file.read_text())
        file.write_text(json.dumps([[name, source], *others]))

    return write


def _unclosed(file):
    """A header that numpy cannot parse, which is neither a ValueError nor an EOFError."""
    file.write_bytes(file.read_bytes().replace(b"}", b" ", 1))


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("codes.npy", _unclosed),
        ("images.json", lambda file: file.write_text("[" * 100_000)),
        ("images.json", lambda file: file.write_text('[["a.png", 1, 2]]')),
        ("images.json", _another_name(f"{'x' * 5000}.png")),
        ("images.json", _another_name("../../precious")),
        ("images.json", _another_name("a\nb.png")),
        ("images.json", _another_name("/precious")),
        *((name, _cut) for name in ("images.json", "starts.npy", "rows.npy", "codes.npy")),
        *((name, lambda file: file.unlink()) for name in ("images.json", "codes.npy")),
        ("rows.npy", _rows_of_others),
        ("starts.npy", _all_the_same),
    ],
)
def test_damage_is_named_and_mended(index, scenes, name, harm):
    (segment,) = index.signatures.segments
    before = groups(index)
    described = {file: file.stat().st_mtime_ns for file in index.path.glob("features/*/*")}
    harm(segment.folder / name)
    with pytest.raises(
        ValueError, match=r"segment-\d+/\w+\.\w+: missing or damaged; run mkdesc index"
    ):
        mkdesc.Index(index.path)
    mkdesc.build_index(scenes, index.path)
    assert groups(mkdesc.Index(index.path)) == before
    assert {file: file.stat().st_mtime_ns for file in described} == described


def _not_numbers(file):
    np.save(file, np.full_like(np.load(file), np.nan))


def _one_too_large(file):
    """As a flipped bit of an exponent makes it: a number, but not of a mean of unit vectors."""
    words = np.load(file)
    words[0, 0] = 3e38
    np.save(file, words)


@pytest.mark.parametrize("harm", [_cut, _unclosed, _not_numbers, _one_too_large])
def test_lost_words_and_features_are_made_again(index, scenes, harm):
    before = groups(index)
    (words,) = index.path.glob("words-*")
    harm(words)
    with pytest.raises(ValueError, match=r"words-\d+\.npy: missing or damaged; run mkdesc index"):
        mkdesc.Index(index.path)
    mkdesc.build_index(scenes, index.path)
    assert groups(mkdesc.Index(index.path)) == before
    (index.path / "features/1/2.png.npz").unlink()
    assert mkdesc.build_index(scenes, index.path).changed == ["1/2.png"]
    assert groups(mkdesc.Index(index.path)) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settings", {"bogus": 1}),
        ("words", 5),
        ("words", "../words-0.npy"),
        ("segments", "segment-000001"),
        ("segments", ["../elsewhere"]),
        ("segments", ["segment-/../../elsewhere"]),
    ],
)
def test_a_manifest_of_something_else_is_refused(index, key, value):
    manifest = index.path / "index.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), key: value}))
    with pytest.raises(ValueError, match=r"index\.json: damaged, or not an index"):
        mkdesc.Index(index.path)


def test_a_manifest_that_is_nested_deeply_is_refused(index):
    (index.path / "index.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"index\.json: damaged, or not an index"):
        mkdesc.Index(index.path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("detector", "sifter", "detector: expected one of .*'sifter'"),
        ("model", "defauld", "no model 'defauld'"),
        ("model", "x" * 5000, ""),
    ],
)
def test_settings_of_a_manifest_are_named(index, key, value, message):
    manifest = index.path / "index.json"
    found = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**found, "settings": {**found["settings"], key: value}}))
    with pytest.raises(ValueError, match=rf"index\.json: {message}") as caught:
        mkdesc.Index(index.path)
    assert len(str(caught.value)) < 800


def test_segments_with_headers_of_python_2(index):
    """Numpy warns of them, which is an error here."""
    (segment,) = index.signatures.segments
    file, codes = segment.folder / "codes.npy", np.array(segment.codes)
    shape = str(codes.shape).encode()
    longer = file.read_bytes().replace(shape, shape.replace(b",", b"L,"))
    file.write_bytes(longer.replace(b" \n", b"\n", 1))
    np.testing.assert_array_equal(mkdesc.Index(index.path).signatures.segments[0].codes, codes)


def test_what_cannot_be_looked_up(index, scenes):
    for verify in (0, 5):
        for k in (0, -1, 1.5, True):
            with pytest.raises(ValueError, match=f"k: expected an integer >= 1, got {k!r}"):
                index.find(scenes / "1/2.png", k, verify)
    blank = np.full((60, 80), 90, np.uint8)
    with pytest.raises(ValueError, match=r"query: expected an image with keypoints, got none$"):
        index.find(blank)
    with pytest.raises(ValueError, match=r"query: .* got none in this part"):
        index.find(scenes / "1/2.png", box=(3, 3, 5, 5))
    with pytest.raises(ValueError, match="k: expected an integer >= 1, got 0"):
        find_groups(index, 0)
    assert len(index.find(scenes / "1/2.png", 1000)) == 8


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
def test_pipes_are_not_waited_for(index, tmp_path):
    os.mkfifo(tmp_path / "query.png")
    with pytest.raises(ValueError, match=r"query\.png: is a device or a pipe, expected"):
        index.find(tmp_path / "query.png")


def test_settings_are_not_mixed(index, scenes):
    other = Settings(max_keypoints=200, output="uint8")
    with pytest.raises(ValueError, match=r"other settings .max_keypoints 300 instead of 200"):
        mkdesc.build_index(scenes, index.path, other)
    assert index.settings == FEW


def test_no_usable_image(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.png").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"none of 1 images is usable; .*a\.png"):
        mkdesc.build_index(tmp_path / "in", tmp_path / "index")
    cv2.imwrite(str(tmp_path / "in/a.png"), np.full((50, 50), 7, np.uint8))
    with pytest.raises(ValueError, match="no keypoints in any of 1 images"):
        mkdesc.build_index(tmp_path / "in", tmp_path / "index")


def test_scenes_are_told_apart(index):
    found = find_groups(index)
    assert found == [[f"{scene}/{number}.png" for number in range(3)] for scene in range(3)]


def test_strangers_that_share_a_logo_are_no_place(view, tmp_path):
    (tmp_path / "photos").mkdir()
    for stranger in range(4):
        image = view(stranger)
        image[100:180, 20:220] = view(99)[:80, :200]
        cv2.imwrite(str(tmp_path / f"photos/{stranger}.png"), image)
    mkdesc.build_index(tmp_path / "photos", tmp_path / "index", FEW)
    assert list(map(len, find_groups(mkdesc.Index(tmp_path / "index")))) == [1, 1, 1, 1]


def _agreement(count):
    return Agreement(np.zeros((count, 2)), np.zeros((count, 2)), Verdict("verified", "as told"))


def test_all_of_a_shortlist_is_compared_though_few_are_wanted(index, monkeypatch):
    """What agrees best comes first even if many look more alike."""
    query = index.features("0/0.png")
    alike = [one.name for one in index.find_features(query, 9)]
    monkeypatch.setattr(index, "features", lambda name: name)
    counts = {name: number for number, name in enumerate(alike)}
    monkeypatch.setattr("mkdesc.retrieval.index.agree", lambda a, name: _agreement(counts[name]))
    assert [one.name for one in index.find_features(query, 1, verify=6)] == [alike[5]]
    found = index.find_features(query, 9, verify=6)
    assert [one.name for one in found] == [*alike[5::-1], *alike[6:]]
    assert [one.agreement is None for one in found] == [False] * 6 + [True] * 3


def test_thirty_matches_make_a_place(index, monkeypatch):
    counts = {("0", "1"): 30, ("1", "2"): 29}
    monkeypatch.setattr(index, "features", lambda name: name[0])
    monkeypatch.setattr(
        "mkdesc.retrieval.groups.agree",
        lambda a, b, _: _agreement(100 if a == b else counts.get((min(a, b), max(a, b)), 0)),
    )
    assert sorted(map(len, find_groups(index))) == [3, 6]
    counts["1", "2"] = 30
    assert sorted(map(len, find_groups(index))) == [9]
    assert len(verified_pairs(index)) == len(verified_pairs(index, least=30))


def test_segments_of_other_words_are_refused_and_made_again(index, scenes):
    """As when one file of an index comes from a backup."""
    before = groups(index)
    (words,) = index.path.glob("words-*")
    np.save(words, np.load(words)[:-1])
    with pytest.raises(ValueError, match=r"words-\d+\.npy: does not match the segments"):
        mkdesc.Index(index.path)
    mkdesc.build_index(scenes, index.path)
    again = mkdesc.Index(index.path)
    assert len(again.signatures.words) == len(index.signatures.words) - 1
    assert groups(again) == before


@pytest.fixture
def home(indexed, tmp_path):
    """A folder with ``photos``, and their index beside or in them."""

    def make(place):
        home = tmp_path / "home"
        shutil.copytree(indexed / "photos", home / "photos")
        mkdesc.build_index(home / "photos", home / place, FEW)
        return home

    return make


@pytest.mark.parametrize("place", ["index", "photos/index"])
@pytest.mark.parametrize("how", ["moved", "copied"])
def test_photographs_that_lie_beside_an_index_go_with_it(home, tmp_path, place, how):
    before, away = home(place), tmp_path / "away"
    if how == "moved":
        before.rename(away)
    else:
        shutil.copytree(before, away)
    opened = mkdesc.Index(away / place)
    assert opened.sources == [away / "photos"]
    assert opened.image_path("0/0.png") == away / "photos" / "0" / "0.png"
    assert opened.changed() == []
    (away / "photos" / "0" / "0.png").unlink()
    assert opened.changed() == ["0/0.png"]
    query = away / "photos" / "0" / "1.png"
    assert "0/1.png" not in [one.name for one in opened.find(query)]  # is the query itself


def test_an_index_that_was_copied_alone_knows_nothing_of_other_photographs(home, tmp_path):
    before = home("index")
    shutil.copytree(before / "index", tmp_path / "away" / "index")
    opened = mkdesc.Index(tmp_path / "away" / "index")
    assert opened.sources == [tmp_path / "away" / "photos"]
    assert len(opened.changed()) == len(opened) == 9
    with pytest.raises(FileNotFoundError, match=r"0/0\.png: not in .*away/photos any more"):
        opened.image_path("0/0.png")
    assert opened.image_path("0/0.png", before / "photos") == before / "photos" / "0" / "0.png"


def test_photographs_elsewhere_stay_where_they_are(indexed, tmp_path):
    mkdesc.build_index(indexed / "photos", tmp_path / "a" / "index", FEW)
    (tmp_path / "a").rename(tmp_path / "b")
    assert mkdesc.Index(tmp_path / "b" / "index").sources == [indexed / "photos"]
    assert mkdesc.Index(tmp_path / "b" / "index").changed() == []


def test_an_index_by_a_link_has_the_same_photographs(home, tmp_path):
    before = home("index")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "link").symlink_to(before / "index")
    assert mkdesc.Index(tmp_path / "far" / "link").sources == [before / "photos"]
    made = mkdesc.build_index(before / "photos", tmp_path / "far" / "link", FEW)
    assert (len(made.kept), made.added) == (9, [])
    assert mkdesc.Index(before / "index").sources == [before / "photos"]
