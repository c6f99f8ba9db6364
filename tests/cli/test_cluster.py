"""``--cluster``: every command that has it writes the same as without, whoever dies."""

import hashlib
import os
import signal
import sqlite3
from contextlib import closing

import cv2
import numpy as np
import pytest
from layouts import draw_pairs, write_subset

import mkdesc
from mkdesc._support.cluster import Cluster

pytest.importorskip("distributed")
pytestmark = pytest.mark.long

#: What is written, by its command.
COMMANDS = {
    "describe": "describe patches.npy -o out/d.npy",
    "zarr": "describe patches.npy -o out/d.zarr",
    "features": "features in -o out/features --keypoints 300",
    "index": "index in -o out/index --keypoints 300",
    "pairs": "pairs good -o out/pairs.txt --how retrieved -k 1",
    "sfm": "sfm good -o out/sfm --keypoints 300 --stop-after matches",
    "learn": "learn photos good -o out/model.safetensors --keypoints 60",
    "evaluate": "evaluate phototourism subsets -o out/results --descriptors mkd-raw",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Photographs, one of them broken; patches; a labelled subset."""
    folder, rng = tmp_path_factory.mktemp("cluster"), np.random.default_rng(0)
    for name in ("good", "in"):
        (folder / name).mkdir()
    for number in range(5):
        noise = cv2.GaussianBlur(rng.random((200, 260)), (0, 0), 1.2 + number / 6)
        image = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
        for name in ("good", "in"):
            cv2.imwrite(str(folder / f"{name}/{number}.png"), image)
    (folder / "in/broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    np.save(folder / "patches.npy", rng.integers(0, 256, (40_000, 32, 32), np.uint8))
    (folder / "subsets").mkdir()
    for name in ("a", "b"):
        labels = np.repeat(np.arange(120), 2)
        patches = rng.integers(0, 256, (240, 64, 64), np.uint8)
        pairs = {50: draw_pairs(labels, 50)}
        write_subset(folder / "subsets" / name, patches, labels, pairs=pairs)
    return folder


@pytest.fixture
def call(data, run):
    """Run a command in the folder of the data, with ``out`` somewhere; its exit code and words."""

    def there(command, out, *more):
        words = [out / word[4:] if word[:4] == "out/" else word for word in command.split()]
        done = run(*words, *more, cwd=data)
        return done.returncode, done.stderr

    return there


def contents(folder):
    """Digests of files by name; of databases of their rows, of a model to five digits."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_dir() or path.name == "colmap.log":  # which has times in it
            continue
        data = path.read_bytes()
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as base:
                data = "\n".join(base.iterdump()).encode()
        elif path.suffix == ".safetensors":
            matrix = mkdesc.load_model(path).effective_head().linear().matrix
            data = ((matrix / abs(matrix).max()).round(4) + 0.0).tobytes()
        found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def kill_one(cluster):
    """Kill a worker."""
    one = next(iter(cluster.client.cluster.workers.values()))
    os.kill(one.pid, signal.SIGKILL)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_as_without_one_though_a_worker_dies(name, call, cluster, tmp_path, monkeypatch):
    for place in ("alone", "there"):
        (tmp_path / place).mkdir()
    code, _ = call(COMMANDS[name], tmp_path / "alone")
    submit, killed = Cluster.submit, []

    def submit_and_kill(self, work, piece):
        future = submit(self, work, piece)
        if not killed:  # the work has begun
            kill_one(cluster)
            killed.append(piece)
        return future

    monkeypatch.setattr(Cluster, "submit", submit_and_kill)
    address = cluster.address
    there, said = call(COMMANDS[name], tmp_path / "there", "--cluster", address)
    assert killed
    assert there == code < 2, said
    assert contents(tmp_path / "there") == contents(tmp_path / "alone")
    assert f" at a time on {address}" in said
    assert "busy for" in said


def _full(limit):
    """Run on a worker: files can have so many bytes, as if there were no more room."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit if limit else most, most))


@pytest.mark.parametrize("name", ["describe", "features"])
def test_a_full_disk_is_one_line_and_the_next_call_goes_on(name, call, cluster, tmp_path):
    for place in ("alone", "there"):
        (tmp_path / place).mkdir()
    call(COMMANDS[name], tmp_path / "alone")
    more = ("--cluster", cluster.address)
    cluster.client.run(_full, 50_000)
    try:
        code, said = call(COMMANDS[name], tmp_path / "there", *more)
    finally:
        cluster.client.run(_full, 0)
    assert code == 2
    assert said.splitlines()[-1].startswith("error: ")
    assert "File too large" in said.splitlines()[-1]
    assert "Traceback" not in said
    code, said = call(COMMANDS[name], tmp_path / "there", *more)
    assert contents(tmp_path / "there") == contents(tmp_path / "alone")
