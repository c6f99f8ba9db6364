"""Networks of others that find and describe keypoints, through kornia, with the user's weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkdesc.evaluation.contenders.from_kornia import load_state, torch_and_kornia
from mkdesc.evaluation.photographs.base import Photograph, PhotographFeatures


def extractor(kind: str, weights: Path) -> Callable[[Photograph, int], PhotographFeatures]:
    """A network as a function of a photograph and a number of keypoints.

    Parameters
    ----------
    kind
        ``aliked``, ``disk`` or ``xfeat``.
    weights
        Safetensors, or what torch loads as weights only.
    """
    torch, kornia = torch_and_kornia(kind)
    module = _MODULES[kind](kornia, load_state(torch, weights), weights).eval()

    def extract(photograph: Photograph, most: int) -> PhotographFeatures:
        image = torch.from_numpy(photograph.gray)[None, None].float() / 255
        with torch.inference_mode():
            xy, scores, descriptors = _RUN[kind](module, image, most)
        order = np.argsort(-_array(scores), kind="stable")[:most]
        return PhotographFeatures(
            _array(xy)[order].astype(np.float64), _array(descriptors)[order].astype(np.float32)
        )

    return extract


def _array(tensor: Any) -> NDArray[Any]:
    return np.asarray(tensor.cpu().numpy())


def _aliked(kornia: Any, state: dict[str, Any], weights: Path) -> Any:
    # The names of the configurations are those of the files; n16 and n16rot share theirs.
    known = ("aliked-t16", "aliked-n32", "aliked-n16rot", "aliked-n16")
    name = next((one for one in known if one in weights.stem), "aliked-n16")
    module = kornia.feature.ALIKED(name, max_num_keypoints=1, detection_threshold=-1)
    return load_weights(module, state, weights)


def _disk(kornia: Any, state: dict[str, Any], weights: Path) -> Any:
    return load_weights(kornia.feature.DISK(), state.get("extractor", state), weights)


def _xfeat(kornia: Any, state: dict[str, Any], weights: Path) -> Any:
    module = kornia.feature.XFeat(1)
    load_weights(module.net, state, weights, "fine_matcher.")
    return module


def load_weights(module: Any, state: dict[str, Any], weights: Path, unused: str = " ") -> Any:
    """The module with its weights; those of the part that is not used may be missing."""
    try:
        missing, unknown = module.load_state_dict(state, strict=False)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{weights}: not weights of this network ({reason})") from None
    learned = {name for name, _ in module.named_parameters() if not name.startswith(unused)}
    if unknown or learned & set(missing):
        raise ValueError(
            f"{weights}: not weights of this network; {len(learned & set(missing))} of "
            f"{len(learned)} are missing, {len(unknown)} belong to something else"
        )
    return module


def _run_aliked(module: Any, image: Any, most: int) -> tuple[Any, Any, Any]:
    module.dkd.top_k = module.dkd.n_limit = most
    found = module(image)[0]
    return found.keypoints, found.keypoint_scores, found.descriptors


def _run_disk(module: Any, image: Any, most: int) -> tuple[Any, Any, Any]:
    found = module(image.expand(-1, 3, -1, -1), most, pad_if_not_divisible=True)[0]
    return found.keypoints, found.detection_scores, found.descriptors


def _run_xfeat(module: Any, image: Any, most: int) -> tuple[Any, Any, Any]:
    found = module.detectAndCompute(image, most)[0]
    return found["keypoints"], found["scores"], found["descriptors"]


_MODULES = {"aliked": _aliked, "disk": _disk, "xfeat": _xfeat}
_RUN = {"aliked": _run_aliked, "disk": _run_disk, "xfeat": _run_xfeat}
