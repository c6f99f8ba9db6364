import os
import zipfile

import cv2
import numpy as np
import pytest

from mkdesc.datasets import patch_files
from mkdesc.datasets.patch_files import open_patches


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(patch_files, "BLOCK", 3)


@pytest.fixture
def patches(rng):
    return rng.integers(0, 256, (7, 16, 16), np.uint8)


def read(path):
    source = open_patches(path)
    blocks = list(source.blocks())
    found = np.concatenate(blocks) if blocks else np.empty((0, source.size, source.size))
    assert found.shape == (source.count, source.size, source.size)
    return found


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, ">u2"])
def test_arrays(tmp_path, patches, dtype):
    array = patches.astype(dtype)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "b.npz", patches=array, labels=np.arange(7))
    np.savez_compressed(tmp_path / "c.npz", whatever=array[:, None])
    for name in ("a.npy", "b.npz", "c.npz"):
        np.testing.assert_array_equal(read(tmp_path / name), array)


def test_no_patches(tmp_path):
    np.save(tmp_path / "a.npy", np.empty((0, 16, 16), np.uint8))
    np.savez(tmp_path / "b.npz", np.empty((0, 16, 16), np.uint8))
    assert len(read(tmp_path / "a.npy")) == len(read(tmp_path / "b.npz")) == 0


def test_strips(tmp_path, patches):
    cv2.imwrite(str(tmp_path / "ref.png"), patches.reshape(-1, 16))
    np.testing.assert_array_equal(read(tmp_path / "ref.png"), patches)


def sheet_of(patches):
    return patches.reshape(16, 16, 64, 64).swapaxes(1, 2).reshape(1024, 1024)


def test_sheets(tmp_path, rng):
    patches = rng.integers(0, 256, (512, 64, 64), np.uint8)
    for i in range(2):
        sheet = sheet_of(patches[256 * i : 256 * (i + 1)])
        cv2.imwrite(str(tmp_path / f"patches{i:04}.bmp"), sheet)
    np.testing.assert_array_equal(read(tmp_path), patches)
    (tmp_path / "info.txt").write_text("5 0\n" * 300)
    np.testing.assert_array_equal(read(tmp_path), patches[:300])
    (tmp_path / "info.txt").write_text("5 0\n" * 600)
    with pytest.raises(ValueError, match=r"info.txt: 600 lines do not fit 2 sheets"):
        open_patches(tmp_path)


def test_real_sheets_have_as_many_patches_as_lines_of_info(shared):
    folder = shared / "data/phototourism/fox"
    lines = (folder / "info.txt").read_text().split("\n")
    assert len(read(folder)) == sum(map(bool, lines))


def write_text(path):
    path.write_text("not an array")


def write_object_array(path):
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)


def write_wrong_shape(path):
    np.save(path, np.zeros((4, 16, 17), np.uint8))


def write_truncated(path):
    np.save(path, np.zeros((40, 16, 16), np.uint8))
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    "write", [write_text, write_object_array, write_wrong_shape, write_truncated]
)
def test_bad_npy_files_are_refused_by_name(tmp_path, write):
    path = tmp_path / "bad.npy"
    write(path)
    with pytest.raises(ValueError, match=r"bad\.npy: ") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("bad.npy") == 1


def test_bad_npz_files_are_refused_by_name(tmp_path, patches):
    (tmp_path / "text.npz").write_text("not an archive")
    np.savez(tmp_path / "two.npz", a=patches, b=patches)
    np.savez(tmp_path / "objects.npz", patches=np.array([{}], dtype=object))
    np.savez(tmp_path / "fortran.npz", patches=np.asfortranarray(patches))
    for name, message in {
        "text": "not a zip file",
        "two": "expected an array named 'patches', found a, b",
        "objects": "pickles are never loaded",
        "fortran": "Fortran order",
    }.items():
        with pytest.raises(ValueError, match=rf"{name}\.npz: .*{message}"):
            read(tmp_path / f"{name}.npz")


def test_damaged_zarr_chunks_are_refused_by_name(tmp_path, patches):
    zarr = pytest.importorskip("zarr")
    for name, compressors in (("plain", None), ("small", "auto")):
        store = tmp_path / f"{name}.zarr"
        zarr.create_array(store=store, data=patches, compressors=compressors)
        (chunk,) = (store / "c").rglob("0/0/0")
        chunk.write_bytes(chunk.read_bytes()[:50])
        with pytest.raises(ValueError, match=rf"{name}\.zarr: ") as caught:
            read(store)
        assert "\n" not in str(caught.value)


def test_rows_of_other_lengths_are_refused_by_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = pa.array([[1.0] * 256, [1.0] * 255])
    parquet.write_table(pa.table({"patch": column}), tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match=r"odd\.parquet: patch: expected 256 numbers"):
        read(tmp_path / "odd.parquet")


def test_parquet_files_that_claim_more_rows_than_they_have(tmp_path, patches):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = pa.array([patch.tobytes() for patch in patches])
    parquet.write_table(pa.table({"patch": column}), tmp_path / "less.parquet")
    good = (tmp_path / "less.parquet").read_bytes()
    position = good.rindex(b"\x16\x0e")  # 7 rows of the group, in Thrift's compact form
    (tmp_path / "less.parquet").write_bytes(good[: position + 1] + b"\x00" + good[position + 2 :])
    with pytest.raises(ValueError, match=r"less\.parquet: "):
        read(tmp_path / "less.parquet")


def test_bad_images_are_refused_by_name(tmp_path, patches):
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("not an image")
    cv2.imwrite(str(tmp_path / "odd.png"), patches.reshape(-1, 16)[:-1])
    for name, message in {
        "empty": "empty",
        "text": "not an? ",
        "odd": r"multiple of its width, got 111 x 16",
    }.items():
        with pytest.raises(ValueError, match=rf"{name}\.png: .*{message}"):
            read(tmp_path / f"{name}.png")


def test_other_things_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_patches(tmp_path / "nothing")
    with pytest.raises(ValueError, match="no sheets of patches"):
        open_patches(tmp_path)
    (tmp_path / "patches.txt").write_text("1 2 3")
    with pytest.raises(ValueError, match=r"expected .npy, .npz, a folder"):
        open_patches(tmp_path / "patches.txt")


def header(shape):
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
@pytest.mark.parametrize("ending", [".npy", ".npz", ".png", ".parquet", ""])
def test_pipes_are_not_waited_for(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe{ending}")
    with pytest.raises(ValueError, match=r"pipe.*: is a device or a pipe, expected a file or"):
        open_patches(tmp_path / f"pipe{ending}")


@pytest.mark.parametrize(
    "content",
    [
        header("(-5, 32, 32)"),
        header("(9223372036854775807, 9223372036854775807, 9223372036854775807)"),
        header("(99999999999999999999999, 32, 32)"),
        header("(True, 32, 32)"),
        b"\x93NUMPY\x01\x00\x1e\x00{'descr': '|u1', 'fortran",
        b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr': '|u1', 'fortran_order': False",
    ],
)
def test_absurd_headers_are_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("patches.npy", content)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=r"a\.np[yz]: "):
            read(tmp_path / name)


def test_damaged_archives_are_refused(tmp_path, patches):
    np.savez_compressed(tmp_path / "a.npz", patches=patches)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.npz: "):
        read(tmp_path / "a.npz")


def test_a_file_that_shrinks_meanwhile_is_an_error(tmp_path):
    """And not the end of the process, as it would be for a mapped file."""
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((40_000, 16, 16), np.uint8))
    blocks = open_patches(path).blocks()
    next(blocks)
    with path.open("r+b") as file:
        file.truncate(100_000)
    with pytest.raises(ValueError, match=r"a\.npy: ends early, at patch"):
        list(blocks)


def test_arrays_in_the_order_of_fortran(tmp_path, patches):
    np.save(tmp_path / "a.npy", np.asfortranarray(patches))
    np.testing.assert_array_equal(read(tmp_path / "a.npy"), patches)


def test_headers_as_python_2_wrote_them(tmp_path):
    (tmp_path / "a.npy").write_bytes(header("(2L, 16L, 16L)") + bytes(2 * 16 * 16))
    assert read(tmp_path / "a.npy").shape == (2, 16, 16)
    fortran = header("(2L, 16L, 16L)").replace(b"False", b"True ")
    (tmp_path / "a.npy").write_bytes(fortran + bytes(2 * 16 * 16))
    assert read(tmp_path / "a.npy").shape == (2, 16, 16)


def test_claims_take_no_memory(tmp_path):
    large = header("(9999999999, 16, 16)").replace(b"'|u1'", b"'>f8'")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("patches.npy", large)
    with pytest.raises(ValueError, match=r"a\.npz: ends early"):
        read(tmp_path / "a.npz")
