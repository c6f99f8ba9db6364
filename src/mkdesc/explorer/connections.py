"""Connections that nobody can hold on to: what comes too slowly gives way to the others."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEADER_SECONDS", "MOST_CONNECTIONS", "ImpatientProtocol"]

#: Seconds in which the lines of a request must have come, and connections at a time.
HEADER_SECONDS = 5.0
MOST_CONNECTIONS = 400


class ImpatientProtocol(H11Protocol):
    """uvicorn's HTTP, but that it closes connections on which no request comes.

    uvicorn waits for the first request of a connection, and for the rest of a half one, for ever.
    If there are too many connections, the one is closed that has waited longest for a request.
    """

    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            ours = [one for one in self.connections if isinstance(one, ImpatientProtocol)]
            longest = min(ours, key=lambda one: (one._timer is None, one._since))
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take more of a request; if all of its lines are there, the answer takes its time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._stop_waiting()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._since = self.loop.time()
        self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
