"""Each check, with a pair that just fails it and a neighbour that passes."""

from dataclasses import replace

import numpy as np
import pytest

import mkdesc.belief.pair as pair_module
from mkdesc.belief.checks import CHECKS
from mkdesc.belief.evidence import Evidence, within_hull
from mkdesc.belief.judgement import judge
from mkdesc.belief.pair import PhotoPair
from mkdesc.matching.frame_matches import FrameMatches, plain_features
from mkdesc.matching.growing.grow import GrownMatches

SIZE = (768, 1024)


def photo_pair(here, there, correlation=0.95, seed=0, **options):
    """A pair whose keypoints are the matched places, with descriptors of their own."""
    rng = np.random.default_rng(seed)
    n = len(here)
    frames = [np.zeros((n, 2, 3)) + 7 * np.eye(2, 3) for _ in range(2)]
    for one, xy in zip(frames, (here, there), strict=True):
        one[:, :, 2] = xy
    described = rng.normal(size=(n, 64))
    features = tuple(plain_features(one, described) for one in frames)
    rows = np.repeat(np.arange(n)[:, None], 2, axis=1)
    matches = FrameMatches(frames[0], frames[1], np.zeros(n, np.float32), rows)
    grown = GrownMatches(
        *(here, there, np.broadcast_to(np.eye(2), (n, 2, 2))),
        *(np.broadcast_to(correlation, n), np.full(n, 0.2), np.full(n, 0.1), np.full(n, 8), rows),
    )
    return PhotoPair(features, matches, (SIZE, SIZE), matches, grown, **options)


def plane(rng, n, spread=(900, 650)):
    here = rng.uniform(50, spread, (n, 2))
    return here, here @ [[0.9, 0.1], [-0.1, 0.9]] + [40, 60]


def test_what_agrees_all_over_is_verified(rng):
    found = judge(photo_pair(*plane(rng, 200)))
    assert found.verdict.name == "verified"
    assert found.geometry.geometry == "homography"
    assert found.geometry.inliers.all()


def test_strength_is_the_logarithm_it_says(rng):
    pair = photo_pair(*plane(rng, 200))
    evidence = Evidence(pair, pair.geometry())
    cells = [
        len({tuple(at) for at in np.floor(xy / 40).tolist()}) for xy in pair.matches.positions
    ]
    assert evidence.n_cells == min(cells)
    assert evidence.width > 0.02  # it does not count then
    assert evidence.strength == pytest.approx(np.log(201) + 2 * np.log(1 + min(cells)))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, "verified"),
        ({"n": 9}, "unverified"),
        ({"correlation": 0.8}, "unverified"),
        ({"spread": (54, 650)}, "unverified"),  # two edges fit each other anywhere along them
    ],
)
def test_evidence_must_be_sure_and_spread(rng, change, name):
    n = change.get("n", 60)
    places = plane(rng, n, change.get("spread", (900, 650)))
    assert judge(photo_pair(*places, change.get("correlation", 0.95))).verdict.name == name


@pytest.mark.parametrize(
    ("share", "sure", "name"), [(0.3, 0.95, "ambiguous"), (0.3, 0.8, "verified")]
)
def test_sure_matches_elsewhere_contradict(rng, share, sure, name):
    here, there = plane(rng, 400)
    off = rng.random(400) < share
    there[off] = rng.uniform(50, 700, (off.sum(), 2))
    pair = photo_pair(here, there, np.where(off, sure, 0.95))
    evidence = Evidence(pair, pair.estimate("homography"))
    assert evidence.contradicted == pytest.approx(share if sure > 0.9 else 0, abs=0.07)
    assert judge(pair, "homography").verdict.name == name


@pytest.mark.parametrize(("copies", "name"), [(0, "verified"), (1, "ambiguous")])
def test_what_looks_the_same_elsewhere_is_ambiguous(rng, copies, name):
    pair = photo_pair(*plane(rng, 200))
    described = pair.features[0].descriptors.copy()
    if copies:
        described[100:] = described[:100]
    features = tuple(one._replace(descriptors=described) for one in pair.features)
    found = judge(replace(pair, features=features))
    assert found.verdict.name == name
    assert ("repeated structure" in found.verdict.reason) == bool(copies)


def test_beside_an_overlay_more_is_asked(rng):
    here, there = plane(rng, 25)
    assert judge(photo_pair(here, there)).verdict.name == "verified"
    beside = photo_pair(here, there, n_overlaid=20)
    found = judge(beside)
    assert found.verdict.name == "unverified"
    assert "20 matches on an overlay" in found.verdict.reason
    assert judge(beside, belief="mapping").verdict.name == "verified"
    many = judge(photo_pair(*plane(rng, 400), n_overlaid=20))
    assert many.verdict.name == "verified"


def scene(rng, n=300, changed=False):
    """Two cameras side by side: shifts along rows by depth; or pieces that changed places."""
    here = rng.uniform(60, (960, 700), (n, 2))
    depth = 5 + 2 * np.sin(here[:, 0] / 150) * np.cos(here[:, 1] / 120)
    there = here - np.column_stack([300 / depth, np.zeros(n)])
    if changed:
        column = (here[:, 0] // 150).astype(int)
        there = here + np.column_stack([150 * (rng.permutation(7)[column] - column), np.zeros(n)])
    return here, there


def test_depth_in_order_is_verified_and_pieces_out_of_order_are_not(rng):
    found = judge(photo_pair(*scene(rng)), "fundamental")
    assert found.verdict.name == "verified"
    found = judge(photo_pair(*scene(rng, changed=True)), "fundamental")
    assert found.verdict.name == "ambiguous"
    assert "change their order" in found.verdict.reason


def test_a_mirror_image_is_no_scene(rng):
    """Where nearest neighbours agree on a plane in a mirror, what was grown proves nothing."""
    pair = photo_pair(*plane(rng, 100))
    here = pair.matches.positions[0]
    mirrored = pair.matches.b.copy()
    mirrored[:, :, 2] = [1023, 0] + here * [-1, 1]
    found = judge(replace(pair, tentative=pair.matches._replace(b=mirrored)))
    assert found.verdict.name == "unverified"
    assert "mirrors" in found.verdict.reason


def test_belief_can_be_switched_off(rng):
    few = photo_pair(*plane(rng, 60, (54, 650)))
    assert judge(few, belief="off").verdict.name == "verified"
    with pytest.raises(ValueError, match="belief: expected one of strict, mapping, off"):
        judge(few, belief="none")
    nothing = judge(photo_pair(*(rng.uniform(0, 700, (2, 30, 2)))), belief="off")
    assert nothing.geometry.matrix is None or nothing.verdict.name == "verified"


def test_no_geometry_is_estimated_twice(rng, monkeypatch):
    kinds = []
    estimate = pair_module.estimate_geometry

    def counted(a, b, kind, *arguments, **options):
        kinds.append(kind)
        return estimate(a, b, kind, *arguments, **options)

    monkeypatch.setattr(pair_module, "estimate_geometry", counted)
    pair = photo_pair(*plane(rng, 200))
    judge(pair)
    judge(pair)
    assert sorted(kinds) == ["fundamental", "homography"]


def test_every_check_has_one_bound_and_says_why():
    assert len({check.name for check in CHECKS}) == len(CHECKS) < 25
    for check in CHECKS:
        assert (check.least is None) != (check.most is None)
        assert check.words
        assert len(check.calibrated) > 30


def test_the_hull_is_that_of_its_corners(rng):
    xy = rng.uniform(-1, 2, (500, 2))
    inside = ((xy >= 0) & (xy <= 1)).all(axis=1)
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    assert within_hull(square, xy).tolist() == inside.tolist()
    assert not within_hull(square[:2], xy).any()
