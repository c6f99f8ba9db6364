"""The gallery's pictures: ``python tools/gallery.py`` runs every script of it (`make gallery`).

Scripts run in a folder of their own with the demo's photographs; each writes one picture of its
name. Pictures, and thumbnails of them, go to docs/gallery, which is kept in the repository. Name
scripts to run these alone. ``write_pages`` makes a page of each script when the site is built.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLES = REPOSITORY / "examples"
PICTURES = REPOSITORY / "docs" / "gallery"
#: In the order of the gallery.
NAMES = (
    "match",
    "growth",
    "fit",
    "align",
    "panorama",
    "changes",
    "wide",
    "reconstruction",
    "find",
    "groups",
    "retrain",
    "keypoints",
    "turning",
    "pose_curves",
    "bits",
    "patch_maps",
    "why_alike",
    "patches",
    "failure_viewpoint",
    "failure_windows",
)
#: Pictures of other commands (`mkdesc figures`, `explore`) that pages have thumbnails of.
FIGURES = (
    "explorer.png",
    "figures/figure1-kernels.png",
    "figures/figure3-whitening.png",
    "figures/figure4-combination.png",
    "figures/figure5-extended.png",
)
#: Pixels of the longer side of pictures, and of thumbnails (width, height).
LONGEST, THUMBNAIL = 1000, (320, 200)


class Script(NamedTuple):
    """A script of the gallery: its file, and what its first words say."""

    path: Path
    title: str
    text: str

    @property
    def picture(self) -> Path:
        """Where its picture is kept."""
        found = sorted(PICTURES.glob(f"{self.path.stem}.[jp][pn]g"))
        return found[0] if found else PICTURES / f"{self.path.stem}.jpg"


def scripts() -> list[Script]:
    """All of them, in the order of the gallery."""
    found = []
    for name in NAMES:
        path = next(path for path in EXAMPLES.glob(f"**/{name}.py"))
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        title, _, text = words.partition("\n")
        found.append(Script(path, title.rstrip("."), text.strip()))
    return found


def draw(script: Script, folder: Path) -> None:
    """Run a script in a folder, and keep its picture and a thumbnail."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    subprocess.run([sys.executable, str(script.path)], check=True, cwd=folder, env=env)
    made = next(folder.glob(f"{script.path.stem}.[jp][pn]g"))
    image = cv2.imread(str(made))
    smaller = min(1.0, LONGEST / max(image.shape))
    image = cv2.resize(image, None, fx=smaller, fy=smaller, interpolation=cv2.INTER_AREA)
    _write(PICTURES / made.name, image)
    _write(PICTURES / "thumbnails" / f"{script.path.stem}.jpg", _thumbnail(image))
    print(f"{made.name}: {(PICTURES / made.name).stat().st_size // 1000} kB", flush=True)


def write_pages(folder: Path, listing: Path) -> None:
    """A page for each script, and a list of them with thumbnails for the gallery's own page."""
    listing.parent.mkdir(parents=True, exist_ok=True)
    cards, names = [], []
    for script in scripts():
        name = script.path.stem
        source = os.path.relpath(script.path, folder)
        code = script.path.read_text(encoding="utf-8")
        begin = code.count("\n", 0, code.index('"""', 3)) + 3  # below the docstring
        (folder / f"{name}.md").write_text(
            f"# {script.title}\n\n{script.text}\n\n![{script.title}]({script.picture.name})\n\n"
            f"Download {{download}}`{script.path.name} <{source}>`. It runs in a folder where "
            f"`mkdesc demo` was run.\n\n"
            f"```{{literalinclude}} {source}\n:language: python\n:lines: {begin}-\n```\n",
            encoding="utf-8",
        )
        names.append(f"{folder.name}/{name}")
        cards.append(
            f"* ![]({folder.name}/thumbnails/{name}.jpg)\n"
            f"  [{script.title}]({folder.name}/{name}.md)\n"
        )
    hidden = "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
    listing.write_text("\n".join(cards) + "\n" + hidden, encoding="utf-8")


def _thumbnail(image: np.ndarray) -> np.ndarray:
    """The whole picture, on white."""
    width, height = THUMBNAIL
    scale = min(width / image.shape[1], height / image.shape[0])
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    down, right = height - small.shape[0], width - small.shape[1]
    edges = (down // 2, down - down // 2, right // 2, right - right // 2)
    return cv2.copyMakeBorder(small, *edges, cv2.BORDER_CONSTANT, value=(255, 255, 255))


def _write(path: Path, image: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    options = [cv2.IMWRITE_JPEG_QUALITY, 80] if path.suffix == ".jpg" else []
    if path.suffix == ".png":
        options = [cv2.IMWRITE_PNG_COMPRESSION, 9]
    cv2.imwrite(str(path), image, options)


def main() -> None:
    """Draw the named ones, or all."""
    wanted = sys.argv[1:] or NAMES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "mkdesc", "demo"], check=True, cwd=folder)
        for script in scripts():
            if script.path.stem in wanted:
                draw(script, folder)
    for figure in FIGURES:
        image = cv2.imread(str(REPOSITORY / "docs" / figure))
        _write(PICTURES / "thumbnails" / f"{Path(figure).stem}.jpg", _thumbnail(image))


if __name__ == "__main__":
    main()
