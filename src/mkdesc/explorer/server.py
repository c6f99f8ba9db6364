"""The explorer's server: the page, its data, and two small uploads; on this machine alone."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from mkdesc._support.optional import needed
from mkdesc.explorer.data import MAX_IMAGE_BYTES, MAX_MODEL_BYTES
from mkdesc.explorer.page import constants_js, data_json, plotly_js, to_json
from mkdesc.explorer.uploads import (
    UnsupportedType,
    read_image,
    read_models,
)

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


#: Seconds that an upload may take to arrive, and that unfinished ones get at the end.
UPLOAD_SECONDS = 30
ENDING_SECONDS = 1
#: Uploads that are decoded at a time: a small file may unfold to much.
MOST_DECODED = 2
#: Bytes of all uploads that are on their way.
MOST_BYTES = 500_000_000
#: Bytes of an answer that are handed on at a time.
PIECE = 1 << 16

#: The page loads nothing from elsewhere and runs no script but its own files. Plotly sets styles.
_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses requests that a page of another site caused, and adds headers to every answer.

    A name of another site that resolves to this machine (DNS rebinding) shows in ``Host``, a
    request sent by another site's page in ``Origin``.
    """

    def __init__(self, app: ASGIApp, any_host: bool) -> None:
        self.app = app
        self.any_host = any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = message.get("headers", [])
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                if all(name != b"cache-control" for name, _ in present):
                    added.append((b"cache-control", b"no-cache"))
                message["headers"] = [*present, *added]
            await send(message)

        problem = self._problem(scope)
        app = self.app if problem is None else _plain(*problem)
        await app(scope, receive, send_with_headers)

    def _problem(self, scope: Scope) -> tuple[str, int] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
        if not self.any_host and not is_loopback(bare.lower()):
            return f"unknown host {host[:80]!r}: this explorer answers to localhost alone", 400
        origin = headers.get(b"origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            return "requests from other sites are refused", 403
        if "\0" in scope["path"]:  # some versions of starlette ask the disk for it
            return "no such page", 404
        return None


def _plain(text: str, status: int) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(text + "\n", status)


def _in_pieces(content: str | bytes, kind: str, headers: dict[str, str] | None = None) -> Response:
    """An answer sent piece by piece, so that one that nobody reads takes little memory."""
    from starlette.responses import Response

    class InPieces(Response):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            for first in range(0, len(self.body), PIECE):
                piece = bytes(self.body[first : first + PIECE])
                more = first + PIECE < len(self.body)
                await send({"type": "http.response.body", "body": piece, "more_body": more})

    return InPieces(content, media_type=kind, headers=headers)


def create_app(any_host: bool = False, ready: Callable[[], None] = lambda: None) -> Starlette:
    """The explorer as an ASGI application.

    Parameters
    ----------
    any_host
        Whether to answer under any name; otherwise under those of this machine only.
    ready
        Called once the server is up.
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    # Made once and before anyone asks, so that no two requests make them at the same time.
    data, plotly = data_json().encode(), plotly_js().encode()
    limits = _Limits(asyncio.Semaphore(MOST_DECODED))

    async def send_data(_: Request) -> Response:
        return _in_pieces(data, "application/json")

    async def send_constants(_: Request) -> Response:
        return _in_pieces(constants_js(), "text/javascript")

    async def send_plotly(_: Request) -> Response:  # large, and the same until the next version
        return _in_pieces(plotly, "text/javascript", {"cache-control": "max-age=3600"})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        ready()
        yield

    static = StaticFiles(directory=str(files("mkdesc.explorer") / "static"), html=True)
    return Starlette(
        routes=[
            Route("/data.json", send_data),
            Route("/plotly.js", send_plotly),
            Route("/constants.js", send_constants),
            Route("/api/image", _upload(read_image, MAX_IMAGE_BYTES, limits), methods=["POST"]),
            Route("/api/model", _upload(read_models, MAX_MODEL_BYTES, limits), methods=["POST"]),
            Mount("/", static),
        ],
        middleware=[Middleware(Guard, any_host=any_host)],
        lifespan=lifespan,
    )


@dataclass
class _Limits:
    """What all uploads share: turns to be decoded, and the bytes that wait for theirs."""

    turns: asyncio.Semaphore
    held: int = 0


def _upload(read: Callable[[bytes], Any], limit: int, limits: _Limits) -> Callable[[Request], Any]:
    """An endpoint that takes the bytes of a file and answers with JSON, or with one plain line."""
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect

    async def endpoint(request: Request) -> Response:
        data = bytearray()
        try:
            problem = await receive(request, data)
            if problem is not None:
                return _plain(*problem)
            async with limits.turns:
                result = await run_in_threadpool(read, bytes(data))
        except ClientDisconnect:
            return _plain("the upload ended early", 400)
        except TimeoutError:
            late = _plain(f"too slow: expected the whole file within {UPLOAD_SECONDS} s", 408)
            late.headers["connection"] = "close"
            return late
        except UnsupportedType as error:
            return _plain(str(error), 415)
        except (ValueError, ImportError) as error:
            return _plain(str(error), 400)
        finally:
            limits.held -= len(data)
        return _in_pieces(to_json(result), "application/json")

    async def receive(request: Request, data: bytearray) -> tuple[str, int] | None:
        """Take a file, or say why not."""
        too_large = f"too large: at most {limit / 1e6:g} MB", 413
        said = request.headers.get("content-length", "0")
        if said.isdecimal() and int(said) > limit:
            return too_large
        async with asyncio.timeout(UPLOAD_SECONDS):
            async for chunk in request.stream():
                data += chunk
                limits.held += len(chunk)
                if len(data) > limit:
                    return too_large
                if limits.held > MOST_BYTES:
                    return "too many uploads at a time: try again", 503
        return None

    return endpoint


def make_server(app: Starlette) -> uvicorn.Server:
    """A server of the application, quiet, that speaks plain HTTP alone."""
    import uvicorn

    from mkdesc.explorer.connections import ImpatientProtocol

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="error",
            ws="none",
            http=ImpatientProtocol,
            backlog=100,  # taken at a time, so that their requests are read before more are taken
            timeout_graceful_shutdown=ENDING_SECONDS,
        )
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server at this address.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    if not 0 <= port <= 65535:
        raise ValueError(f"--port: expected 0 to 65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ValueError(f"cannot listen at {host}, port {port}: {error.strerror}") from None


def serve(host: str = "127.0.0.1", port: int = 0, browser: bool = True) -> None:
    """Serve the explorer until Ctrl-C.

    Parameters
    ----------
    host, port
        Where to listen; port 0: a free one.
    browser
        Whether to open the page in a browser.
    """
    with needed("the explorer needs starlette and uvicorn", "explore"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    with open_socket(host, port) as listening:
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}/"

        def ready() -> None:
            print(f"explorer: {address}  (Ctrl-C ends it)", flush=True)
            if browser:  # some browsers keep the caller until they are closed
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        app = create_app(not is_loopback(host), ready)
        server, log = make_server(app), logging.getLogger("uvicorn.error")

        def running(_: logging.LogRecord) -> bool:  # uploads that Ctrl-C cuts off are no errors
            return not server.should_exit

        log.addFilter(running)
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:  # uvicorn hands on what ended it
            print("explorer ended")
        finally:
            log.removeFilter(running)
