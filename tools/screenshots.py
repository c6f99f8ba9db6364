"""Pictures of pages: the explorer and the page of a reconstruction (`make screenshots`).

Needs playwright and a Chromium (MKDESC_CHROMIUM may say where it is). The pages are those of
`mkdesc explore --export` and `mkdesc sfm demo/views`; the pictures go to docs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: Pictures, the pages that they show, and how wide a window and a picture are.
PICTURES = {
    "reconstruction.jpg": ("model/report.html", 1280, 900),
    "explorer.png": ("explorer.html", 1280, 1280),
}


def main() -> None:
    """Make the pages, and take the pictures."""
    path = os.environ.get("MKDESC_CHROMIUM") or shutil.which("chromium")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        folder = Path(name)
        for words in ("demo", "sfm demo/views -o model", "explore --export explorer.html"):
            subprocess.run(
                [sys.executable, "-m", "mkdesc", *words.split()], check=True, cwd=folder
            )
        browser = running.chromium.launch(
            executable_path=path, args=[*sandbox, "--use-gl=angle", "--use-angle=swiftshader"]
        )
        for picture, (address, window, width) in PICTURES.items():
            page = browser.new_page(viewport={"width": window, "height": 800})
            page.goto((folder / address).as_uri())
            page.wait_for_timeout(5000)  # plots draw themselves
            page.screenshot(path=folder / "picture.png", full_page=True)
            image = Image.open(folder / "picture.png").convert("RGB")
            image = image.resize((width, round(image.height * width / window)))
            if picture.endswith(".png"):
                image = image.quantize(128)  # a quarter of the size
            image.save(DOCS / picture, quality=80, optimize=True)
            print(f"{picture}: {image.width} x {image.height} px")
        browser.close()


if __name__ == "__main__":
    main()
