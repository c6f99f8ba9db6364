"""Features in OpenCV's place: its scripts run, and find at least as many matches."""

import copy
import inspect
import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.images.cutting import cut_patches
from mkdesc.images.frames import frames_from_points


@pytest.fixture(scope="module")
def image():
    noise = np.random.default_rng(0).integers(0, 256, (220, 260)).astype(np.float32)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, 32).astype(np.uint8)


@pytest.fixture(scope="module")
def turned(image):
    matrix = cv2.getRotationMatrix2D((130, 110), 25, 0.9)
    return cv2.warpAffine(image, matrix, image.shape[::-1]), matrix


def share_right(keypoints, matches, matrix):
    a = np.array([keypoints[0][m.queryIdx].pt for m in matches])
    b = np.array([keypoints[1][m.trainIdx].pt for m in matches])
    return (np.linalg.norm(a @ matrix[:, :2].T + matrix[:, 2] - b, axis=1) < 3).mean()


@pytest.mark.parametrize("output", ["float32", "uint8"])
@pytest.mark.parametrize("model", ["photo", "paper", "paper-32px", "paper-64"])
def test_an_opencv_script_runs_unchanged(image, turned, model, output):
    features = mkdesc.Features(max_keypoints=300, model=model, output=output)
    found = [features.detectAndCompute(picture, None) for picture in (image, turned[0])]
    keypoints = [pair[0] for pair in found]
    matcher = cv2.BFMatcher(features.defaultNorm(), crossCheck=True)
    matches = matcher.match(found[0][1], found[1][1])
    assert len(matches) > 100
    assert share_right(keypoints, matches, turned[1]) > 0.9
    assert found[0][1].shape == (300, features.descriptorSize())
    assert found[0][1].dtype == output
    assert features.descriptorType() == (cv2.CV_32F if output == "float32" else cv2.CV_8U)


@pytest.mark.parametrize("own", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("asked", [None, "float32", "int8", "uint8"])
def test_the_output_asked_for_decides(image, own, asked):
    """Whatever the model was set to, as if its float descriptors had been rounded once."""
    plain = mkdesc.load_model("paper-64")
    mkd = mkdesc.MKD(**{**plain.get_params(deep=False), "output": own})
    features = mkdesc.Features(max_keypoints=100, model=mkd, output=asked)
    _, found = features.detectAndCompute(image)
    output = own if asked is None else asked
    assert (features.output, found.dtype) == (output, output)
    types = {"float32": cv2.CV_32F, "int8": cv2.CV_8S, "uint8": cv2.CV_8U}
    assert features.descriptorType() == types[output]
    assert features.defaultNorm() == cv2.NORM_L2
    exact = mkdesc.Features(max_keypoints=100, model=plain).detectAndCompute(image)[1]
    scale = {"float32": 1, "int8": 254, "uint8": 256}[output]
    largest = {"float32": 1.0, "int8": 127, "uint8": 127}[output]
    expected = (scale * exact).clip(-largest, largest) + (128 if output == "uint8" else 0)
    np.testing.assert_allclose(found, expected, atol=1e-6 if output == "float32" else 1)
    assert mkd.output == own  # the caller's is left alone


@pytest.mark.parametrize(
    ("detector", "side", "expected"),
    [("sift", None, 17.0), ("orb", None, 2.0), ("sift", 9, 9.0), (cv2.SIFT_create(), None, 17.0)],
)
def test_patches_are_cut_at_the_side_of_the_model(image, tmp_path, detector, side, expected):
    mkd = mkdesc.load_model("paper").set_params(side=17)
    mkdesc.save_model(mkd, tmp_path / "m.safetensors")
    for model in (mkd, tmp_path / "m.safetensors"):
        features = mkdesc.Features(detector, 20, model=model, side=side)
        assert features.sides == (expected,)
        keypoints, descriptors = features.detectAndCompute(image)
        patches = cut_patches(image, keypoints, 64, expected, interpolation="linear")
        np.testing.assert_array_equal(descriptors, mkdesc.describe(patches, "paper"))


def test_without_a_side_of_its_own_it_is_20():
    assert mkdesc.Features(model=mkdesc.load_model("paper-64").set_params(side=None)).sides == (
        20,
    )
    with pytest.raises(ValueError, match="side: expected a number > 0, got -3"):
        mkdesc.Features(model=mkdesc.load_model("paper-64").set_params(side=-3), side=5)


def test_flann_and_the_ratio_test(image, turned):
    features = mkdesc.Features(max_keypoints=300)
    found = [features.detectAndCompute(picture, None) for picture in (image, turned[0])]
    matcher = cv2.FlannBasedMatcher({"algorithm": 1, "trees": 5}, {"checks": 100})
    pairs = matcher.knnMatch(found[0][1], found[1][1], k=2)
    good = [a for a, b in pairs if a.distance < 0.8 * b.distance]
    assert len(good) > 60
    assert share_right([f[0] for f in found], good, turned[1]) > 0.95


def test_it_is_detection_cutting_and_describing(image):
    features = mkdesc.Features("sift", 50, "paper")
    keypoints, descriptors = features.detectAndCompute(image, None)
    strongest = sorted(
        cv2.SIFT_create(enable_precise_upscale=True).detect(image, None), key=lambda k: -k.response
    )[:50]
    assert [k.response for k in keypoints] == [k.response for k in strongest]
    expected = mkdesc.describe(
        cut_patches(image, keypoints, 64, features.sides, interpolation="linear"), "paper"
    )
    np.testing.assert_array_equal(descriptors, expected)
    found, same = features.extract(image)
    assert [tuple(point[:2]) for point in found.points.tolist()] == [k.pt for k in keypoints]
    np.testing.assert_array_equal(same, descriptors)
    kept, again = features.compute(image, keypoints[::-1])
    assert kept == keypoints[::-1]
    np.testing.assert_array_equal(again, descriptors[::-1])


def test_colour_depth_and_mask(image):
    features = mkdesc.Features(max_keypoints=40)
    expected = features.detectAndCompute(image, None)[1]
    for same in (np.dstack([image] * 3), image.astype(np.float32) / 255):
        np.testing.assert_allclose(features.detectAndCompute(same)[1], expected, atol=0.02)
    mask = np.zeros_like(image)
    mask[:, :90] = 1
    assert all(k.pt[0] < 91 for k in features.detect(image, mask))
    with pytest.raises(ValueError, match="mask: expected the image's shape"):
        features.detect(image, mask[1:])
    with pytest.raises(ValueError, match="floats must be from 0 to 1"):
        features.detect(image.astype(float))


def test_a_mask_of_truth_values_is_taken(image):
    features = mkdesc.Features(max_keypoints=40)
    mask = np.zeros(image.shape, bool)
    mask[:, :90] = True
    expected = features.detectAndCompute(image, mask.astype(np.uint8) * 255)[1]
    assert len(expected)
    np.testing.assert_array_equal(features.detectAndCompute(image, mask)[1], expected)


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (lambda shape: np.full(shape, 0.5), "float64"),
        (lambda shape: np.full(shape, np.nan, np.float32), "float32"),
        (lambda shape: np.full(shape, 256, np.int32), "int32"),
        (lambda shape: np.full(shape, 65280, np.uint16), "uint16"),
        (lambda shape: np.full(shape, None), "object"),
        (lambda shape: [[1], [1, 2]], "list"),
        (lambda shape: np.ma.masked_all(shape, np.uint8), "a masked array"),
    ],
)
@pytest.mark.parametrize("use", ["detect", "detectAndCompute", "extract"])
def test_masks_that_would_lose_their_meaning_are_refused(image, make, got, use):
    features = mkdesc.Features(max_keypoints=40)
    expected = rf"mask: expected bool or uint8 \(H, W\) = \(220, 260\), got {got}"
    with pytest.raises(ValueError, match=expected):
        getattr(features, use)(image, make(image.shape))


def test_upright_keeps_each_place_once(image):
    features = mkdesc.Features(upright=True)
    keypoints = features.detect(image)
    assert {k.angle for k in keypoints} == {0.0}
    assert len({(k.pt, k.size) for k in keypoints}) == len(keypoints)
    assert len(mkdesc.Features(upright=True, max_keypoints=20).detect(image)) == 20
    turned = [cv2.KeyPoint(*k.pt, k.size, 77) for k in keypoints[:9]]
    np.testing.assert_array_equal(
        features.compute(image, turned)[1], features.compute(image, keypoints[:9])[1]
    )


@pytest.mark.parametrize("detector", ["orb", "gftt", "fast"])
def test_corner_detectors_match_too(image, turned, detector):
    features = mkdesc.Features(detector, 300, upright=detector != "orb")
    shifted = np.roll(image, 7, axis=1)
    found = [features.detectAndCompute(picture) for picture in (image, shifted)]
    matches = cv2.BFMatcher(crossCheck=True).match(found[0][1], found[1][1])
    shift = np.array([[1, 0, 7], [0, 1, 0]], float)
    assert share_right([f[0] for f in found], matches, shift) > 0.85


@pytest.mark.parametrize("shape", [(1, 1), (100, 100), (3, 200)])
def test_images_without_keypoints(shape):
    features = mkdesc.Features()
    keypoints, descriptors = features.detectAndCompute(np.full(shape, 9, np.uint8), None)
    assert keypoints == ()
    assert descriptors.shape == (0, 128)


def test_bytes_keep_the_distances(image):
    descriptors, small = (
        mkdesc.Features(max_keypoints=200, output=output).detectAndCompute(image)[1]
        for output in ("float32", "uint8")
    )
    distances = np.linalg.norm(descriptors[:, None] - descriptors, axis=2)
    rounded = np.linalg.norm(small[:, None].astype(np.float32) - small, axis=2) / 256
    assert np.abs(rounded - distances).max() < 0.02


def test_points_and_frames_can_be_described(image):
    features = mkdesc.Features()
    points = np.array([[100, 90, 2.0, 30]])
    side = features.sides[0]  # sigma is 2
    c, s = side * np.cos(np.pi / 6), side * np.sin(np.pi / 6)
    frames = np.array([[[c, -s, 100], [s, c, 90]]])
    np.testing.assert_allclose(
        features.describe(image, points), features.describe(image, frames), atol=1e-5
    )


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"output": "int4"}, "output: expected one of float32, int8, uint8"),
        ({"side": 0}, "side: expected a number > 0"),
        ({"max_keypoints": 0}, "max_keypoints: expected"),
        ({"detector": "surf"}, "detector: expected one of learned"),
        ({"n_threads": 0}, "n_threads: expected"),
    ],
)
def test_bad_arguments_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        mkdesc.Features(**keywords)


def test_more_right_matches_than_rootsift_on_real_photographs(shared):
    right = {"RootSIFT": 0, "mkdesc": 0}
    made = {"RootSIFT": 0, "mkdesc": 0}
    features = mkdesc.Features(max_keypoints=500)
    sift = cv2.SIFT_create()
    for scene, k in (("graf", 3), ("wall", 4), ("trees", 3)):
        folder = shared / "data" / "sequences" / scene
        images = [cv2.imread(str(folder / f"{i}.png"), 0) for i in (1, k)]
        homography = np.loadtxt(folder / f"H_1_{k}")
        keypoints = [features.detect(picture) for picture in images]
        for name in right:
            if name == "mkdesc":
                a, b = (features.compute(*pair)[1] for pair in zip(images, keypoints, strict=True))
            else:
                a, b = (sift.compute(*pair)[1] for pair in zip(images, keypoints, strict=True))
                a, b = (np.sqrt(x / x.sum(axis=1, keepdims=True)) for x in (a, b))
            pairs = mkdesc.match_descriptors(a, b).pairs
            here, there = (
                np.array([p.pt for p in points])[index]
                for points, index in zip(keypoints, pairs.T, strict=True)
            )
            moved = cv2.perspectiveTransform(here[:, None], homography)[:, 0]
            right[name] += (np.linalg.norm(moved - there, axis=1) <= 3).sum()
            made[name] += len(pairs)
    assert right["mkdesc"] > 1.05 * right["RootSIFT"]
    assert right["mkdesc"] / made["mkdesc"] > right["RootSIFT"] / made["RootSIFT"]


def test_an_image_that_was_not_read():
    with pytest.raises(ValueError, match="image: expected an array, got None"):
        mkdesc.Features().detectAndCompute(None)


def test_a_number_is_how_many_keypoints(image):
    """As in cv2.SIFT_create(2000)."""
    assert len(mkdesc.Features(50).detect(image)) == 50
    with pytest.raises(ValueError, match="detector: expected a name"):
        mkdesc.Features(50, 60)
    with pytest.raises(ValueError, match="max_keypoints: expected"):
        mkdesc.Features(0)


@pytest.mark.parametrize(
    "options",
    [{}, {"max_keypoints": 77, "model": "paper-64", "output": "uint8"}, {"detector": "orb"}],
)
def test_copies_describe_alike(image, options):
    features = mkdesc.Features(**options)
    expected = features.detectAndCompute(image)[1]
    pasted = eval(repr(features), {"Features": mkdesc.Features})
    for twin in (pickle.loads(pickle.dumps(features)), copy.deepcopy(features), pasted):
        np.testing.assert_array_equal(twin.detectAndCompute(image)[1], expected)
        assert repr(twin) == repr(features)


def test_detectors_of_ones_own_copy_but_do_not_pickle(image):
    features = mkdesc.Features(cv2.SIFT_create(30))
    twin = copy.deepcopy(features)
    np.testing.assert_array_equal(
        twin.detectAndCompute(image)[1], features.detectAndCompute(image)[1]
    )
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(features)


def test_replaced_arguments_are_all_that_changes(image):
    features = mkdesc.Features(40, upright=True)
    other = features.replace(max_keypoints=20)
    assert repr(other) == "Features(max_keypoints=20, upright=True)"
    # What comes first is the detector or how many; others are OpenCV's, and refused.
    arguments = set(inspect.signature(mkdesc.Features).parameters)
    assert {*features.get_params(), "first", "others"} == arguments
    assert len(other.detect(image)) == 20


def test_a_model_of_two_squares_describes_both(look_at, image):
    """As if each was cut alone; the sides asked for, or the detector's, keep their ratio."""
    mkd = look_at(14, 40)
    features = mkdesc.Features("sift", 30, model=mkd)
    assert features.sides == (14, 40)
    keypoints, found = features.extract(image)
    squares = [
        cut_patches(image, keypoints.points, 24, side, interpolation="linear") for side in (14, 40)
    ]
    np.testing.assert_array_equal(found, mkd.transform(np.stack(squares, axis=1)))
    frames = frames_from_points(keypoints.points, 14)
    np.testing.assert_allclose(features.describe(image, frames), found, atol=0.02)
    assert features.descriptorSize() == 16
    assert mkdesc.Features("orb", model=mkd).sides == pytest.approx((2, 2 * 40 / 14))
    assert mkdesc.Features(model=mkd, side=(10, 20)).sides == (10, 20)
    assert pickle.loads(pickle.dumps(features)).sides == (14, 40)
    for side in (20, (10, 20, 30)):
        with pytest.raises(ValueError, match=r"side: expected 2 for this model, got"):
            mkdesc.Features(model=mkd, side=side)
    with pytest.raises(ValueError, match=r"side: expected 1 for this model, got \(10, 20\)"):
        mkdesc.Features(model="extended", side=(10, 20))


def test_two_squares_match_views_from_the_side(look_at, image):
    """Affine frames of such views keep the ratio of the squares."""
    tilted = cv2.warpAffine(image, np.array([[0.4, 0, 20], [0, 1, 10]]), image.shape[::-1])
    features = mkdesc.Features(model=look_at(12, 30, head=None))
    found = mkdesc.match_images(image, tilted, features, wide=True, geometry="homography")
    right = np.abs(found.points_a * [0.4, 1] + [20, 10] - found.points_b).max(axis=1) < 3
    assert right[found.inliers].sum() > 20
    assert right[found.inliers].mean() > 0.9


def test_bits_take_the_place_of_orbs(image, turned):
    """Signs of the numbers, packed as numpy does; an OpenCV script for ORB runs unchanged."""
    features = mkdesc.Features(max_keypoints=300, output="bits")
    assert features.defaultNorm() == cv2.NORM_HAMMING
    assert features.descriptorType() == cv2.CV_8U
    assert features.descriptorSize() == 16
    found = [features.detectAndCompute(picture, None) for picture in (image, turned[0])]
    numbers = mkdesc.Features(max_keypoints=300).detectAndCompute(image, None)[1]
    np.testing.assert_array_equal(np.unpackbits(found[0][1], axis=1), numbers > 0)
    matches = cv2.BFMatcher(features.defaultNorm(), crossCheck=True).match(
        found[0][1], found[1][1]
    )
    ours = mkdesc.match_descriptors(found[0][1], found[1][1], bits=True)
    assert [[m.queryIdx, m.trainIdx] for m in matches] == ours.pairs.tolist()
    assert len(matches) > 100
    assert share_right([pair[0] for pair in found], matches, turned[1]) > 0.8
    pair = mkdesc.match_images(image, turned[0], features)
    assert pair.verdict == "verified"
    known = pair.distances[~np.isnan(pair.distances)]
    assert len(known) > 50
    assert (known == known.round()).all()
    with pytest.raises(ValueError, match="features: bits are compared between two"):
        mkdesc.match_images(image, turned[0], features, wide=True)
    with pytest.raises(ValueError, match="output: expected a multiple of 8 numbers for bits"):
        mkdesc.Features(model=mkdesc.MKD("polar"), output="bits")


def test_keypoints_that_are_not_on_the_image_are_removed(image):
    """As OpenCV has it: those for which a descriptor cannot be computed are removed."""
    features = mkdesc.Features(detector="sift")
    height, width = image.shape
    on = [(40, 40), (0, 0), (width - 1, height - 1), (-0.5, 3), (width, height)]
    off = [(-30, 40), (width + 2, 5), (5, -1.5), (1e6, 1e6)]
    places = [place for pair in zip(on, off, strict=False) for place in pair] + [on[-1]]
    keypoints = [cv2.KeyPoint(float(x), float(y), 10.0, 0.0) for x, y in places]
    kept, rows = features.compute(image, keypoints)
    assert [one.pt for one in kept] == [tuple(map(float, place)) for place in on]
    alone = [features.compute(image, [one])[1][0] for one in kept]
    np.testing.assert_allclose(rows, alone, atol=1e-6)
    assert kept == tuple(keypoints[i] for i in (0, 2, 4, 6, 8))
    nothing, empty = features.compute(image, [keypoints[1]])
    assert nothing == ()
    assert empty.shape == (0, 128)


@pytest.mark.parametrize(
    "frames",
    [
        [[9, 9, 2, 0], [500, 9, 2, 0.0]],
        [[[5, 0, 9], [0, 5, 9]], [[5, 0, 9], [0, 5, -500.0]]],
        [
            [[5, 0, 90], [0, 5, 90], [0, 0, 10]],
            [[5, 0, 5000], [0, 5, 90], [0, 0, 10]],
        ],
    ],
    ids=["points", "affine", "projective"],
)
def test_frames_that_are_not_on_the_image_are_refused(image, frames):
    with pytest.raises(ValueError, match=r"^frames\[1\]: expected a place on the image"):
        mkdesc.Features().describe(image, frames)
    assert len(mkdesc.Features().describe(image, frames[:1])) == 1


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_no_image(kind):
    """The message says how to read it."""
    features, points = mkdesc.Features(10), np.array([[4, 4, 1, 0]])
    calls = [
        lambda path: features.detectAndCompute(path, None),
        features.detect,
        features.extract,
        lambda path: features.compute(path, points),
        lambda path: features.describe(path, points),
        lambda path: cut_patches(path, frames_from_points(points, 12), 32),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"got 'a.jpg'; to read a file, use .*read_gray\("):
            call(kind("a.jpg"))
    with pytest.raises(ValueError, match=r"patches: expected an array, got 'a.npy'; read the"):
        mkdesc.describe(kind("a.npy"))
