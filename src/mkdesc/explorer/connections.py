"""Connections that nobody can hold on to: what comes too slowly gives way to the others."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds in which the lines of a request must have come, and connections at a time.
HEADER_SECONDS = 5.0
#: Seconds in which at least some of an answer must have been read.
READING_SECONDS = 30.0
MOST_CONNECTIONS = 400


class ImpatientProtocol(H11Protocol):
    """uvicorn's HTTP, but that it closes connections on which no request comes.

    uvicorn waits for the first request of a connection, and for the rest of a half one, for ever.
    If there are too many connections, another one makes room for the newest: the one that has
    waited longest for a request, or, if requests are under way on all of them, the oldest. Whoever
    reads an answer slowly is waited for as long as he reads.
    """

    _since = 0.0
    _unread = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            others = [
                one
                for one in self.connections
                if isinstance(one, ImpatientProtocol) and one is not self
            ]
            longest = min(others, key=lambda one: (one._timer is None, one._since))
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
        self._timer = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        """Close the connection, unless an answer is still being read."""
        before, self._unread = self._unread, self.transport.get_write_buffer_size()
        if self._unread and self._unread != before:
            self._timer = self.loop.call_later(READING_SECONDS, self._give_up)
        elif self._unread:
            self.transport.abort()
        else:  # not at once: the system may have some of the answer yet to send
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
