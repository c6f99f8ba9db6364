"""Nothing is lost where inputs and files of others lie in, below or beside an output."""

import shutil

import cv2
import numpy as np
import pytest

from mkdesc.cli.app import make_app


def run(*arguments):
    """The exit code of a command, and what it said."""
    try:
        return make_app(arguments[:1])([*map(str, arguments)], standalone_mode=False) or 0, ""
    except (ValueError, OSError) as error:
        return 2, str(error)


def draw(file, seed=0, size=120):
    """A small photograph of noise."""
    file.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (size, size), np.uint8)
    cv2.imwrite(str(file), cv2.GaussianBlur(noise, (0, 0), 2))


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Two photographs in ``photos`` of the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate("ab"):
        draw(tmp_path / "photos" / f"{name}.png", seed)
    return tmp_path / "photos"


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", ["segment-photos", "features", "segment-000007"])
def test_photographs_in_the_folder_of_an_index_stay(photos, tmp_path, name):
    shutil.copytree(photos, tmp_path / "out" / name)
    before = contents(tmp_path)
    code, message = run("index", f"out/{name}", "-o", "out", "--keypoints", 50)
    assert code == 2
    assert "lies in the index out" in message
    assert contents(tmp_path) == before


def test_files_of_others_in_an_index_stay(photos, tmp_path):
    index = tmp_path / "index"
    assert run("index", "photos", "-o", "index", "--keypoints", 50)[0] == 0
    others = [
        index / name
        for name in ("words-of-wisdom.txt", "segment-holiday/a.txt", ".words-secret", "words-1")
    ]
    stale = index / "words-000099.npy"
    (index / "segment-holiday").mkdir()
    for file in (*others, stale):
        file.write_text("mine")
    draw(photos / "c.png", 3)
    assert run("index", "photos", "-o", "index", "--keypoints", 50)[0] == 0
    assert [file.read_text() for file in others] == ["mine"] * len(others)
    assert not stale.exists()


def test_strips_do_not_replace_another_sequence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path / "A", tmp_path / "x" / "A" / "B"):
        for k in range(1, 7):
            draw(folder / f"{k}.png", size=200)
            np.savetxt(folder / f"H_1_{k}", np.eye(3))
    (tmp_path / "x" / "A" / "sequence.json").write_text("{}")
    before = contents(tmp_path)
    code, message = run("make-hpatches", "A", "x/A/B", "-o", "x", "--overwrite")
    assert contents(tmp_path) == before
    assert code == 2
    assert "is an input" in message


@pytest.mark.parametrize("output", ["out", "out.h5", "out.db", "index"])
def test_links_that_lead_nowhere_are_named_as_unreadable(photos, run, output):
    if output.endswith(".db"):
        pytest.importorskip("pycolmap")
    (photos / "lost.jpg").symlink_to("gone.jpg")
    command = "index" if output == "index" else "features"
    for _ in range(2):
        done = run(command, "photos", "-o", output, "--keypoints", 50)
        assert done.returncode == 1
        assert "left out: " in done.stderr
        assert "photos/lost.jpg" in done.stderr
    (photos / "lost.jpg").unlink()
    assert run(command, "photos", "-o", output, "--keypoints", 50).returncode == 0


@pytest.mark.parametrize("place", ["photos/scenes", "photos/in/../scenes", "link/scenes"])
def test_scenes_are_not_written_among_the_photographs(photos, tmp_path, place):
    """The next index would take the links for photographs."""
    (photos / "in").mkdir()
    (tmp_path / "link").symlink_to("photos")
    assert run("index", "photos", "-o", "index", "--keypoints", 50)[0] == 0
    code, message = run("groups", "index", "-o", place, "--least", 1)
    assert code == 2
    assert message.startswith(f"--output: {place} lies in {photos}")
    assert not (photos / "scenes").exists()


@pytest.mark.parametrize("output", ["out.h5", "out.db"])
def test_a_folder_by_the_name_of_a_store_is_named(photos, tmp_path, output):
    (tmp_path / output).mkdir()
    code, message = run("features", "photos", "-o", output)
    assert (code, message) == (2, f"{output}: is a folder, not a file to write")
    assert [*tmp_path.glob("out*")] == [tmp_path / output]


def test_descriptors_are_not_written_into_a_sequence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in range(1, 7):
        draw(tmp_path / "A" / f"{k}.png", size=200)
        np.savetxt(tmp_path / "A" / f"H_1_{k}", np.eye(3))
    assert run("make-hpatches", "A", "-o", "strips", "--max-patches", 4)[0] == 0
    before = contents(tmp_path)
    for output, name in (("strips", "A"), ("strips/A", "mine")):
        command = ("export", "hpatches-csv", "strips", "-o", output, "--name", name, "--overwrite")
        code, message = run(*command)
        assert code == 2
        assert "strips/A: is an input" in message
    assert contents(tmp_path) == before


@pytest.mark.parametrize("output", ["index/out", "index/features/out", "link/out"])
@pytest.mark.parametrize(
    "command",
    [
        "find photos/a.png index -o {}.jpg",
        "features photos/a.png -o {}.jpg",
        "features photos -o {}.h5",
        "groups index -o {}",
        "pairs photos -o {}.txt --index index",
    ],
)
def test_nothing_is_written_into_an_index(photos, tmp_path, output, command):
    (tmp_path / "link").symlink_to("index/features")
    assert run("index", "photos", "-o", "index", "--keypoints", 50)[0] == 0
    before = contents(tmp_path)
    words = command.format(output).split()
    code, message = run(*words)
    assert code == 2
    name = words[words.index("-o") + 1]
    assert message == f"{name}: lies in the index {tmp_path / 'index'}; choose another output"
    assert contents(tmp_path) == before


@pytest.mark.parametrize("output", ["index/features", "link", "index/features/in"])
def test_features_of_an_index_are_not_replaced(photos, tmp_path, output):
    """Other photographs of the same names, described in the same way."""
    (tmp_path / "link").symlink_to("index/features")
    for name in "ab":
        draw(tmp_path / "others" / f"{name}.png", 9)
    assert run("index", "photos", "-o", "index", "--keypoints", 50)[0] == 0
    before = contents(tmp_path)
    command = ("features", "others", "-o", output, "--keypoints", 50, "--dtype", "uint8")
    code, message = run(*command)
    assert code == 2
    assert message == f"{output}: lies in the index {tmp_path / 'index'}; choose another output"
    assert contents(tmp_path) == before
