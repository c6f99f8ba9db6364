"""No command writes over what it reads, or over a file of another kind, by any name of it."""

import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

import cv2
import numpy as np
import pytest
import typer.main

from mkdesc.cli.app import make_app

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "kill"))
from inputs import make_inputs  # type: ignore[import-not-found]

#: Ways to call a file by another name.
NAMES = ("itself", "relative", "symbolic link", "hard link")


@dataclass(frozen=True)
class Case:
    """A command that writes: its arguments, what it reads, and endings of what it writes."""

    arguments: str
    reads: tuple[str, ...] = ()
    endings: tuple[str, ...] = field(default=())  # none: it writes a folder

    def command(self, output):
        return [*self.arguments.format(out=output).split()]


CASES = {
    "demo": [Case("{out}", ("photos",))],
    "match": [
        Case(
            "photos/a.png photos/b.png --model m.safetensors -o {out}",
            ("photos/a.png", "photos/b.png", "m.safetensors"),
            (".png", ".jpg", ".svg", ".npz", ".csv", ".json"),
        )
    ],
    "align": [
        Case(
            f"photos/a.png photos/b.png --model m.safetensors {option} {{out}}",
            ("photos/a.png", "photos/b.png", "m.safetensors"),
            endings,
        )
        for option, endings in (
            ("-o", (".png", ".jpg")),
            ("--difference", (".png",)),
            ("--blink", (".gif",)),
        )
    ],
    "features": [
        Case("photos -o {out} --model m.safetensors", ("photos", "index/features")),
        Case("photos -o {out}", ("photos/a.png",), (".h5", ".db")),
        Case("photos/a.png -o {out}", ("photos/a.png",), (".jpg", ".png")),
    ],
    "index": [Case("photos -o {out} --model m.safetensors", ("photos", "strips"))],
    "find": [
        Case(
            "query.png index -o {out} --images photos",
            ("query.png", "photos/a.png", "index/index.json"),
            (".jpg", ".png"),
        )
    ],
    "groups": [Case("index -o {out}", ("photos", "index"))],
    "pairs": [
        Case("photos -o {out} --how exhaustive", ("photos/a.png",), (".png", ".txt")),
        Case("photos -o {out} --index index", ("index/index.json",), (".txt", ".json")),
    ],
    "sfm": [
        Case("photos -o {out} --pairs pairs.txt --stop-after matches", ("strips", "index")),
        Case("photos -o {out} --database matches/database.db", ("matches",)),
    ],
    "describe": [
        Case(
            "patches.npy -o {out} --model m.safetensors",
            ("patches.npy", "m.safetensors"),
            (".npy",),
        ),
        Case("patches.zarr -o {out}", ("patches.zarr",)),
    ],
    **{
        f"learn {source}": [
            Case(f"{reads[0]} {more} -o {{out}} {teacher}", (*reads, model), (".safetensors",))
            for teacher, model in (
                ("--from m.safetensors", "m.safetensors"),
                *([("--like m.safetensors", "m.safetensors")] if source == "photos" else []),
            )
        ]
        for source, reads, more in (
            ("photos", ("photos", "photos/a.png"), ""),
            ("patches", ("train.npz",), ""),
            ("phototourism", ("subsets/castle", "subsets/castle/info.txt"), ""),
            ("hpatches", ("strips", "strips/graf/ref.png"), "--splits splits.json --split a"),
            ("colmap", ("sparse", "photos/a.png", "sparse/images.txt"), "photos"),
        )
    },
    "learn descriptor": [
        Case(
            "photos -o {out} --detector w.safetensors --from m.safetensors",
            ("photos/a.png", "w.safetensors", "m.safetensors"),
            (".safetensors",),
        )
    ],
    "learn keypoints": [
        Case(
            "photos -o {out} --model m.safetensors --from w.safetensors",
            ("photos/a.png", "m.safetensors", "w.safetensors"),
            (".safetensors",),
        )
    ],
    "learn ratio": [
        Case("m.safetensors photos -o {out}", ("photos/a.png", "m.safetensors"), (".safetensors",))
    ],
    "evaluate homography": [
        Case("sequences -m rootsift -o {out}", ("sequences", "sequences/graf"))
    ],
    "evaluate pose": [Case("poses -o {out}", ("poses", "poses/images"))],
    "evaluate phototourism": [Case("subsets -d mkd-raw -o {out}", ("subsets", "subsets/castle"))],
    "evaluate hpatches": [
        Case("strips -d mkd-raw --tasks matching -o {out}", ("strips", "strips/graf"))
    ],
    "compare": [Case("run1 run2 -o {out}", ("run1", "run2"))],
    "make-hpatches": [
        Case("graf -o {out}", ("graf",)),
        Case("graf -o {out} --max-patches 20", (".",)),
    ],
    "export hpatches-csv": [Case("strips -o {out} --name graf", ("strips",))],
    "export onnx": [Case("m.safetensors -o {out}", ("m.safetensors",), (".onnx",))],
    "explore": [Case("--export {out}", (), (".html",))],
    "inspect": [
        Case(
            "patch-a.png patch-b.png -o {out} --model m.safetensors",
            ("patch-a.png", "patch-b.png", "m.safetensors"),
            (".png", ".svg", ".pdf"),
        )
    ],
    "figures": [],  # see below
}
#: Commands that write nothing.
READERS = {"models", "datasets check", "evaluate speed", "info", "compile"}


@cache
def commands():
    """All commands there are, by name."""

    def walk(command, name):
        inner = getattr(command, "commands", {})
        if not inner:
            yield name, command
        for word, one in inner.items():
            yield from walk(one, f"{name} {word}".strip())

    return dict(walk(typer.main.get_command(make_app()), ""))


def run(name, arguments):
    """The exit code of a command, and what it said."""
    try:
        words = [*name.split(), *arguments]
        return make_app(words[:1])(words, standalone_mode=False) or 0, ""
    except (ValueError, OSError) as error:
        return 2, str(error)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Inputs for every command."""
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder / "data")
    data = folder / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(data)
        shutil.copy("photos/a.png", "query.png")
        np.save("patches.npy", np.load("patches.npy")[:50].repeat(4, 1).repeat(4, 2))
        shutil.copy(files("mkdesc.models") / "photo.safetensors", "m.safetensors")
        for name, arguments in (
            ("index", "photos -o index --keypoints 50"),
            ("make-hpatches", "graf wall -o strips --max-patches 20"),
            ("evaluate hpatches", "strips -o run1 -d mkd-raw --tasks matching"),
            ("evaluate hpatches", "strips -o run2 -d paper-64 --tasks matching"),
            ("sfm", "photos -o matches --stop-after matches --keypoints 200"),
            ("describe", "patches.npy -o patches.zarr"),
        ):
            assert run(name, arguments.split())[0] == 0, name
        Path("patches.zarr.mkdesc.json").unlink()
        Path("pairs.txt").write_text("a.png b.png\n")
        Path("splits.json").write_text('{"a": {"name": "a", "test": ["wall"], "train": ["graf"]}}')
        shutil.copy("m.safetensors", "w.safetensors")
        shutil.copytree("photos", "poses/images")
        Path("sparse").mkdir()
        for file in ("cameras.txt", "images.txt", "points3D.txt"):
            Path("sparse", file).write_text("# nothing\n")
    return data


@pytest.fixture
def data(made, tmp_path, monkeypatch):
    """The same in a folder of one's own, in which commands run."""
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


def contents(folder):
    return {
        file.relative_to(folder): (
            file.stat().st_ino,
            file.stat().st_size,
            file.stat().st_mtime_ns,
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink()
    }


def lost(before, folder):
    """Files that are gone or others."""
    now = contents(folder)
    return [str(name) for name, content in before.items() if now.get(name) != content]


def every(folders):
    return [
        pytest.param(name, case, id=f"{name}-{number}")
        for name, cases in CASES.items()
        for number, case in enumerate(cases)
        if folders == (not case.endings)
    ]


def with_overwriting(name, arguments):
    """Arguments as they are, and with the option to overwrite if there is one."""
    options = {option for one in commands()[name].params for option in one.opts}
    return [arguments, *([[*arguments, "--overwrite"]] if "--overwrite" in options else [])]


def test_every_command_has_a_case():
    assert commands().keys() == CASES.keys() | READERS


@pytest.mark.parametrize(("name", "case"), every(folders=False))
def test_no_command_writes_over_what_it_reads(data, name, case):
    for read in case.reads:
        if Path(read).is_dir():
            continue
        before = contents(data)
        for ending in case.endings:
            for way in NAMES:
                output = Path(f"out{ending}")
                if way in ("itself", "relative"):
                    if Path(read).suffix != ending:
                        continue
                    output = Path(read) if way == "itself" else Path(f"photos/../{read}")
                elif way == "symbolic link":
                    output.symlink_to(read)
                else:
                    os.link(read, output)
                for arguments in with_overwriting(name, case.command(output)):
                    code, message = run(name, arguments)
                    assert not lost(before, data), (way, arguments)
                    assert code == 2, (way, arguments)
                    assert str(output) in message
                if output.name.startswith("out"):
                    assert output.samefile(read)
                    output.unlink()


@pytest.mark.parametrize(("name", "case"), every(folders=False))
def test_files_of_other_kinds_stay(data, name, case):
    photograph = cv2.imencode(".png", np.eye(50, dtype=np.uint8))[1].tobytes()
    for ending in case.endings:
        output = Path(f"out{ending}")
        for content in (photograph, b"Dear diary,\nthis is not for you.\n"):
            output.write_bytes(content)
            code, message = run(name, case.command(output))
            assert (code, output.read_bytes()) == (2, content), ending
            assert str(output) in message


def test_a_column_that_somebody_added_makes_another_kind_of_file(data):
    matches = Path("m.csv")
    command = ["photos/a.png", "photos/b.png", "-o", "m.csv"]
    assert run("match", command)[0] == 0
    first, rest = matches.read_text().split("\n", 1)
    assert run("match", command)[0] == 0
    matches.write_text(f"{first},remarks\n{rest}")
    code, message = run("match", command)
    assert code == 2
    assert "m.csv: is there already, and is another kind of file" in message
    assert matches.read_text().startswith(f"{first},remarks\n")


def test_files_that_only_resemble_matches_stay(data):
    command = ["photos/a.png", "photos/b.png", "-o"]
    for output in ("m.npz", "m.json"):
        for _ in range(2):  # its own may be replaced
            assert run("match", [*command, output])[0] == 0
    with np.load("m.npz") as arrays:
        ours = dict(arrays)
    found = json.loads(Path("m.json").read_text())
    for number, mine in enumerate(
        ({"points_a": np.ones((9, 2))}, {**ours, "remarks": np.array("by hand")})
    ):
        np.savez(f"mine-{number}.npz", **mine)
    for number, mine in enumerate(
        (
            {"verified": "by hand, on Monday"},
            {"verified": True},
            {**found, "remarks": "by hand"},
            {**found, "verified": "by hand"},
            {**found, "points_a": {"x": 1}},
            [found],
        )
    ):
        Path(f"mine-{number}.json").write_text(json.dumps(mine, indent=1))
    before = contents(data)
    for output in sorted(data.glob("mine-*")):
        code, message = run("match", [*command, output.name])
        assert (code, "is another kind of file" in message) == (2, True), output
    assert contents(data) == before


@pytest.mark.parametrize(("name", "case"), every(folders=True))
def test_folders_that_are_read_stay_as_they_are(data, name, case):
    for read in case.reads:
        before = contents(data)
        Path("link").symlink_to(read)
        for output in (read, "link", f"photos/../{read}"):
            for arguments in with_overwriting(name, case.command(output)):
                run(name, arguments)
                assert not lost(before, data), arguments
        Path("link").unlink()


@pytest.mark.parametrize(("name", "case"), every(folders=True))
def test_files_where_folders_are_wanted_are_named(data, name, case, capsys):
    arguments = case
    if name == "describe":  # whose folders have endings
        arguments = Case("patches.npy -o {out}.zarr")
    elif name == "evaluate pose":
        arguments = Case("posed -o {out}")
    for ending in ("", ".zarr"):
        Path(f"diary{ending}").write_text("Dear diary")
        Path(f"lost{ending}").symlink_to("nowhere/at/all")
    for output in ("diary", "lost", "diary/in", "lost/in"):
        code, message = run(name, arguments.command(output))
        assert code == 2, output
        assert Path(output).parts[0] in message
        assert "Errno" not in message
        assert not capsys.readouterr().out  # nothing was computed first
    assert Path("diary").read_text() == Path("diary.zarr").read_text() == "Dear diary"


@pytest.mark.parametrize(("name", "case"), every(folders=False))
def test_links_into_missing_folders_are_refused_before_the_work(data, name, case, monkeypatch):
    before = contents(data)

    def written(path, *_):
        raise AssertionError(f"{path} was to be written")

    for ending in case.endings:
        output = Path(f"out{ending}")
        output.symlink_to(f"nowhere/out{ending}")
        with monkeypatch.context() as patch:
            patch.setattr("mkdesc._support.files.check_target", written)
            code, message = run(name, case.command(output))
        assert code == 2
        assert message.endswith(f"{output}: the folder {data / 'nowhere'} does not exist")
        assert contents(data) == before


@pytest.mark.parametrize("name", CASES)
def test_a_dash_is_no_output(tmp_path, monkeypatch, name):
    """It means stdout elsewhere; nobody wants a file called so."""
    monkeypatch.chdir(tmp_path)
    ways = {"demo": ["-"], "explore": ["--export -", "--export=-"]}
    for way in ways.get(name, ["-o -", "-o-", "--output -", "--output=-"]):
        code, message = run(name, way.split())
        assert (code, message[:3]) == (2, "-: "), way
    assert "./-" in message
    assert not list(tmp_path.iterdir())


def test_figures_are_not_drawn_over_other_files(data):
    photograph = Path("figures/figure5-extended.png")
    photograph.parent.mkdir()
    shutil.copy("photos/a.png", photograph)
    before = contents(data)
    code, message = run("figures", ["-o", "figures", "--formats", "png"])
    assert code == 2
    assert str(photograph) in message
    assert contents(data) == before
    photograph.unlink()
    photograph.symlink_to("../m.safetensors")
    shutil.copy(files("mkdesc.visual.whitenings") / "polar-lw.safetensors", "m.safetensors")
    whitening = ["--whitening", "m.safetensors", "--overwrite"]
    code, message = run("figures", ["-o", "figures", "--formats", "png", *whitening])
    assert code == 2
    assert str(photograph) in message


def test_devices_and_pipes_are_not_replaced(data):
    os.mkfifo("pipe.txt")
    code, message = run("pairs", ["photos", "-o", "pipe.txt", "--how", "exhaustive"])
    assert code == 2
    assert "pipe.txt: is a device or a pipe" in message


def test_the_case_of_homographies_is_a_command_that_runs(data):
    (case,) = CASES["evaluate homography"]
    assert run("evaluate homography", case.command("fresh")) == (0, "")
