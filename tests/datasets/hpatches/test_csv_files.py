import numpy as np
import pytest

from mkdesc.datasets.hpatches.csv_files import read_csv, write_csv


def test_round_trip_is_exact(tmp_path, rng):
    values = (rng.normal(size=(7, 5)) * 10.0 ** rng.integers(-8, 8, (7, 5))).astype(np.float32)
    write_csv(tmp_path, "v_wall", "e1", values)
    np.testing.assert_array_equal(read_csv(tmp_path, "v_wall", "e1"), values)


def test_semicolons(tmp_path):
    (tmp_path / "v_wall").mkdir()
    (tmp_path / "v_wall" / "ref.csv").write_text("1;2.5\n3;4\n")
    assert read_csv(tmp_path, "v_wall", "ref").tolist() == [[1, 2.5], [3, 4]]


@pytest.mark.parametrize("text", ["", "1,2\n3\n", "1,x\n"])
def test_bad_files(tmp_path, text):
    (tmp_path / "v_wall").mkdir()
    (tmp_path / "v_wall" / "ref.csv").write_text(text)
    with pytest.raises(ValueError, match=r"ref\.csv: expected rows of numbers"):
        read_csv(tmp_path, "v_wall", "ref")


def test_missing_and_wrong_shape(tmp_path):
    with pytest.raises(ValueError, match=r"e1\.csv: no such file"):
        read_csv(tmp_path, "v_wall", "e1")
    with pytest.raises(ValueError, match=r"expected shape \(N, D\)"):
        write_csv(tmp_path, "v_wall", "e1", np.zeros(3))
