"""The ratio of a model: beside OpenCV's matcher, on views whose homography is known."""

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.features import Features
from mkdesc.learn.ratio import best_ratio, calibrated_ratio, random_view
from mkdesc.models import load_model, model_ratio, read_card, save_model


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Blobs of several sizes, some of them again and again, so that matches are not all right."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for number in range(2):
        image = np.zeros((240, 320), np.float32)
        for sigma in (1.5, 3, 6):
            noise = cv2.GaussianBlur(rng.normal(size=(240, 320)), (0, 0), sigma)
            image += (noise / noise.std()).astype(np.float32)
        image[:, 160:] = np.tile(image[:40, :40], (6, 4))
        image = cv2.normalize(image, None, 0, 255, cv2.NORM_MINMAX)
        cv2.imwrite(str(folder / f"{number}.png"), image)
    return folder


def test_the_ratio_is_the_best_that_opencvs_matcher_finds(photos):
    """All ratios by hand: cv2.BFMatcher's two nearest, mutual, and the truth of the views."""
    features = Features(max_keypoints=1000)
    ratios, right = [], []
    for done, file in enumerate(sorted(photos.iterdir()), 1):
        gray = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
        view, homography = random_view(gray, np.random.default_rng((0, done)))
        (a, here), (b, there) = features.extract(gray), features.extract(view)
        matcher = cv2.BFMatcher(cv2.NORM_L2)
        back = {match.queryIdx: match.trainIdx for match in matcher.match(there, here)}
        for first, second in matcher.knnMatch(here, there, 2):
            if back[first.trainIdx] != first.queryIdx:
                continue
            where = cv2.perspectiveTransform(a.points[None, first.queryIdx, None, :2], homography)
            off = np.linalg.norm(where.ravel() - b.points[first.trainIdx, :2])
            ratios.append(first.distance / second.distance)
            right.append(off <= 3)
    ratios, right = np.array(ratios), np.array(right)
    scores = {}
    for percent in range(1, 101):
        kept = ratios < percent / 100
        precision = right[kept].mean() if kept.any() else 0
        recall = right[kept].sum() / right.sum()
        scores[percent] = 2 * precision * recall / max(precision + recall, 1e-9)
    found = calibrated_ratio("photo", photos)
    assert found.matches == len(ratios)
    assert 0.5 < found.ratio < 1
    assert scores[round(100 * found.ratio)] == pytest.approx(max(scores.values()), abs=1e-3)


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    """400 right ones below 0.5; 300 right and 100 wrong in 0.5 to 0.8; 200 wrong beyond."""
    ratios = np.r_[np.full(400, 0.4), np.full(300, 0.7), np.full(100, 0.75), np.full(200, 0.9)]
    right = np.arange(1000) < 700
    found = best_ratio(ratios, right)
    assert (found.ratio, found.precision, found.recall) == (0.71, 1.0, 1.0)
    right[400:700] = np.arange(300) < 150
    found = best_ratio(ratios, right)  # up to .4: 1 and 400 / 550; up to .7: 550 / 700 and 1
    assert found.precision == pytest.approx(550 / 700)
    assert found.recall == 1


def test_too_little_gives_nothing(tmp_path):
    cv2.imwrite(str(tmp_path / "gray.png"), np.full((100, 120), 128, np.uint8))
    (tmp_path / "broken.jpg").write_bytes(b"no photograph")
    assert calibrated_ratio("photo", tmp_path) is None
    assert best_ratio(np.full(99, 0.5), np.ones(99, np.bool_)) is None


def test_auto_is_the_ratio_of_the_model(tmp_path):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(300, 128)).astype(np.float32)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = a + rng.normal(scale=0.06, size=a.shape).astype(np.float32)
    by_number = mkdesc.match_descriptors(a, b, ratio=load_model("photo").ratio)
    np.testing.assert_array_equal(
        mkdesc.match_descriptors(a, b, ratio="auto").pairs, by_number.pairs
    )
    path = tmp_path / "strict.safetensors"
    save_model(load_model("photo").set_params(ratio=0.5), path)
    few = mkdesc.match_descriptors(a, b, ratio="auto", model=path).pairs
    np.testing.assert_array_equal(few, mkdesc.match_descriptors(a, b, ratio=0.5).pairs)
    assert len(few) < len(by_number.pairs)
    assert model_ratio(path) == model_ratio(load_model(path)) == 0.5
    assert Features(model=path).ratio == 0.5


def test_a_model_without_a_ratio_says_so(tmp_path):
    mine = load_model("photo").set_params(ratio=None)
    save_model(mine, tmp_path / "mine.safetensors")
    rows = np.eye(4, 8, dtype=np.float32)
    for model in (tmp_path / "mine.safetensors", mine):
        with pytest.raises(ValueError, match=r"has none of its own.*mkdesc learn ratio"):
            mkdesc.match_descriptors(rows, rows, ratio="auto", model=model)
    image = np.random.default_rng(0).integers(0, 256, (90, 90), np.uint8)
    with pytest.raises(ValueError, match="has none of its own"):
        mkdesc.match_images(image, image, Features(50, model=mine), ratio="auto")
    with pytest.raises(ValueError, match="ratio: expected a number"):
        mkdesc.match_descriptors(rows, rows, ratio="automatic")


def test_the_command_writes_the_card_and_nothing_else(photos, tmp_path, run):
    out = tmp_path / "mine.safetensors"
    ended = run("learn", "ratio", "photo", photos, "-o", out)
    assert ended[0] == 0
    found = calibrated_ratio("photo", photos)
    before, after = read_card("photo"), read_card(out)
    assert after.ratio == found.ratio
    assert after.learned_from == before.learned_from
    patches = np.random.default_rng(0).integers(0, 256, (5, 2, 24, 24), np.uint8)
    np.testing.assert_array_equal(
        load_model(out).transform(patches), load_model("photo").transform(patches)
    )
    assert run("learn", "ratio", out, photos, "-o", out)[0] == 2
