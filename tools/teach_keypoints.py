"""Variants of the learned detector, to compare: the command, with parts of its recipe changed.

For example --set levels=3 --set views.scale=0.8 --set channels=[8,8,8].
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any

from mkdesc.learn.keypoint_rewards import KeypointRecipe
from mkdesc.learn.keypoints import learn_keypoints, recipe_for


def changed(recipe: KeypointRecipe, settings: list[str]) -> KeypointRecipe:
    """A recipe with settings such as ``views.scale=0.5`` or ``channels=[8,8]``."""
    for setting in settings:
        name, _, text = setting.partition("=")
        value: Any = json.loads(text)
        value = tuple(value) if isinstance(value, list) else value
        part, _, inner = name.partition(".")
        if inner:
            value = replace(getattr(recipe, part), **{inner: value})
        recipe = replace(recipe, **{part: value})
    return recipe


def main() -> None:
    """Teach one variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--upright", action="store_true")
    parser.add_argument("--model", default="photo-net")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    began = time.monotonic()
    due = [began + 3]

    def tell(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= due[0] or done == total:
            due[0] = now + 15
            print(f"{now - began:.0f} s: {what} ({done:,} of {total:,})", flush=True)

    learned = learn_keypoints(
        given.photos,
        model=given.model,
        steps=given.steps,
        seconds=given.limit,
        seed=given.seed,
        device=given.device,
        recipe=changed(recipe_for(given.device == "cpu", given.upright), given.set),
        progress=tell,
    )
    learned.save(given.output)
    print("\n".join(learned.report.lines()), flush=True)


if __name__ == "__main__":
    main()
