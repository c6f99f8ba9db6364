"""``mkdesc index``, ``find``, ``groups`` and ``pairs`` as a user meets them."""

import re
import shutil

import cv2
import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path):
    """Two photographs of one scene, one of another, and one that is broken."""
    rng = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    for name in "ac":
        noise = cv2.GaussianBlur(rng.integers(0, 256, (180, 240), np.uint8), (0, 0), 2)
        cv2.imwrite(str(tmp_path / f"in/{name}.png"), cv2.normalize(noise, None, 0, 255, 32))
    turn = cv2.getRotationMatrix2D((120, 90), 15, 1)
    turned = cv2.warpAffine(cv2.imread(str(tmp_path / "in/a.png")), turn, (240, 180))
    cv2.imwrite(str(tmp_path / "in/b.png"), turned)
    (tmp_path / "in/broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    return tmp_path


def test_from_a_folder_to_what_it_shows(folder, run):
    done = run("index", "in", "-o", "index", cwd=folder)
    assert done.returncode == 1, done.stderr  # one could not be read
    assert "left out: in/broken.jpg: truncated" in done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"index: 3 images \(3 new\) in \d+\.\d s, \d+\.\d\d s each", last)
    done = run("index", "in", "-o", "index", cwd=folder)
    assert done.stdout == "index: 3 images (nothing new)\n"

    options = ("--box", "0,0,240,120", "-o", "sheet.png")
    done = run("find", "in/b.png", "index", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.splitlines()
    assert len(rows) == 1  # the query is left out, and what shows something else
    assert int(re.fullmatch(r"  1  a.png  +(\d+) matches agree", rows[0])[1]) > 50
    assert last == "written: sheet.png"
    sheet = cv2.imread(str(folder / "sheet.png"))
    assert np.ptp(sheet.astype(int), axis=2).max() > 100  # coloured lines
    shutil.copy(folder / "in/b.png", folder / "copy.png")
    done = run("find", "copy.png", "index", "-k", "1", "--no-verify", cwd=folder)
    assert done.stdout == "  1  b.png  similarity 1.000\n"
    assert done.stderr == ""

    done = run("find", "in/c.png", "index", "-o", "none.png", cwd=folder)
    assert done.returncode == 1  # as grep's
    assert done.stdout == ""
    assert done.stderr == "none of the 3 most similar photographs shows what in/c.png shows\n"
    assert not (folder / "none.png").exists()

    done = run("find", "in", "index", cwd=folder)
    assert done.stderr == "error: in: a folder, expected a photograph\n"

    done = run("pairs", "in", "-o", "pairs.txt", "-k", "1", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert (folder / "pairs.txt").read_text().splitlines()[0] == "a.png b.png"
    assert done.stdout == "pairs.txt: 2 of 3 pairs of 3 images\n"

    done = run("groups", "index", "-o", "scenes", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "  1    2 photographs: a.png, b.png",
        "scenes: 1; photographs without a scene: 1",
        "written: scenes",
    ]
    links = {link.name: link.resolve() for link in (folder / "scenes/001").iterdir()}
    assert links == {name: (folder / "in" / name).resolve() for name in ("a.png", "b.png")}


def test_pairs_leave_an_index_of_more_than_the_folder_alone(folder, run):
    (folder / "more").mkdir()
    (folder / "in/c.png").rename(folder / "more/c.png")
    run("index", "in", "more", "-o", "index", cwd=folder)
    before = {path: path.read_bytes() for path in (folder / "index").rglob("*") if path.is_file()}
    done = run("pairs", "in", "-o", "pairs.txt", "--index", "index", cwd=folder)
    assert done.returncode == 2
    expected = "--index: index has 1 images that are not in in, for example c.png"
    assert expected in done.stderr.splitlines()[-1]
    assert not (folder / "pairs.txt").exists()
    files = (path for path in (folder / "index").rglob("*") if path.is_file())
    assert {path: path.read_bytes() for path in files} == before


def test_pairs_leave_an_index_of_another_folder_alone(folder, run):
    """Cameras give the same names again and again."""
    (folder / "in/broken.jpg").unlink()
    shutil.copytree(folder / "in", folder / "more")
    shutil.copy(folder / "more/a.png", folder / "more/c.png")
    assert run("index", "in", "-o", "index", cwd=folder).returncode == 0
    before = {path: path.read_bytes() for path in (folder / "index").rglob("*") if path.is_file()}
    done = run("pairs", "more", "-o", "pairs.txt", "--index", "index", cwd=folder)
    assert done.returncode == 2
    expected = f"error: --index: index is of {folder / 'in'}, expected an index of more"
    assert done.stderr.splitlines()[-1].startswith(expected)
    assert {path: path.read_bytes() for path in before} == before
    (folder / "in").rename(folder / "moved")  # there is no other folder that it could be of
    done = run("pairs", "moved", "-o", "pairs.txt", "--index", "index", cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["find", "in/a.png", "gone"],
            "error: gone: not an index; expected a folder that mkdesc index made",
        ),
        (["find", "in/a.png", "gone", "-o", "x.gif"], "error: --output: expected a name ending"),
        (["find", "in/a.png", "gone", "--box", "1,2"], "error: --box: expected four numbers"),
        (
            ["find", "in/a.png", "gone", "--candidates", "0"],
            "error: --candidates: expected an int",
        ),
        (["pairs", "in", "-o", "p", "--how", "some"], "error: --how: expected one of"),
        (["pairs", "in", "-o", "p", "-k", "0"], "error: -k: expected an integer >= 1, got 0"),
        (["groups", "gone", "-o", "in"], "error: --output: expected a folder that does not exist"),
        (["pairs", "in", "-o", "no/p"], "error: no/p: the folder no does not exist"),
        (["groups", "gone", "-o", "no/scenes"], "error: no/scenes: the folder no does not exist"),
        (["pairs", "gone", "-o", "p"], "error: gone does not exist"),
        (["index", "in", "-o", "in"], "error: in/a.png: lies in the index in; choose another"),
        (["index", "in/a.png", "-o", "."], "error: in/a.png: lies in the index ."),
    ],
)
def test_bad_input_is_one_line(folder, arguments, message, run):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert "left out" not in done.stderr  # nothing was computed
    assert message in done.stderr.strip().splitlines()[-1]


def test_photographs_that_changed_since_they_were_indexed_are_named(folder, run):
    (folder / "in/broken.jpg").unlink()
    assert run("index", "in", "-o", "index", cwd=folder).returncode == 0
    shutil.copy(folder / "in/c.png", folder / "query.png")
    (folder / "in/c.png").touch()  # the same content
    done = run("find", "query.png", "index", "-k", "3", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    shutil.copy(folder / "in/a.png", folder / "in/c.png")
    (folder / "in/b.png").unlink()
    warning = re.compile(
        "warning: gone or changed since index was made: (b.png, c.png|c.png, b.png); "
        "to update it, run mkdesc index again"
    )
    shutil.copy(folder / "in/a.png", folder / "other.png")
    # Those that are not found, too: somebody may look for what they show now.
    for command in ("find query.png index -k 1", "find other.png index -k 1", "groups index"):
        done = run(*command.split(), cwd=folder)
        assert done.returncode == 0, done.stderr
        assert warning.search(done.stderr)


def test_an_index_that_was_copied_alone_says_so(folder, run):
    (folder / "in/broken.jpg").unlink()
    (folder / "away").mkdir()
    assert run("index", "in", "-o", "index", cwd=folder).returncode == 0
    shutil.copytree(folder / "index", folder / "away/index")
    for command in ("find in/a.png away/index", "groups away/index"):
        done = run(*command.split(), cwd=folder)
        assert f"({folder / 'away/in'} is not there)" in done.stderr
    done = run("find", "in/a.png", "away/index", "--images", "in", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    done = run("groups", "away/index", "-o", "scenes", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: a.png: not in {folder / 'away/in'} any more\n")
    assert not done.stdout


def test_a_picture_among_the_indexed_photographs_is_not_drawn_over(folder, run):
    """Not even one that mkdesc drew: somebody indexed it."""
    (folder / "in/broken.jpg").unlink()
    done = run("match", "in/a.png", "in/b.png", "-o", "in/m.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert run("index", "in", "-o", "index", cwd=folder).returncode == 0
    before = (folder / "in/m.png").read_bytes()
    for more in ([], ["--overwrite"]):
        done = run("find", "in/a.png", "index", "-o", "in/m.png", *more, cwd=folder)
        assert done.returncode == 2
        assert "in/m.png: is an input" in done.stderr
    assert (folder / "in/m.png").read_bytes() == before
    (folder / "in/n.png").write_bytes(before)  # not indexed: a picture like any other
    done = run("find", "in/a.png", "index", "-o", "in/n.png", cwd=folder)
    assert done.returncode == 0, done.stderr
