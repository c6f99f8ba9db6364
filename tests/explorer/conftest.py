"""A running explorer and a browser to look at it with."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import contextmanager

import pytest

from mkdesc.explorer.server import create_app, make_server, open_socket

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@contextmanager
def running(app):
    """The address of an explorer that runs on a free port of this machine."""
    with open_socket("127.0.0.1", 0) as listening:
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server.should_exit = True
        thread.join(20)


@pytest.fixture
def serve():
    """Serves an application for as long as a ``with`` lasts."""
    return running


@pytest.fixture(scope="module")
def address():
    with running(create_app()) as address:
        yield address


@pytest.fixture(scope="module")
def open_address():
    """An explorer that answers under any name."""
    with running(create_app(any_host=True)) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    """One Chromium for all tests of a file."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("MKDESC_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium found: apt-get install chromium, or set MKDESC_CHROMIUM")
    # Chromium's own sandbox does not work for root, which containers often run as.
    options = [*_OPTIONS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=path, args=options)
        yield started
        started.close()


@pytest.fixture(scope="module")
def context(browser):
    """One cache for all pages."""
    return browser.new_context()


@pytest.fixture
def open_page(context):
    """Opens pages, and afterwards complains of errors and of requests that left the machine."""
    pages, problems, requests = [], [], []

    def opened(url, width=1366, height=768, expected=()):
        page = context.new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(15_000)

        def note(text):
            if not any(words in text for words in expected):
                problems.append(text)

        page.on("console", lambda m: note(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: note(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        return page

    yield opened
    for page in pages:
        page.close()
    assert problems == []
    local = ("http://127.0.0.1:", "file://", "data:", "blob:")
    assert [url for url in requests if not url.startswith(local)] == []
