"""LightGlue as a matcher, through kornia, with the user's weights; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.evaluation.contenders.from_kornia import load_state, torch_and_kornia
from mkdesc.evaluation.photographs.base import FoundFeatures, Match
from mkdesc.evaluation.photographs.kornia_networks import load_weights


def lightglue_matcher(weights: Path) -> Match:
    """A function that matches the features of two photographs.

    Parameters
    ----------
    weights
        Safetensors, or what torch loads as weights only, in kornia's layout or that of the
        authors; taught for the features that are to be matched.
    """
    torch, kornia = torch_and_kornia("lightglue")
    state = _in_kornias_layout(load_state(torch, weights))
    configuration = _configuration(kornia.feature.LightGlue, state, weights)
    # With features=None kornia fetches no weights.
    module = kornia.feature.LightGlue(features=None, **configuration)
    load_weights(module, state, weights).eval()

    def match(a: FoundFeatures, b: FoundFeatures) -> NDArray[np.int64]:
        dims = configuration["input_dim"]
        for one in (a, b):
            if one.descriptors.shape[1] != dims:
                raise ValueError(
                    f"{weights}: was taught for descriptors of {dims} numbers, got "
                    f"{one.descriptors.shape[1]}"
                )
        images = {
            f"image{i}": {
                "keypoints": torch.from_numpy(one.xy).float()[None],
                "descriptors": torch.from_numpy(one.descriptors)[None],
                "image_size": torch.tensor([one.shape[::-1]], dtype=torch.float32),
            }
            for i, one in enumerate((a, b))
        }
        with torch.inference_mode():
            found = module(images)["matches"][0]
        return np.asarray(found.numpy(), np.int64).reshape(-1, 2)

    return match


def _in_kornias_layout(state: dict[str, Any]) -> dict[str, Any]:
    """Names of weights as kornia has them: its older ones and those of XFeat's differ.

    >>> list(_in_kornias_layout({"matcher.self_attn.0.Wqkv.bias": 0}))
    ['transformers.0.self_attn.Wqkv.bias']
    """
    found = {}
    nested = {name: one for name, one in state.items() if name.startswith("matcher.")}
    for name, tensor in (nested or state).items():
        parts = name.removeprefix("matcher.").split(".")
        if parts[0] in ("self_attn", "cross_attn"):
            parts[:2] = ["transformers", parts[1], parts[0]]
        found[".".join(parts)] = tensor
    return found


def _configuration(network: Any, state: dict[str, Any], weights: Path) -> dict[str, Any]:
    """The configuration of kornia's that weights of these shapes belong to."""
    try:
        inputs = state["posenc.Wr.weight"].shape[1]
        dims = state["transformers.0.self_attn.out_proj.bias"].shape[0]
        projected = state.get("input_proj.weight")
        given = dims if projected is None else projected.shape[1]
    except (KeyError, IndexError, AttributeError):
        raise ValueError(f"{weights}: not weights of LightGlue") from None
    if inputs != 2:
        raise ValueError(
            f"{weights}: these weights want scales and angles beside positions (SIFT, DoG with "
            "HardNet, KeyNet); only those for positions alone are supported"
        )
    for known in network.features.values():
        whole = {**network.default_conf, **known}
        if (given, dims) == (whole["input_dim"], whole["descriptor_dim"]) and not (
            whole["add_scale_ori"] or whole["add_laf"]
        ):
            return {
                name: value for name, value in whole.items() if name not in ("weights", "name")
            }
    raise ValueError(
        f"{weights}: kornia has no LightGlue of {dims} numbers for descriptors of {given}"
    )
