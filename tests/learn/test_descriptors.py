"""Learning a descriptor for the detector's keypoints: figures rise, the seed repeats, Ctrl-C."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mkdesc import MKD, load_model  # noqa: E402
from mkdesc.learn import descriptors, scene_maps  # noqa: E402
from mkdesc.learn.descriptors import HeadPlan, learn_descriptor, recipe_for  # noqa: E402
from mkdesc.learn.keypoint_views import ViewRecipe  # noqa: E402
from mkdesc.learn.match_training import gather  # noqa: E402
from mkdesc.models import read_card  # noqa: E402

TINY = replace(
    recipe_for(on_cpu=True),
    pairs=8,
    points=60,
    size=128,
    real=0.0,
    views=ViewRecipe(180, 0.2, 0.2, 0.1, 0.2),
    batch=4,
    fresh=2,
)
SMALL = MKD("cartesian", 16, side=(16.0, 32.0))


def textured(rng, height=240, width=240):
    coarse = rng.random((height // 3, width // 3)).astype(np.float32)
    large = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    large = cv2.GaussianBlur(large, (0, 0), 1.5)
    return np.uint8(cv2.normalize(large, None, 0, 255, cv2.NORM_MINMAX))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for name in "abcde":
        cv2.imwrite(str(made / f"{name}.png"), textured(rng))
    return made


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch):
    monkeypatch.setattr(descriptors, "CPU_MEASURED", 4)


def learn(folder, plan=None, **more):
    plan = plan or HeadPlan("linear", dims=16)
    return learn_descriptor(folder, SMALL, plan, device="cpu", recipe=TINY, **more)


@pytest.fixture(scope="module")
def learned(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descriptors, "CPU_MEASURED", 8)
        return learn(folder, HeadPlan("mlp", dims=16, hidden=32, rank=24), steps=80, seed=1)


def test_training_makes_it_better(learned):
    before, after = learned.report.before, learned.report.after
    assert after.right > 0.95 * before.right
    assert after.precision > before.precision


def test_a_model_of_two_squares_and_its_card(learned, tmp_path):
    learned.save(tmp_path / "mine.safetensors")
    card = read_card(tmp_path / "mine.safetensors")
    assert card.side == [16.0, 32.0]
    said = card.learned_from
    assert (said["photographs"], said["steps"], said["seed"]) == (4, 80, 1)
    assert said["held_out"] == learned.report.held_out
    assert said["head"]["hidden"] == 32
    assert said["recipe"]["views"]["rotation"] == 180
    mkd = load_model(tmp_path / "mine.safetensors")
    assert mkd.head.dims_in == 2 * 63
    mkd.backend = "numpy"
    assert mkd.transform(np.zeros((3, 2, 16, 16), np.uint8)).shape == (3, 16)


def test_the_seed_repeats_and_another_does_not(folder):
    one, same, other = (learn(folder, steps=2, seed=seed) for seed in (3, 3, 4))
    matrices = [made.mkd.head.stages[2].matrix for made in (one, same, other)]
    np.testing.assert_array_equal(matrices[0], matrices[1])
    assert (matrices[0] != matrices[2]).any()


def test_control_c_keeps_what_was_learned(folder):
    def tell(what, done, total):
        if what.startswith("training"):
            raise KeyboardInterrupt

    made = learn(folder, steps=1000, progress=tell)
    assert made.report.interrupted
    assert made.report.steps == 10


def test_a_whitening_alone_and_bits(folder):
    alone = learn(folder, HeadPlan("gda", dims=16))
    assert alone.report.steps == 0
    assert alone.report.before == alone.report.after
    bits = learn(folder, HeadPlan("linear", dims=32, bits=True), steps=3)
    assert bits.mkd.head.dims_out == 32


def test_statistics_as_numpy_adds_them_up(folder, monkeypatch):
    pools = []
    monkeypatch.setattr(
        "mkdesc.learn.match_training.gather", lambda *all: pools.append(all) or gather(*all)
    )
    learn(folder, HeadPlan("gda", dims=16))
    (pool, power), found = pools[0], gather(*pools[0])
    rows, differences = [], 0
    for part in pool.parts():
        raw = part.raw.numpy().astype(np.float64)
        raw = np.sign(raw) * abs(raw) ** power
        raw /= np.linalg.norm(raw, axis=-1, keepdims=True)
        rows.append(raw[part.used.numpy()])
        for b, i, j in zip(*(some.tolist() for some in part[4:7]), strict=True):
            apart = raw[b, 0, i] - raw[b, 1, j]
            differences += np.outer(apart, apart)
    covariance = np.cov(np.concatenate(rows).T, bias=True)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-7)
    np.testing.assert_allclose(found.differences, differences, atol=1e-4)


def test_bad_arguments(folder):
    with pytest.raises(ValueError, match="steps: expected a number > 0 or None, got 0"):
        learn(folder, steps=0)
    with pytest.raises(ValueError, match="kind: expected one of gda, mlp, linear, got 'deep'"):
        HeadPlan("deep")
    with pytest.raises(ValueError, match="mkd: expected the sides of its squares"):
        learn_descriptor(folder, MKD("cartesian", 16), device="cpu", recipe=TINY)


def test_the_command(folder, tmp_path, run, monkeypatch):
    monkeypatch.setattr(descriptors, "recipe_for", lambda on_cpu: TINY)
    output = tmp_path / "mine.safetensors"
    how = "--head linear --dims 16 --parametrization cartesian --patch-size 16 --sides 16,32"
    words = ["learn", "descriptor", folder, "-o", output, "--device", "cpu", "--steps", 2]
    done = run(*words, *how.split())
    assert done.returncode == 0, done.stderr
    assert "4 photographs, 2 steps" in done.stdout
    assert load_model(output).side == (16.0, 32.0)
    wrong = run("learn", "descriptor", folder, "-o", output, "--sides", "16;32")
    assert wrong.returncode == 2
    assert "--sides: expected numbers with commas between, got '16;32'" in wrong.stderr


def test_a_limit_that_views_use_up_is_said(folder):
    with pytest.raises(ValueError, match=r"seconds: making views took all of the 0.01 s"):
        learn_descriptor(folder, device="cpu", recipe=TINY, seconds=0.01)


def test_a_model_is_trained_further(folder, tmp_path, run, monkeypatch):
    """It begins as what it was; its kernels, squares and head stay of their kind."""
    first = learn(folder, HeadPlan("mlp", dims=16, hidden=8, rank=24), steps=2)
    path = tmp_path / "first.safetensors"
    first.save(path)
    further = learn_descriptor(folder, device="cpu", recipe=TINY, start=path, steps=1)
    assert str(further.mkd.parametrization) == str(load_model(path).parametrization)
    assert (further.mkd.patch_size, further.mkd.side) == (16, (16.0, 32.0))
    assert str(further.mkd.head) == str(first.mkd.head)
    assert further.report.before.right == pytest.approx(first.report.after.right)
    assert further.card["began_as"] == "first.safetensors"
    assert further.mkd.ratio == first.mkd.ratio
    matrices = [made.mkd.head.stages[2].matrix for made in (first, further)]
    norms = [matrix / np.linalg.norm(matrix) for matrix in matrices]
    assert 0 < abs(norms[0] - norms[1]).max() < 0.02
    monkeypatch.setattr(descriptors, "recipe_for", lambda on_cpu: TINY)
    output = tmp_path / "mine.safetensors"
    words = ["learn", "descriptor", folder, "-o", output, "--device", "cpu", "--steps", 1]
    done = run(*words, "--from", path)
    assert done.returncode == 0, done.stderr
    assert "  first.safetensors: " in done.stdout.replace(str(tmp_path) + "/", "")
    assert "% of the matches right" in done.stderr
    assert load_model(output).side == (16.0, 32.0)
    done = run(*words, "--from", path, "--dims", 8, "--patch-size", 32)
    assert done.returncode == 2
    assert "--patch-size, --dims: cannot be combined with --from" in done.stderr


def test_photographs_of_one_scene_are_found(monkeypatch):
    """A known affine map between two pictures; a third shows something else."""
    rng = np.random.default_rng(1)
    first, other = textured(rng), textured(rng)
    true = np.array([[0.95, -0.2, 30.0], [0.25, 0.9, -10.0]])
    second = cv2.warpAffine(first, true, (240, 240), flags=cv2.INTER_CUBIC)
    monkeypatch.setattr(scene_maps, "KEYPOINTS", 250)
    how = replace(TINY, real=0.5)
    pool = descriptors._pool(
        {"a_1.png": first, "a_2.png": second, "b.png": other},
        MKD("extended-24", 24, side=(20.0,)),
        "keypoints",
        how,
        0,
        torch.device("cpu"),
    )
    made = []
    pool.fill(made.append)
    assert made[-1] == TINY.pairs
    pool.find_maps(HeadPlan("gda", dims=32).begin(gather(pool, 0.75)))
    assert [scene.photos for scene in pool.maps] == [(0, 1)]
    (scene,) = pool.maps
    expected = scene.places.numpy() @ true[:, :2].T + true[:, 2]
    assert np.median(np.linalg.norm(scene.others.numpy() - expected, axis=1)) < 1
    assert np.median(abs(scene.local.numpy() - true[:, :2])) < 0.1
    # Two views of these, and where keypoints of the first are in the second.
    _, _, moved, photos = pool._real(2)
    assert photos.tolist() == [0, 0]
    assert moved.known.float().mean() > 0.2
    same, ones = (torch.eye(3), torch.eye(3)), torch.ones(len(scene.places))
    straight = scene_maps.move_by_scene(scene, scene.places, ones, same)
    good = straight.known.numpy()
    wrong = np.linalg.norm(straight.places.numpy() - expected, axis=1)[good]
    assert np.median(wrong) < 1
    np.testing.assert_allclose(
        np.median(straight.scales[good]), np.sqrt(np.linalg.det(true[:, :2])), rtol=0.1
    )
