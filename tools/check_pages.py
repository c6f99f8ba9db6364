"""Look at a page of each kind of a built site in a browser: for everybody, and on a phone.

``python tools/check_pages.py FOLDER`` (`make check-pages`) prints what axe calls serious or
critical, in the light and in the dark, what is wider than a window of 400 px, and what a few
searches find first; it exits with 1 if anything is wrong. Needs playwright, a Chromium
(MKDESC_CHROMIUM may say where it is) and the packages of tools/javascript.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

AXE = Path(__file__).parent / "javascript" / "node_modules" / "axe-core" / "axe.min.js"
#: One page of each kind.
KINDS = (
    *("index", "guides", "tutorials/index", "tutorials/match", "matching", "coming-from"),
    *("gallery", "gallery/match", "reference/index", "reference/command-line"),
    *("reference/api/mkdesc", "reference/api/learn", "reference/api/names/mkdesc.Features"),
    *("reference/api/names/mkdesc.match_images", "reference/mathematics", "reference/glossary"),
    *("benchmarks", "keypoints", "project/index", "_modules/mkdesc/descriptor", "search"),
)
#: What people look for, and a word of the title that comes first.
SEARCHES = {"ratio": "ratio", "match_images": "match_images", "panorama": "panorama"}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def faults(page: Page, address: str) -> Iterator[str]:
    """What is wrong, a line each."""
    axe = AXE.read_text(encoding="utf-8")
    for kind in KINDS:
        page.set_viewport_size({"width": 400, "height": 800})
        page.goto(f"{address}/{kind}.html")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > 400:
            yield f"{kind}: {wide} px wide in a window of 400"
        page.set_viewport_size({"width": 1280, "height": 800})
        for mode in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{mode}'")
            page.evaluate(axe)
            # The explorer, in a frame of its own, has a test of its own.
            found = page.evaluate(
                "async () => (await axe.run({exclude: ['iframe']}, {iframes: false})).violations"
            )
            for fault in found:
                if fault["impact"] in ("serious", "critical"):
                    where = fault["nodes"][0]["html"][:100]
                    yield f"{kind}, {mode}: {fault['id']}, {len(fault['nodes'])} times: {where}"
    for words, expected in SEARCHES.items():
        page.goto(f"{address}/search.html?q={words}")
        page.wait_for_selector("#search-results li a")
        page.wait_for_timeout(1000)
        first = page.locator("#search-results li a").first.inner_text()
        if expected not in first.lower():
            yield f"search for {words}: {first!r} comes first"


def main() -> int:
    """Print the faults; the exit code."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=sys.argv[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = os.environ.get("MKDESC_CHROMIUM") or shutil.which("chromium")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=sandbox)
        found = list(faults(browser.new_page(), f"http://127.0.0.1:{server.server_port}"))
        browser.close()
    for fault in found:
        print(fault)
    print(f"{sys.argv[1]}: {len(KINDS)} kinds of pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
