"""Usual scores are those of patches whose truth is known."""

import numpy as np
import pytest

from mkdesc import MKD
from mkdesc.models import load_model
from mkdesc.visual.typical import _disjoint, typical_scores

pytest.importorskip("cv2")


def test_matches_score_more_than_others_and_whitening_parts_them():
    raw, whitened = typical_scores(MKD()), typical_scores(load_model("paper"))
    for found in (raw, whitened):
        assert -1 <= found.others.low < found.others.median < found.others.high
        assert found.others.high < found.matches.median < found.matches.high <= 1
    assert whitened.others.median < 0.1 < raw.others.median
    assert typical_scores(MKD()) == raw


def test_squares_that_meet_are_no_others():
    """Squares of side 2: their circles reach the root of two."""
    frames = np.tile(np.eye(3), (3, 1, 1))
    frames[:, 0, 2] = 0, 2.7, 5.6
    assert _disjoint(frames).tolist() == [
        [False, False, True],
        [False, False, True],
        [True, True, False],
    ]
