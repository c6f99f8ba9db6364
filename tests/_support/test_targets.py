"""What may be written over."""

import os

import pytest

from mkdesc._support.files import atomic_folder, atomic_path
from mkdesc._support.targets import check_replaced, check_target
from mkdesc.features import matches
from mkdesc.images.detectors.learned_weights import OWN_WEIGHTS, weights_file
from mkdesc.models import load_model, model_file, save_model
from mkdesc.models.files import OWN_MODEL
from mkdesc.retrieval import pairs


def test_only_files_of_the_kind_are_replaced(tmp_path):
    file = tmp_path / "a.csv"
    for content, refused in ((b"x,y\n1,2\n", False), (b"", False), (b"diary", True)):
        file.write_bytes(content)
        if refused:
            with pytest.raises(FileExistsError, match="is another kind of file"):
                check_target(file, own=rb"\Ax,y\n")
        else:
            check_target(file, own=rb"\Ax,y\n")
    check_target(file, own=rb"\Ax,y\n", overwrite=True)


@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_texts_are_known_by_all_of_their_lines(tmp_path, name):
    """Matches of COLMAP begin as a list of pairs does, and notes may follow a table."""
    file = tmp_path / name
    first = {"a.txt": "a.png b.png", "a.csv": ",".join(matches.COLUMNS)}[name]
    check = {"a.txt": lambda path: pairs.check_output(path, []), "a.csv": matches.check_output}[
        name
    ]
    for more, refused in (("", False), ("0 12\n3 41\n", True), ("# milk\n", True)):
        file.write_text(f"{first}\n{more}")
        if refused:
            with pytest.raises(FileExistsError, match="is another kind of file"):
                check(file)
        else:
            check(file)


def test_bundled_files_are_not_replaced_by_mistake(tmp_path):
    model, weights = model_file("photo"), weights_file("keypoints")
    before = model.read_bytes()
    (tmp_path / "link.safetensors").symlink_to(model)
    for file in (model, tmp_path / "link.safetensors"):
        with pytest.raises(FileExistsError, match="is a part of mkdesc itself"):
            check_target(file, own=OWN_MODEL, overwrite=False)
        with pytest.raises(FileExistsError, match="is a part of mkdesc itself"):
            save_model(load_model("photo"), file)
        check_target(file, own=OWN_MODEL, overwrite=True)  # as those who make them do
        with pytest.raises(ValueError, match="is an input"):
            check_target(file, [model_file("photo")], OWN_MODEL, overwrite=True)
    with pytest.raises(FileExistsError, match="is a part of mkdesc itself"):
        check_target(weights, own=OWN_WEIGHTS, overwrite=False)
    assert model.read_bytes() == before


def test_files_of_a_folder_that_is_read_stay_but_for_own_ones(tmp_path):
    photograph, own = tmp_path / "in" / "a.jpg", tmp_path / "in" / "m.csv"
    photograph.parent.mkdir()
    photograph.write_bytes(b"pixels")
    own.write_bytes(b"x,y\n")
    os.link(photograph, tmp_path / "b.csv")
    with pytest.raises(ValueError, match="is an input"):
        check_target(tmp_path / "b.csv", [photograph.parent], rb"\Ax,y\n", overwrite=True)
    check_target(own, [photograph.parent], rb"\Ax,y\n")
    with pytest.raises(ValueError, match="is an input"):
        check_target(own, [own], rb"\Ax,y\n")


def test_folders_that_are_read_or_of_others_are_not_replaced(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "1.png").touch()
    for read in (tmp_path / "a", inner, inner / "1.png"):
        with pytest.raises(ValueError, match="is an input"):
            check_replaced(tmp_path / "a", [read], "own.json", {"b"})
    with pytest.raises(FileExistsError, match=r"did not write, for example b"):
        check_replaced(tmp_path / "a", [tmp_path / "c"], "own.json", {"b"})
    (tmp_path / "a" / "own.json").touch()
    with pytest.raises(FileExistsError, match=r"did not write, for example b"):
        check_replaced(tmp_path / "a", [tmp_path / "c"], "own.json", {"b"})  # it is a folder
    (tmp_path / "c").touch()
    with pytest.raises(NotADirectoryError, match=r"c: is a file, expected a folder"):
        check_replaced(tmp_path / "c", [tmp_path / "a"], "own.json", {"b"})


def test_a_folder_with_one_file_of_others_is_not_replaced(tmp_path):
    for name in ("own.json", "1.png"):
        (tmp_path / name).touch()
    check_replaced(tmp_path, [tmp_path.parent / "c"], "own.json", {"1.png"})
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileExistsError, match=r"did not write, for example notes\.txt"):
        check_replaced(tmp_path, [tmp_path.parent / "c"], "own.json", {"1.png"})


@pytest.mark.parametrize("writing", [atomic_path, atomic_folder])
def test_errors_without_a_number_or_a_name_say_what_was_written(tmp_path, writing):
    """As numpy has them: "80128 requested and 3040 written"."""
    for error in (OSError("80128 requested and 3040 written"), OSError(28, "No space left")):
        with pytest.raises(OSError, match=r"out\.npy"), writing(tmp_path / "out.npy"):
            raise error
    assert not list(tmp_path.iterdir())


def test_files_below_linked_folders_are_read_too(tmp_path):
    for name in ("photos", "real"):
        (tmp_path / name).mkdir()
    (tmp_path / "photos" / "link").symlink_to("../real")
    (tmp_path / "real" / "back").symlink_to("../photos")  # a circle
    photograph = tmp_path / "real" / "c.png"
    photograph.write_bytes(b"pixels")
    other = tmp_path / "other.png"
    other.write_bytes(b"pixels")
    with pytest.raises(ValueError, match="is an input"):
        check_target(photograph, [tmp_path / "photos"], rb"\Ax,y\n", overwrite=True)
    check_target(other, [tmp_path / "photos"], rb"\Ax,y\n", overwrite=True)
