"""Cameras in files: COLMAP's own, JSON, and what is neither."""

import json

import pytest

from mkdesc.geometry import Camera, read_cameras


def test_colmaps_own_file_is_read(tmp_path):
    pycolmap = pytest.importorskip("pycolmap")
    model = pycolmap.Reconstruction()
    expected = [
        Camera("OPENCV", 640, 480, (500, 520, 322, 237, -0.2, 0.06, 0.003, -0.002)),
        Camera("SIMPLE_RADIAL", 800, 600, (700, 400, 300, 0.1)),
    ]
    for number, camera in enumerate(expected, 1):
        model.add_camera(
            pycolmap.Camera(
                model=camera.model,
                width=camera.width,
                height=camera.height,
                params=camera.params,
                camera_id=number,
            )
        )
    model.write_text(tmp_path)
    assert read_cameras(tmp_path / "cameras.txt") == expected


def test_json_holds_one_camera_or_several(tmp_path):
    one = {"model": "PINHOLE", "width": 640, "height": 480, "params": [500, 510, 320, 240]}
    file = tmp_path / "camera.json"
    file.write_text(json.dumps(one))
    assert read_cameras(file) == [Camera("PINHOLE", 640, 480, (500, 510, 320, 240))]
    file.write_text(json.dumps([one, one | {"width": 320}]))
    assert [camera.width for camera in read_cameras(file)] == [640, 320]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.txt", b"# nothing\n", r"c\.txt: no camera in it"),
        ("c.txt", b"1 PINHOLE 640 480\n", r"line 1: expected ID MODEL WIDTH HEIGHT"),
        ("c.txt", b"\n1 PINHOLE 640 x 1 1 1 1\n", r"line 2: expected numbers"),
        ("c.txt", b"1 PINHOLE 640 480 1 1 1\n", r"line 1: expected 4 parameters"),
        ("c.txt", b"1 PINHOLE 640 480 nan 1 1 1\n", r"line 1: expected a number > 0 for fx"),
        ("c.txt", b"\xff\xfe\x00", "not text in UTF-8"),
        ("c.json", b"[1]", r"camera 0: expected an object with model"),
        ("c.json", b"{", "not JSON"),
        ("c.json", b'{"model": "PINHOLE", "width": 1, "height": 1, "params": 3}', "as params"),
        ("c.json", b'{"model": [], "width": 1, "height": 1, "params": []}', "expected a model"),
        ("c.json", b'{"model": "PINHOLE", "width": "x", "height": 1, "params": [1]}', "a width"),
    ],
)
def test_what_is_no_file_of_cameras_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_cameras(tmp_path / name)
    assert "\n" not in str(error.value)
