"""How fast the explorer follows a drag, in a real browser: from the pointer to the drawn map.

The last column is the CPU time of all processes of the browser per move, which other work on the
machine changes least.

Run with ``.venv/bin/python benchmarks/explorer.py``; needs Chromium (``MKDESC_CHROMIUM``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from mkdesc.explorer import export_page

VIEWS = {
    "polar": "#k=polar",
    "polar + cartesian, lw": "#k=polar%2Bcartesian&w=polar-cartesian-lw",
    "extended, model extended": "#k=extended&w=extended",
}
MOVES = 80
# The page draws in the frame after an event; the message arrives once that frame is painted.
DRAG = """async () => {
  const pad = document.getElementById("pad"), box = pad.getBoundingClientRect(), times = [];
  const send = (kind, part) => pad.dispatchEvent(new PointerEvent(kind, {pointerId: 1,
    clientX: box.left + part * box.width, clientY: box.top + (0.2 + part / 2) * box.height}));
  pad.setPointerCapture = () => {}; pad.hasPointerCapture = () => true;
  send("pointerdown", 0.1);
  for (let i = 0; i < MOVES; i++) {
    await new Promise((done) => setTimeout(done, 5));
    const start = performance.now();
    send("pointermove", 0.1 + 0.01 * i);
    await new Promise((done) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = done;
      channel.port2.postMessage(0);
    }));
    times.push(performance.now() - start);
  }
  return times.slice(10);
}""".replace("MOVES", str(MOVES))


def _cpu_seconds(browser: Browser) -> float:
    """What all processes of the browser have used."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    return sum(process["cpuTime"] for process in found["processInfo"])


def main() -> None:
    path = os.environ.get("MKDESC_CHROMIUM") or shutil.which("chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    print(f"one-minute load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| view | median | 95% | longest | CPU (ms) |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "explorer.html"
        export_page(file)
        browser = playwright.chromium.launch(executable_path=path, args=options)
        for name, view in VIEWS.items():
            page = browser.new_page(viewport={"width": 1366, "height": 768})
            page.goto(file.as_uri() + view)
            page.wait_for_selector("body[data-tabulated]")
            page.wait_for_timeout(6000)  # the table's background work is done by then
            before = _cpu_seconds(browser)
            times = page.evaluate(DRAG)
            each = 1000 * (_cpu_seconds(browser) - before) / MOVES
            print(f"| {name} | {np.median(times):.1f} | {np.percentile(times, 95):.1f} | ", end="")
            print(f"{max(times):.1f} | {each:.1f} |")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
