"""Errors name options and arguments as they were typed, whatever functions call them."""

import cv2
import numpy as np
import pytest


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photo") / "a.png"
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (60, 60), np.uint8))
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("match {photo} nope.jpg", "error: B: no such file: nope.jpg"),
        ("match nope.jpg {photo}", "error: A: no such file: nope.jpg"),
        ("match {photo} {photo} --keypoints 0", "error: --keypoints: expected"),
        ("match {photo} {photo} --detector no", "error: --detector: expected one of"),
        ("match {photo} {photo} --focal 0 0", "error: --focal: expected"),
        ("match {photo} {photo} --dtype int16", "error: --dtype: expected"),
        ("match {photo} {photo} --threshold -1", "error: --threshold: expected"),
        ("match {photo} {photo} --geometry flat", "error: --geometry: expected"),
        ("features {photo} -o f --format xml", "error: --format: expected one of"),
        ("sfm {folder} -o out --cameras two", "error: --cameras: expected"),
        ("learn photos {folder} -o m.safetensors --keypoints 0", "error: --keypoints: expected"),
        ("learn photos {folder} -o m.safetensors --views easy", "error: --views: expected"),
        ("learn photos {folder} -o m.safetensors --dims 0", "error: --dims: expected"),
        ("learn keypoints {folder} -o m.safetensors --limit 0", "error: --limit: expected"),
        ("learn descriptor {folder} -o m.safetensors --limit 0", "error: --limit: expected"),
        ("learn descriptor {folder} -o m.safetensors --head deep", "error: --head: expected"),
        ("learn descriptor {folder} -o m.safetensors --steps 0", "error: --steps: expected"),
    ],
)
def test_errors_name_what_was_typed(words, said, photo, run, tmp_path):
    ended = run(*words.format(photo=photo, folder=photo.parent).split(), cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(said), ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""
