"""Slow senders keep nobody out, slow readers are waited for, others cost little."""

import gc
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit
from urllib.request import urlopen

from mkdesc.explorer import connections
from mkdesc.explorer.connections import ImpatientProtocol
from mkdesc.explorer.server import create_app


def opened(place, request):
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
    connection.settimeout(20)
    connection.connect((place.hostname, place.port))
    connection.sendall(request.format(host=place.netloc).encode())
    return connection


PLOTLY = "GET /plotly.js HTTP/1.1\r\nHost: {host}\r\n\r\n"
UPLOAD = "POST /api/image HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n\r\nabc"


def test_unfinished_uploads_keep_nobody_out(serve, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 10)
    with serve(create_app()) as address, ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(opened(urlsplit(address), UPLOAD))
            time.sleep(0.01)
        for _ in range(3):
            with urlopen(f"{address}style.css", timeout=10) as answer:
                assert answer.status == 200


def test_slow_readers_get_all_of_an_answer(serve, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    with serve(create_app()) as address:
        with urlopen(f"{address}plotly.js", timeout=20) as answer:
            expected = len(answer.read())
        with opened(urlsplit(address), PLOTLY) as connection:
            found = connection.recv(1000)
            head, _, body = found.partition(b"\r\n\r\n")
            count = len(body)
            assert b"200 OK" in head
            while count < expected:
                piece = connection.recv(100_000)
                assert piece, f"closed after {count} of {expected} bytes"
                count += len(piece)
                time.sleep(0.01 if count > expected // 2 else 0.02)


def test_answers_that_nobody_reads_take_little_memory(serve):
    with serve(create_app()) as address, ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(opened(urlsplit(address), 3 * PLOTLY))
        time.sleep(1)
        kept = [one for one in gc.get_objects() if type(one) is ImpatientProtocol]
        alive = [one.transport for one in kept if not one.transport.is_closing()]
        waiting = [transport.get_write_buffer_size() for transport in alive]
    assert len(waiting) >= 10
    assert max(waiting) < 300_000
