"""Scenes reconstructed alone and out of one folder of all of them: does a mix lose images?

    python benchmarks/scenes.py WORK [--data ../shared/data] [--keypoints 2048] [--seed 0]

The same code, settings and seed for each scene in a folder of its own, and for the folder of all
(the sequences, the multi-view scenes and the photographs; ``benchmarks/retrieval.py`` uses the
same). What is done stays in the folder WORK: ended by ``--minutes`` or by a kill, the same
command goes on. At last it prints how many images of each scene are in each model.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import pycolmap

from mkdesc.features import Settings
from mkdesc.sfm import SfmOptions, reconstruct
from retrieval import mixed

#: Where a folder says that no model came out, and why.
NONE = "none.txt"


def scene_of(name: str) -> str:
    """The scene of an image of the mix, by its name."""
    return name.rpartition("-")[0]


def scenes_of(mix: Path) -> dict[str, list[Path]]:
    """The images of each scene of two or more."""
    scenes: dict[str, list[Path]] = {}
    for file in sorted(mix.iterdir()):
        scenes.setdefault(scene_of(file.name), []).append(file)
    return {scene: files for scene, files in scenes.items() if not scene.startswith("photo-sk")}


def model(images: Path, output: Path, sfm_options: SfmOptions) -> None:
    """Reconstruct, unless that was done."""
    if (output / NONE).exists():
        return
    start, used = time.perf_counter(), time.process_time()
    try:
        reconstruct(images, output, options=sfm_options)
    except ValueError as error:
        (output / NONE).write_text(str(error))
    took = f"{time.perf_counter() - start:.0f} s, {time.process_time() - used:.0f} CPU s"
    print(f"{images.name}: {took}", flush=True)


def sizes(output: Path) -> dict[str, list[int]]:
    """Images of each scene in each model that has any, the most first."""
    found: dict[str, list[int]] = {}
    for folder in (output / "sparse").glob("*"):
        images = pycolmap.Reconstruction(str(folder)).images.values()
        for scene, count in Counter(scene_of(image.name) for image in images).items():
            found.setdefault(scene, []).append(count)
    return {scene: sorted(counts, reverse=True) for scene, counts in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--keypoints", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin nothing new after these")
    options = parser.parse_args()
    sfm_options = SfmOptions(
        Settings(max_keypoints=options.keypoints, sensitive=True), seed=options.seed
    )
    options.work.mkdir(exist_ok=True)
    mix = options.work / "mix"
    if not mix.is_dir():
        mixed(options.data, mix)
    begun = time.monotonic()
    rows = []
    for scene, files in scenes_of(mix).items():
        folder = options.work / "scenes" / scene
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            if not (folder / file.name).exists():
                (folder / file.name).symlink_to(file.resolve())
        if time.monotonic() - begun > 60 * options.minutes:
            return
        model(folder, options.work / "alone" / scene, sfm_options)
        rows.append((scene, len(files), sizes(options.work / "alone" / scene).get(scene, [])))
    if time.monotonic() - begun > 60 * options.minutes:
        return
    model(mix, options.work / "mixed", sfm_options)
    together = sizes(options.work / "mixed")
    print(f"{'scene':<20} {'images':>6}  {'alone':<10}  from the mix")
    for scene, count, alone in rows:
        shown = [" + ".join(map(str, part)) or "none" for part in (alone, together.get(scene, []))]
        print(f"{scene:<20} {count:>6}  {shown[0]:<10}  {shown[1]}")


if __name__ == "__main__":
    main()
