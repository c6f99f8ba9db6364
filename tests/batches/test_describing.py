"""Files of patches to files of descriptors: all formats, parts, resuming, clusters."""

import json
import os
import shutil
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import mkdesc
from mkdesc._support import workfolder
from mkdesc.batches import describe_file, describing
from mkdesc.batches.outputs import Npy
from mkdesc.datasets.patch_files import open_patches
from mkdesc.models import load_model, save_model


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(describing, "ROWS", 10)


@pytest.fixture
def patches(rng):
    return rng.integers(0, 256, (33, 64, 64), np.uint8)


@pytest.fixture
def file(tmp_path, patches):
    np.save(tmp_path / "in.npy", patches)
    return tmp_path / "in.npy"


def read(path):
    """As the readers of others see it."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".zarr":
        return pytest.importorskip("zarr").open_group(path, mode="r")["descriptors"][:]
    table = pytest.importorskip("pyarrow.parquet").read_table(path)
    assert table["row"].to_pylist() == list(range(len(table)))
    return np.array(table["descriptor"].to_pylist(), np.float32)


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_every_format_holds_what_the_model_says(file, patches, suffix):
    pytest.importorskip({".zarr": "zarr", ".parquet": "pyarrow"}.get(suffix, "numpy"))
    out = file.with_suffix(f".out{suffix}")
    assert describe_file(file, out) == (33, 128)
    np.testing.assert_array_equal(read(out), mkdesc.describe(patches))
    left = {f"{out.name}.mkdesc.json"} if suffix != ".npy" else set()
    assert {path.name for path in file.parent.iterdir()} == {file.name, out.name} | left


@pytest.mark.parametrize(("suffix", "module"), [(".zarr", "zarr"), (".parquet", "pyarrow")])
def test_a_package_that_is_missing_is_named_before_the_work(file, monkeypatch, suffix, module):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("mkdesc.batches.describing.open_patches", None)
    with pytest.raises(ImportError, match=rf"needs? {module}.*mkdesc\[cluster\]"):
        describe_file(file, file.with_suffix(f".out{suffix}"))
    assert [*file.parent.iterdir()] == [file]


def _by_xarray(location):
    xarray = pytest.importorskip("xarray")
    return xarray.open_zarr(location, consolidated=False)["descriptors"].values


def _by_dask_array(location):
    array = pytest.importorskip("dask.array").from_zarr(location, component="descriptors")
    return array.compute()


def _by_pandas(location):
    table = pytest.importorskip("pandas").read_parquet(location)
    return np.stack(table["descriptor"].to_numpy())


def _by_polars(location):
    table = pytest.importorskip("polars").read_parquet(location)
    return table["descriptor"].to_numpy()


@pytest.mark.parametrize("reader", [_by_xarray, _by_dask_array, _by_pandas, _by_polars])
def test_others_read_it_without_a_warning(file, patches, reader):
    pytest.importorskip("zarr")
    pytest.importorskip("pyarrow")
    suffix = ".zarr" if reader in (_by_xarray, _by_dask_array) else ".parquet"
    out = file.with_suffix(f".out{suffix}")
    describe_file(file, out)
    np.testing.assert_array_equal(reader(str(out)), mkdesc.describe(patches))


@pytest.mark.parametrize("kind", [".npz", ".zarr", "group.zarr", "list.parquet", "binary.parquet"])
def test_every_format_is_read(tmp_path, patches, kind):
    source = tmp_path / f"in{kind}"
    if kind == ".npz":
        np.savez_compressed(source, patches=patches)
    elif kind == ".zarr":
        pytest.importorskip("zarr").save_array(source, patches)
    elif kind == "group.zarr":
        pytest.importorskip("zarr").save_group(source, anything=patches)
    else:
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        flat = patches.reshape(33, -1)
        rows = [row.tobytes() for row in flat] if kind.startswith("b") else flat.tolist()
        kind_ = pa.binary() if kind.startswith("b") else pa.list_(pa.uint8())
        source.mkdir()
        for part, some in enumerate([rows[:20], rows[20:]]):
            parquet.write_table(
                pa.table({"patch": pa.array(some, kind_)}), source / f"{part}.parquet"
            )
    assert describe_file(source, tmp_path / "out.npy", raw="polar") == (33, 175)
    expected = mkdesc.MKD("polar").transform(patches)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@pytest.mark.parametrize("names", [[], ["a", "b"]])
def test_a_group_of_many_arrays_is_refused(tmp_path, patches, names):
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(tmp_path / "in.zarr")
    for name in names:
        group.create_array(name, data=patches)
    with pytest.raises(ValueError, match=f"one array; it has {', '.join(names) or 'none'}"):
        describe_file(tmp_path / "in.zarr", tmp_path / "out.npy")


def test_addresses(patches, file):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/here/in.npy", "wb") as stream:
        np.save(stream, patches)
    try:
        # (All who open a file of this store share one position in it: one at a time.)
        made = describe_file("memory://here/in.npy", "memory://here/out.parquet", workers=1)
        assert made == (33, 128)
        names = {path.rpartition("/")[2] for path in memory.ls("/here/out.parquet", detail=False)}
        assert names == {f"part-{n:06d}.parquet" for n in range(4)}
        about = json.loads(memory.cat("/here/out.parquet.mkdesc.json"))
        assert about["complete"]
        assert about["settings"]["shape"] == [33, 128]
        with pytest.raises(ValueError, match="at an address one of the latter two"):
            describe_file(file, "memory://here/out.npy")
    finally:
        memory.rm("/here", recursive=True)


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_only_what_is_missing_is_described(file, patches, suffix, monkeypatch):
    pytest.importorskip({".zarr": "zarr", ".parquet": "pyarrow"}.get(suffix, "numpy"))
    out = file.with_suffix(f".out{suffix}")
    describe = describing._describe
    seen = []

    def twice(*fixed):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(fixed[-1][0])
        return describe(*fixed)

    monkeypatch.setattr(describing, "_describe", twice)
    with pytest.raises(KeyboardInterrupt):
        describe_file(file, out, workers=1)

    def told_of(*fixed):
        seen.append(fixed[-1][0])
        return describe(*fixed)

    monkeypatch.setattr(describing, "_describe", told_of)
    told = []
    describe_file(file, out, workers=1, progress=lambda *news: told.append(news))
    assert seen == [0, 1, 2, 3]
    assert told[0] == ("describing", 20, 33)
    assert told[-1] == ("describing", 33, 33)
    np.testing.assert_array_equal(read(out), mkdesc.describe(patches))


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("harm", [lambda good: good[:60], lambda good: good.replace(b"}", b" ")])
def test_damaged_parts_are_named(file, harm, monkeypatch):
    out = file.with_suffix(".out.npy")
    with monkeypatch.context() as patch:
        patch.setattr(Npy, "finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            describe_file(file, out)
    part = out.with_suffix(".npy.parts") / "part-000001.npy"
    part.write_bytes(harm(part.read_bytes()))
    with pytest.raises(ValueError, match=r"\.parts/part-000001\.npy: damaged; remove it"):
        describe_file(file, out)
    assert not out.exists()


def test_parts_of_other_settings_are_not_mixed(file, monkeypatch):
    out = file.with_suffix(".out.parquet")
    pytest.importorskip("pyarrow")
    describe_file(file, out)
    with pytest.raises(ValueError, match=r"other settings \(model extended instead of paper-64, "):
        describe_file(file, out, model="paper-64")
    manifest = out.with_name(f"{out.name}.mkdesc.json")
    manifest.unlink()
    with pytest.raises(ValueError, match="has files that mkdesc did not write"):
        describe_file(file, out)


def test_what_was_only_begun_is_begun_again(file, patches, monkeypatch):
    zarr = pytest.importorskip("zarr")
    out = file.with_suffix(".out.zarr")
    create = zarr.Group.create_array
    monkeypatch.setattr(zarr.Group, "create_array", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        describe_file(file, out)
    assert (out / "zarr.json").exists()
    monkeypatch.setattr(zarr.Group, "create_array", create)
    describe_file(file, out)
    np.testing.assert_array_equal(read(out), mkdesc.describe(patches))
    shutil.rmtree(out)  # by someone who has not seen the manifest beside it
    describe_file(file, out, model="paper-64")
    np.testing.assert_array_equal(read(out), mkdesc.describe(patches, "paper-64"))


def test_bad_patches_are_named_and_the_others_kept(tmp_path, patches):
    bad = patches / np.float32(255)
    bad[15, 3, 3] = np.nan
    np.save(tmp_path / "in.npy", bad)
    with pytest.raises(ValueError, match=r"1 of 4 parts .*: patches\[15\] has NaN or infinity"):
        describe_file(tmp_path / "in.npy", tmp_path / "out.npy")
    assert len(list(tmp_path.glob("out.npy.parts/part-*"))) == 3
    assert not (tmp_path / "out.npy").exists()


def test_a_file_that_shrinks_is_an_error(file):
    source = open_patches(file)
    file.write_bytes(file.read_bytes()[:60_000])
    with pytest.raises(ValueError, match="ends early, at patch 14"):
        source.read(10, 20)


def _dies_once(marker, *fixed):
    if fixed[-1][0] == 2 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return describing._describe(*fixed)


def test_a_cluster_writes_the_same_bytes_even_if_a_worker_is_killed(file, cluster, monkeypatch):
    from functools import partial

    describe_file(file, file.with_name("alone.npy"))
    real = describing._describe
    describe_file(file, file.with_name("together.npy"), workers=cluster)
    marker = file.with_name("marker")
    monkeypatch.setattr(describing, "_describe", partial(_dies_once, marker))
    describe_file(file, file.with_name("killed.npy"), workers=cluster)
    monkeypatch.setattr(describing, "_describe", real)
    assert marker.exists()
    expected = file.with_name("alone.npy").read_bytes()
    assert file.with_name("together.npy").read_bytes() == expected
    assert file.with_name("killed.npy").read_bytes() == expected


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_patches_that_were_changed_are_not_taken_for_the_old_ones(tmp_path, patches, suffix):
    zarr, pa = pytest.importorskip("zarr"), pytest.importorskip("pyarrow")
    source, out = tmp_path / f"in{suffix}", tmp_path / "out.zarr"

    def write(array):
        if suffix == ".npy":
            np.save(source, array)
        elif suffix == ".zarr":
            zarr.create_array(source, data=array, overwrite=True)
        else:
            source.mkdir(exist_ok=True)
            rows = pa.array([row.tobytes() for row in array], pa.binary())
            pa.parquet.write_table(pa.table({"patch": rows}), source / "0.parquet")

    pytest.importorskip("pyarrow.parquet")
    write(patches)
    describe_file(source, out)
    write(patches[::-1].copy())
    with pytest.raises(ValueError, match=r"inputs have changed \(patches\)"):
        describe_file(source, out)


@pytest.mark.parametrize("how", ["newer", "older", "same size and time"])
@pytest.mark.parametrize("what", ["patches", "model"])
def test_files_that_were_replaced_are_not_taken_for_the_old_ones(
    file, patches, tmp_path, replace_file, what, how
):
    pytest.importorskip("zarr")
    model, other = tmp_path / "mine.safetensors", tmp_path / "other.safetensors"
    for who in (model, other):
        save_model(load_model("paper-64"), who, {"who": who.name[:4]})
    describe_file(file, tmp_path / "out.zarr", model=str(model))
    if what == "patches":
        np.save(tmp_path / "other.npy", patches[::-1])
        replace_file(file, tmp_path / "other.npy", how)
    else:
        replace_file(model, other, how)
    with pytest.raises(ValueError, match=rf"inputs have changed \({what}\)"):
        describe_file(file, tmp_path / "out.zarr", model=str(model))


def test_patches_that_were_touched_or_copied_are_the_same(file, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    describe_file(file, tmp_path / "out.zarr")
    copy = shutil.copy(file, tmp_path / "copy.npy")
    about = tmp_path / "out.zarr.mkdesc.json"
    first = json.loads(about.read_text())
    describe_file(copy, tmp_path / "out.zarr")
    second = json.loads(about.read_text())
    assert second["complete"]
    assert second["inputs"] != first["inputs"]
    monkeypatch.setattr(workfolder, "_content", None)  # what was read once is not read again
    describe_file(copy, tmp_path / "out.zarr")


def test_descriptors_of_another_version_are_not_mixed(file, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    describe_file(file, tmp_path / "out.zarr")
    monkeypatch.setattr(workfolder, "__version__", "0.0.9")
    with pytest.raises(ValueError, match=r"other settings \(mkdesc .* instead of 0\.0\.9\)"):
        describe_file(file, tmp_path / "out.zarr")


def test_workers_that_live_on_do_not_keep_old_files(file, patches, tmp_path):
    model = tmp_path / "mine.safetensors"
    bundled = Path(mkdesc.models.__file__).parent
    with ProcessPoolExecutor(1, get_context("spawn")) as workers:
        for name in ("paper-64", "polar"):
            shutil.copy(bundled / f"{name}.safetensors", model)
            np.save(file, patches)
            describe_file(file, tmp_path / f"{name}.npy", model=str(model), workers=workers)
            expected = mkdesc.describe(patches, name)
            np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), expected)
            patches = patches[:20]


def test_patches_that_vanish_are_missed(tmp_path, patches):
    zarr = pytest.importorskip("zarr")
    source = tmp_path / "in.zarr"
    zarr.create_array(source, data=patches, chunks=(10, 64, 64))

    def vanish(*_):
        shutil.rmtree(source / "c", ignore_errors=True)

    with (
        pytest.warns(UserWarning, match="4 of 4 chunks are not there"),
        pytest.raises(ValueError, match=r"in\.zarr: changed while it was read"),
    ):
        describe_file(source, tmp_path / "out.npy", workers=1, progress=vanish)
    assert not (tmp_path / "out.npy").exists()
    zarr.create_array(source, data=patches, chunks=(10, 64, 64), overwrite=True)
    shutil.rmtree(source / "c" / "2")
    with pytest.warns(UserWarning, match="1 of 4 chunks are not there, and are read as 0"):
        open_patches(source)


def test_what_a_kill_left_of_the_manifest_is_no_file_of_others(file, tmp_path):
    parts = tmp_path / "out.npy.parts"
    parts.mkdir()
    (parts / ".mkdesc.json.0123abcd.partial").write_text("{")
    assert describe_file(file, tmp_path / "out.npy") == (33, 128)
    assert not parts.exists()


def test_a_kill_while_parts_are_removed_leaves_nothing_unknown(file, tmp_path, monkeypatch):
    remove, removed = workfolder.remove_location, []

    def twice(location):
        if len(removed) == 2:
            raise KeyboardInterrupt
        removed.append(location)
        remove(location)

    monkeypatch.setattr(workfolder, "remove_location", twice)
    with pytest.raises(KeyboardInterrupt):
        describe_file(file, tmp_path / "out.npy")
    monkeypatch.setattr(workfolder, "remove_location", remove)
    assert describe_file(file, tmp_path / "out.npy") == (33, 128)
    assert {path.name for path in tmp_path.iterdir()} == {"in.npy", "out.npy"}


def test_only_one_at_a_time(file, tmp_path):
    def again(*_):
        describe_file(file, tmp_path / "out.npy", workers=1)

    with pytest.raises(ValueError, match="another process is writing here"):
        describe_file(file, tmp_path / "out.npy", workers=1, progress=again)


def test_memory_of_this_process_is_no_place_for_others(file):
    pytest.importorskip("fsspec")
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as others,
        pytest.raises(ValueError, match="cannot read"),
    ):
        describe_file(file, "memory://out.zarr", workers=others)


@pytest.mark.parametrize(
    "mine",
    [
        np.full((10, 128), 99, np.float32),
        np.full((10, 128), 0.1, np.float32),
        np.full((3, 128), np.nan, np.float32),
        np.asfortranarray(np.eye(4, dtype=np.float32)),
        np.eye(3, dtype=np.float32)[np.arange(500) % 3],  # unit normals
        np.eye(128, dtype=np.float32),  # labels, or descriptors of another program
        np.concatenate([np.zeros((100, 4)), np.full((4900, 4), 7)]).astype(np.float32),
        np.float32(3),
        np.array(["my", "words"]),
        np.zeros(3, [("x", "f4")]),
    ],
)
def test_arrays_of_other_things_are_not_replaced(tmp_path, rng, mine):
    """Even if they have the type, the shape and the lengths of descriptors."""
    patches, there = tmp_path / "in.npy", tmp_path / "mine.npy"
    np.save(patches, rng.integers(0, 256, (4, 64, 64), np.uint8))
    np.save(there, mine)
    before = there.read_bytes()
    with pytest.raises(FileExistsError, match=r"mine.npy: is there already, and is another kind"):
        describe_file(patches, there)
    assert there.read_bytes() == before
    describe_file(patches, there, overwrite=True)
    describe_file(patches, there)  # its own may be


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bits"])
def test_descriptors_are_replaced_unless_somebody_saved_them_again(file, dtype):
    out = file.with_name("out.npy")
    for _ in range(2):
        describe_file(file, out, dtype=dtype)
    mapped = np.load(out, mmap_mode="r")
    assert (len(mapped), mapped.offset % 64) == (33, 0)  # as the format asks
    np.save(out, np.load(out))
    with pytest.raises(FileExistsError, match=r"out\.npy: is there already, and is another kind"):
        describe_file(file, out, dtype=dtype)


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
@pytest.mark.parametrize("link", [False, True])
def test_outputs_in_an_input_that_is_a_folder_are_refused_at_once(
    tmp_path, patches, suffix, link, monkeypatch
):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(store=tmp_path / "in.zarr", data=patches, chunks=(10, 64, 64))
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    place = tmp_path / "in.zarr"
    if link:
        (tmp_path / "link").symlink_to("in.zarr/c")
        place = tmp_path / "link"
    monkeypatch.setattr(describing, "open_model", None)  # whatever asks for it fails
    with pytest.raises(ValueError, match=rf"out{suffix} lies in the input .*in\.zarr"):
        describe_file(tmp_path / "in.zarr", place / f"out{suffix}")
    assert {file: file.stat().st_mtime_ns for file in before} == before


@pytest.mark.parametrize("suffix", [".zarr", ".parquet"])
def test_inputs_in_an_output_are_refused_at_once(tmp_path, file, suffix):
    out = tmp_path / f"out{suffix}"
    describe_file(file, out)
    inner = out / "in.npy"
    file.rename(inner)
    with pytest.raises(ValueError, match=rf"out{suffix} has the input .*in\.npy in it"):
        describe_file(inner, out)


@pytest.mark.parametrize("suffix", [".zarr", ".parquet"])
def test_files_where_a_folder_is_to_be_are_named(file, suffix):
    out = file.with_suffix(suffix)
    out.write_text("Dear diary")
    with pytest.raises(NotADirectoryError, match=rf"in{suffix}: is a file, expected a folder"):
        describe_file(file, out)
    assert out.read_text() == "Dear diary"


def test_a_file_by_the_name_of_the_record_stays(file):
    record = file.with_name("out.zarr.mkdesc.json")
    record.write_text("Dear diary")
    with pytest.raises(ValueError, match=r"not written by mkdesc"):
        describe_file(file, file.with_name("out.zarr"))
    assert record.read_text() == "Dear diary"


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_a_model_that_is_replaced_meanwhile_is_noticed(file, suffix, monkeypatch):
    model, out = file.with_name("m.safetensors"), file.with_name(f"out{suffix}")
    save_model(load_model("extended"), model)
    write = describing.FORMATS[suffix].write

    def replace_model(self, part, rows):
        save_model(load_model("extended-64"), model)
        write(self, part, rows)

    monkeypatch.setattr(describing.FORMATS[suffix], "write", replace_model)
    with pytest.raises(ValueError, match=r"m\.safetensors: changed while it was read; remove "):
        describe_file(file, out, model=str(model), workers=1)
    assert suffix == ".zarr" or not out.exists()


def test_files_of_others_among_the_parts_stay(file, monkeypatch):
    out = file.with_name("out.npy")
    notes = file.with_name("out.npy.parts") / "notes.txt"
    write = Npy.write

    def write_once(self, part, rows):
        write(self, part, rows)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Npy, "write", write_once)
        with pytest.raises(KeyboardInterrupt):
            describe_file(file, out, workers=1)
    notes.write_text("mine")
    assert describe_file(file, out) == (33, 128)
    assert notes.read_text() == "mine"
    assert [one.name for one in notes.parent.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("suffix", [".zarr", ".parquet"])
def test_files_of_others_in_an_output_that_could_not_be_written_stay(tmp_path, suffix):
    pytest.importorskip({".zarr": "zarr", ".parquet": "pyarrow"}[suffix])
    np.save(tmp_path / "in.npy", np.full((5, 64, 64), np.nan))
    out, begin = tmp_path / f"out{suffix}", describing.FORMATS[suffix].begin

    def begin_with_notes(self):
        begin(self)
        out.mkdir(exist_ok=True)
        (out / "notes.txt").write_text("mine")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(describing.FORMATS[suffix], "begin", begin_with_notes)
        with pytest.raises(ValueError, match="has NaN"):
            describe_file(tmp_path / "in.npy", out)
    assert {one.name for one in tmp_path.rglob("*")} == {"in.npy", out.name, "notes.txt"}


def test_only_what_zarr_left_of_its_own_files_is_removed(file, tmp_path):
    pytest.importorskip("zarr")
    out = tmp_path / "out.zarr"
    describe_file(file, out)
    half = f"{'0123abcd' * 4}.partial"
    left = [out / name for name in (f"zarr.{half}", f"descriptors/c/1/0.{half}")]
    mine = [out / name for name in ("a.partial", "mine/b.partial", f"mine/0.{half}")]
    mine += [out / "descriptors" / "c" / "1" / "c.partial"]
    (out / "mine").mkdir()
    (out / "d.partial").mkdir()
    for one in left + mine:
        one.write_text("half of something")
    describe_file(file, out)
    assert [one for one in left if one.exists()] == []
    assert [one.read_text() for one in mine] == ["half of something"] * len(mine)
    assert (out / "d.partial").is_dir()
