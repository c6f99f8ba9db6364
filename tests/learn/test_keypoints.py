"""Teaching the learned detector: right matches rise, Ctrl-C keeps the best, the seed repeats."""

import subprocess
import sys
from dataclasses import asdict, replace

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mkdesc.images.detectors.learned import Learned  # noqa: E402
from mkdesc.images.detectors.learned_torch import Scorer  # noqa: E402
from mkdesc.images.detectors.learned_weights import load_weights  # noqa: E402
from mkdesc.learn import keypoint_training as training  # noqa: E402
from mkdesc.learn import keypoint_views  # noqa: E402
from mkdesc.learn.holding_out import hold_out  # noqa: E402
from mkdesc.learn.keypoint_pairs import Found  # noqa: E402
from mkdesc.learn.keypoint_rewards import Drawn, KeypointRecipe, match_points  # noqa: E402
from mkdesc.learn.keypoint_views import Pairs, Photos, ViewRecipe, project  # noqa: E402
from mkdesc.learn.keypoints import learn_keypoints, recipe_for  # noqa: E402
from mkdesc.learn.training import NEWS  # noqa: E402
from mkdesc.models import save_model  # noqa: E402

TINY = replace(
    recipe_for(on_cpu=True, upright=True),
    channels=(4,),
    kernels=(5, 5),
    size=128,
    squares=(1.0,),
    rate=0.03,
    views=ViewRecipe(15, 0.2, 0.2, 0.1, 0.2),
)


def learn(folder, **more):
    how = {"model": "photo", "upright": True, "device": "cpu", "recipe": TINY, "seed": 1, **more}
    return learn_keypoints(folder, **how)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Boxes: along their edges all looks alike, corners can be told apart."""
    made, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for name in "abcdef":
        picture = np.full((260, 260), 128, np.uint8)
        for _ in range(60):
            (x, y), (width, height) = rng.integers(-30, 250, 2), rng.integers(15, 90, 2)
            picture[max(y, 0) : y + height, max(x, 0) : x + width] = rng.integers(0, 256)
        cv2.imwrite(str(made / f"{name}.png"), picture)
    return made


@pytest.fixture
def few_pairs(monkeypatch):
    """Figures in less time, for those that do not look at them."""
    monkeypatch.setattr(training, "MEASURED_PAIRS", 2)
    monkeypatch.setattr(training, "CHECKED_PAIRS", 2)


@pytest.fixture(scope="module")
def told():
    """What training said."""
    return []


@pytest.fixture(scope="module")
def learned(folder, told):
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "MEASURED_PAIRS", 16)
        patch.setattr(training, "CHECKED_PAIRS", 8)
        made = learn(folder, steps=30, progress=lambda what, *_: told.append(what))
    assert torch.get_num_threads() == threads
    return made


def test_right_matches_rise(learned):
    before, after = learned.report.before, learned.report.after
    assert after.right > 1.5 * before.right
    assert after.precision > before.precision


def test_rewarded_points_are_drawn_more_often(learned, told):
    right = [int(what.split()[1]) for what in told if what.startswith("training: ")]
    assert len(right) == 3
    assert right[2] > 1.2 * right[0]


def test_what_is_learned_sees_turned_images_alike(learned, folder):
    """A quarter turn of an image has the same scores, turned."""
    scorer = Scorer(learned.weights)
    gray = (
        torch.from_numpy(cv2.imread(str(folder / "a.png"), 0)[:, :200].copy()).float()[None] / 255
    )
    with torch.no_grad():
        scores, turned = scorer(gray), scorer(gray.rot90(1, (1, 2)))
    np.testing.assert_allclose(turned, scores.rot90(1, (1, 2)), rtol=1e-3, atol=1e-3)
    assert scores.std() > 0.1


def test_the_card_says_what_was_done(learned, tmp_path):
    learned.save(tmp_path / "mine.safetensors")
    card = load_weights(tmp_path / "mine.safetensors").card
    report = learned.report
    assert (card["kind"], card["model"], card["seed"], card["device"]) == (
        "upright",
        "photo",
        1,
        "cpu",
    )
    assert (card["photos"], card["steps"]) == (5, 30)
    assert card["held_out"] == report.held_out
    assert len(report.held_out) == 1
    assert card["before"] == asdict(report.before)
    assert card["after"] == asdict(report.after)
    assert card["recipe"]["kernels"] == [5, 5]
    assert card["recipe"]["views"]["rotation"] == 15
    assert card["began_as"] == "random weights"


def test_a_detector_uses_them(learned, folder, tmp_path):
    learned.save(tmp_path / "mine.safetensors")
    picture = cv2.imread(str(folder / "a.png"), 0)
    assert len(Learned(40, weights=tmp_path / "mine.safetensors").detect(picture)) == 40


def test_the_seed_repeats_and_another_does_not(folder, few_pairs):
    one, same, other = (learn(folder, steps=3, seed=seed) for seed in (4, 4, 5))
    for (a, _), (b, _), (c, _) in zip(
        one.weights.layers, same.weights.layers, other.weights.layers, strict=True
    ):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


def test_control_c_keeps_the_best(folder, few_pairs, tmp_path):
    def tell(what, done, total):
        if what.startswith("training"):
            raise KeyboardInterrupt

    made = learn(folder, steps=1000, progress=tell)
    assert made.report.interrupted
    assert made.report.steps == NEWS
    assert "interrupted: this is the best until then" in made.report.lines()
    made.save(tmp_path / "best.safetensors")
    assert load_weights(tmp_path / "best.safetensors").count == made.weights.count


def test_it_goes_on_from_weights(learned, folder, few_pairs, tmp_path):
    learned.save(tmp_path / "mine.safetensors")
    more = learn(folder, steps=1, start=tmp_path / "mine.safetensors")
    assert more.weights.card["began_as"] == "mine.safetensors"
    assert abs(more.weights.layers[0].weight - learned.weights.layers[0].weight).max() < 0.1


def test_what_is_held_out_is_not_learned_from(folder, few_pairs, monkeypatch):
    seen = []

    class Watched(Photos):
        def __init__(self, images, device):
            seen.append([image.tobytes() for image in images])
            super().__init__(images, device)

    monkeypatch.setattr(keypoint_views, "Photos", Watched)
    report = learn(folder, steps=1).report
    kept = [cv2.imread(str(folder / name), 0).tobytes() for name in report.held_out]
    learned_from, measured_on = seen
    assert measured_on == kept
    assert len(learned_from) == 5
    assert not set(kept) & set(learned_from)


def test_scenes_stay_together():
    names = [f"{scene}_{i}.jpg" for scene in ("one", "two", "three") for i in range(4)]
    for seed in range(5):
        learned, kept = hold_out(names, seed)
        assert sorted(learned + kept) == sorted(names)
        assert learned
        assert kept
        scenes = [{name.split("_")[0] for name in some} for some in (learned, kept)]
        assert not scenes[0] & scenes[1]
    assert hold_out(["a.jpg"], 0) == (["a.jpg"], [])


def test_views_and_the_homographies_between_them(folder):
    """A pixel and where it goes in the other view are of one gray."""
    picture = cv2.GaussianBlur(cv2.imread(str(folder / "a.png"), 0), (0, 0), 4)
    photos = Photos([picture], torch.device("cpu"))
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    chosen = np.zeros(2, int)
    zooms = keypoint_views.draw_zooms([picture.shape], 128, ViewRecipe(), rng)
    middle = np.array([[picture.shape[1] / 2, picture.shape[0] / 2]])
    maps = [
        keypoint_views.view_maps(middle, zooms, 128, ViewRecipe(), rng, second)
        for second in (False, True)
    ]
    views, inside = photos._warp(chosen, np.concatenate(maps), 128)
    to_other = torch.tensor(np.linalg.inv(maps[1]) @ maps[0], dtype=torch.float32)
    places = torch.stack(torch.meshgrid(*[torch.arange(20.0, 108, 8)] * 2, indexing="xy"), -1)
    places = places.reshape(1, -1, 2)
    moved = project(to_other, places)[0].round().long()
    there = ((moved >= 0) & (moved < 128)).all(-1)
    x, y = places[0][there].long().unbind(-1)
    u, v = moved[there].unbind(-1)
    both = inside[0, y, x] & inside[1, v, u]
    assert both.sum() > 20
    assert (views[0, y, x] - views[1, v, u])[both].abs().median() < 0.02
    assert photos.pairs(3, 64, ViewRecipe(), rng, generator).images.shape == (6, 64, 64)


def test_rewards():
    """Two views that are the same: equal vectors match.

    The first point is near its match, the second far from it, and the third has none. The fourth
    is too far off to be right and too near to be wrong; so is the fifth, whose pixels count as
    two, however coarse its level is.
    """
    first = [[10.0, 10], [30, 30], [50, 50], [80, 10], [80, 50]]
    second = [[10.5, 10], [30, 39], [70, 70], [80, 12], [80, 55]]
    used = torch.tensor([[True, True, False, True, True], [True] * 5])
    vectors = torch.eye(9)[torch.tensor([[0, 1, 8, 2, 3], [0, 1, 5, 2, 3]])]
    scales = torch.tensor([1.0, 1, 1, 1, 4]).expand(2, 5)
    found = Found(torch.tensor([first, second]), scales, torch.zeros(2, 5), used)
    drawn = Drawn(found, torch.zeros(2, 5))
    pairs = Pairs(
        torch.zeros(2, 100, 100),
        torch.ones(2, 100, 100, dtype=bool),
        torch.eye(3).expand(2, 3, 3),
        np.zeros(1, np.int64),
    )
    recipe = KeypointRecipe(wrong_cost=0.5, point_cost=0.1)
    matched = match_points(drawn, pairs, vectors, recipe, 1.0)
    expected = [[1, -0.5, 0, 0, 0], [1, -0.5, 0, 0, 0]] - 0.1 * used.numpy()
    np.testing.assert_allclose(matched.rewards, expected, atol=1e-6)
    assert (int(matched.right), int(matched.matches), float(matched.points)) == (1, 4, 4.5)


def test_a_model_of_two_squares(folder, few_pairs, look_at, tmp_path):
    save_model(look_at(20.0, 40.0), tmp_path / "two.safetensors")
    made = learn(folder, steps=2, model=tmp_path / "two.safetensors")
    assert made.report.steps == 2


def test_bad_arguments_and_photographs(folder, tmp_path):
    with pytest.raises(ValueError, match="steps: expected a number > 0 or None, got 0"):
        learn(folder, steps=0)
    with pytest.raises(ValueError, match="seconds: expected a number > 0 or None, got -1"):
        learn(folder, seconds=-1)
    cv2.imwrite(str(tmp_path / "small.png"), np.zeros((50, 50), np.uint8))
    with (
        pytest.warns(RuntimeWarning, match="skipped: .*smaller than 96 px"),
        pytest.raises(ValueError, match="photos: none of 1 could be used"),
    ):
        learn(tmp_path, steps=1)


def test_the_command_without_numba_and_opencv(folder, tmp_path):
    code = (
        "import sys; sys.modules['numba'] = sys.modules['cv2'] = None;"
        "from mkdesc.learn import keypoint_training as training;"
        "training.MEASURED_PAIRS = training.CHECKED_PAIRS = 1;"
        "from mkdesc.cli import main; main()"
    )
    output = tmp_path / "mine.safetensors"
    words = ["learn", "keypoints", str(folder), "-o", str(output), "--steps", "1"]
    words += ["--model", "photo", "--device", "cpu"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "5 photographs, 1 steps" in done.stdout
    assert "not compared with the bundled detector: " in done.stdout
    assert "needs OpenCV" in done.stdout
    assert "written: " in done.stdout
    assert load_weights(output).card["kind"] == "turned"
