import numpy as np
import pytest

from mkdesc.datasets.text_files import line_of_row, read_columns, read_records


def write(tmp_path, text):
    file = tmp_path / "table.txt"
    file.write_text(text)
    return file


def test_columns_and_blank_lines(tmp_path):
    file = write(tmp_path, "1 x 2\n\n3 y 4\n")
    assert read_columns(file, [0, 2]).tolist() == [[1, 2], [3, 4]]
    assert line_of_row(file, 1) == 3
    assert read_columns(write(tmp_path, "1 2.5\n"), [0, 1], float).tolist() == [[1.0, 2.5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3\n", r"line 2: expected at least 2 columns, got 1: '3'"),
        ("1 2\n\n3 x\n", r"line 3: expected an integer in column 2, got 'x'"),
        ("1 2.5\n", r"line 1: expected an integer in column 2, got '2.5'"),
        ("", "the file holds no lines"),
        ("\n\n", "the file holds no lines"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_columns(write(tmp_path, text), [0, 1])


def test_binary_rubbish_and_missing_file(tmp_path):
    file = tmp_path / "rubbish.txt"
    file.write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match=r"rubbish\.txt, line 1"):
        read_columns(file, [0])
    with pytest.raises(ValueError, match="no such file"):
        read_columns(tmp_path / "none.txt", [0])


def test_records(tmp_path):
    file = write(tmp_path, "s,idx\nv_a,3\ni_b,40\n")
    rows = read_records(file, ["s", "idx"], [str, int])
    assert rows["s"].tolist() == [b"v_a", b"i_b"]
    assert rows["idx"].dtype == np.int64
    with pytest.raises(ValueError, match=r"line 1: expected the header s,i, got 's,idx'"):
        read_records(file, ["s", "i"], [str, int])
    with pytest.raises(ValueError, match=r"line 2: expected an integer in column 2, got 'x'"):
        read_records(write(tmp_path, "s,idx\nv_a,x\n"), ["s", "idx"], [str, int])
