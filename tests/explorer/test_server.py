import base64
import http.client
import json
import socket
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from random import Random
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.explorer import connections, server, uploads
from mkdesc.explorer.server import create_app, is_loopback, open_socket
from mkdesc.heads.head import L2, Affine, Head, Relu
from mkdesc.heads.whitening import linear_head


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Sends requests as they are, malformed ones too."""

    def __init__(self, address):
        self.place = urlsplit(address)

    def request(self, method, path, content=None, headers=None):
        connection = http.client.HTTPConnection(self.place.hostname, self.place.port, timeout=30)
        with suppress(BrokenPipeError, ConnectionResetError):  # it may answer before it read all
            connection.request(method, path, content, headers or {})
        answer = connection.getresponse()
        got = Answer(answer.status, answer.headers, answer.read())
        connection.close()
        return got

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)


@pytest.fixture(scope="module")
def client(address):
    return Client(address)


def png(image):
    return cv2.imencode(".png", image)[1].tobytes()


def safetensors(header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(4)


FLOAT8 = {"mean": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}
FLOAT32 = {"mean": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}
DEEP = {"__metadata__": {"mkdesc": "[" * 100_000}, **FLOAT32}


def test_the_page_and_all_it_needs(client):
    assert "<h1>See the kernels</h1>" in client.get("/").text
    assert "export const SIZE = 64;" in client.get("/constants.js").text
    for name in ("style.css", "explore.js", "kernels.js", "plotly.js", "data.json"):
        answer = client.get(f"/{name}")
        assert answer.status == 200
        assert len(answer.content) > 1000
    assert client.get("/plotly.js").headers["content-type"].startswith("text/javascript")


def test_the_page_may_load_its_own_files_only(client):
    policy = client.get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "script-src" not in policy  # default-src holds for scripts: no inline ones, no eval
    assert "http" not in policy
    assert "access-control-allow-origin" not in client.get("/data.json").headers


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example:80", "", "[::2]:80", "128.0.0.1", "[127.0.0.1"],
)
def test_other_names_of_this_machine_are_refused(client, host):
    assert client.get("/", headers={"host": host}).status == 400


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.2:80", "[::1]:9", "[::1]"]
)
def test_loopback_names_are_not(client, host):
    assert client.get("/", headers={"host": host}).status == 200


def test_any_name_if_told_so(open_address):
    assert Client(open_address).get("/", headers={"host": "lab.example"}).status == 200


def test_other_sites_cannot_send_files(client):
    answer = client.post("/api/image", content=b"", headers={"origin": "http://evil.example"})
    assert answer.status == 403
    own = {"origin": f"http://{client.place.netloc}"}
    assert client.post("/api/image", content=b"", headers=own).status == 415


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/../pyproject.toml", 404),
        ("GET", "/%2e%2e/server.py", 404),
        ("GET", "/..%2fserver.py", 404),
        ("GET", "/api/image", 404),
        ("POST", "/data.json", 405),
        ("POST", "/", 405),
        ("NONSENSE", "/", 405),
    ],
)
def test_malformed_requests(client, method, path, status):
    assert client.request(method, path).status == status


@pytest.mark.parametrize("path", ["/%00", "/" + "x" * 5000, "/%ff%fe", "//etc/passwd"])
def test_strange_paths(client, path):
    assert client.get(path).status == 404


def test_websockets_are_not_spoken(client):
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    answer = client.get("/", headers={**upgrade, "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="})
    assert answer.status == 200


def test_what_is_not_http_at_all(client):
    with socket.create_connection((client.place.hostname, client.place.port), 10) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_image(client, rng):
    image = rng.integers(0, 256, (30, 50), np.uint8)
    answer = client.post("/api/image", content=png(image)).json()
    assert (answer["width"], answer["height"]) == (50, 30)
    pixels = np.frombuffer(base64.b64decode(answer["pixels"]), np.uint8)
    np.testing.assert_array_equal(pixels.reshape(30, 50), image)


def test_large_images_are_reduced(client):
    answer = client.post("/api/image", content=png(np.zeros((300, 3000), np.uint8))).json()
    assert (answer["width"], answer["height"]) == (1024, 102)


@pytest.mark.parametrize(
    ("path", "content", "status", "message"),
    [
        ("image", b"", 415, "expected a PNG, JPEG, WebP or BMP image"),
        ("image", b"GIF89a", 415, "expected a PNG"),
        ("image", b"RIFF....AVI ....", 415, "expected a PNG"),
        ("image", b"<svg onload='x'/>", 415, "expected a PNG"),
        ("image", png(np.zeros((9, 9), np.uint8))[:-30], 400, "this image: truncated"),
        ("image", b"BM" + b"\xff" * 60, 400, "this image: "),
        ("model", b"", 400, "this model: not a safetensors file"),
        ("model", b"\x80\x04.", 400, "this model: is a pickle"),
        ("model", b"\xff" * 100, 400, "this model: not a safetensors file"),
        ("model", safetensors(FLOAT8), 400, "this model: has tensors of a type that numpy lacks"),
        ("model", safetensors(DEEP), 400, "this model: its card is nested too deeply"),
    ],
)
def test_bad_uploads(client, path, content, status, message):
    answer = client.post(f"/api/{path}", content=content)
    assert answer.status == status
    assert answer.text.startswith(message)
    assert answer.text.count("\n") == 1
    assert answer.headers["content-type"].startswith("text/plain")


def test_images_that_unfold_to_too_much(client):
    bomb = bytearray(png(np.zeros((8, 8), np.uint8)))
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    bomb[29:33] = zlib.crc32(bomb[12:29]).to_bytes(4, "big")
    answer = client.post("/api/image", content=bytes(bomb))
    assert answer.status == 400
    assert "60000 x 60000 px" in answer.text


def test_uploads_are_limited_in_size(client):
    def pieces(total):  # of unknown length
        for _ in range(total // 1_000_000):
            yield b"\0" * 1_000_000

    assert client.post("/api/model", content=pieces(9_000_000)).status == 413
    promised = {"content-length": str(10**15)}
    assert client.post("/api/image", headers=promised).status == 413


def test_unfinished_uploads_are_closed(serve, monkeypatch):
    monkeypatch.setattr(server, "UPLOAD_SECONDS", 0.2)
    with serve(create_app()) as address:
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port), 10) as connection:
            head = f"POST /api/image HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 1000\r\n"
            connection.sendall(head.encode() + b"\r\nabc")
            answer = b"".join(iter(lambda: connection.recv(4096), b""))  # until it is closed
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b"too slow: expected the whole file within 0.2 s\n")


def half_request(place):
    connection = socket.create_connection((place.hostname, place.port), 10)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
    return connection


def test_half_requests_are_closed(serve, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    with serve(create_app()) as address:
        place = urlsplit(address)
        with half_request(place) as connection, suppress(ConnectionResetError):
            assert connection.recv(100) == b""
        with socket.create_connection((place.hostname, place.port), 10) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
            connection.sendall(b"GET / HTTP")  # the half of a second one
            with suppress(ConnectionResetError):
                while connection.recv(65536):
                    pass


def test_slow_clients_keep_nobody_out(serve, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)
    with serve(create_app()) as address, ExitStack() as stack:
        place = urlsplit(address)
        for _ in range(64):
            stack.enter_context(half_request(place))
        answers = [Client(address).get("/style.css").status for _ in range(5)]
    assert answers == [200] * 5


def nonsense(place, number):
    """One of a thousand: bytes that are no HTTP, or HTTP that asks for what there is not."""
    random = Random(number)
    lines = [
        random.randbytes(random.randrange(1, 300)),
        b"GET /" + random.randbytes(20).hex().encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /api/image HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/model HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n123",
        b"GET / HTTP/9.9\r\n" + b"a: b\r\n" * 3000,
        b"\r\n" * 100,
    ]
    with suppress(OSError), socket.create_connection((place.hostname, place.port), 30) as opened:
        opened.settimeout(0.2)
        opened.sendall(random.choice(lines))
        opened.recv(100)


def test_a_crowd_does_not_keep_anybody_out(serve, rng):
    """A thousand requests of nonsense, 64 slow clients and 50 real ones at once."""
    picture = png(rng.integers(0, 256, (30, 50), np.uint8))
    asked = [("GET", "/"), ("GET", "/data.json"), ("GET", "/style.css"), ("POST", "/api/image")]
    with serve(create_app()) as address, ExitStack() as stack:
        place = urlsplit(address)
        for _ in range(64):
            stack.enter_context(half_request(place))
        noisy, real = (stack.enter_context(ThreadPoolExecutor(n)) for n in (40, 10))
        crowd = [noisy.submit(nonsense, place, number) for number in range(1000)]
        answers = [
            real.submit(
                Client(address).request, method, path, picture if method == "POST" else None
            )
            for method, path in (asked * 13)[:50]
        ]
        assert [answer.result().status for answer in answers] == [200] * 50
        for one in crowd:
            one.result()


def test_uploads_share_the_memory(serve, monkeypatch):
    monkeypatch.setattr(server, "MOST_BYTES", 100_000)
    with serve(create_app()) as address:
        client = Client(address)
        answer = client.post("/api/image", content=b"BM" + bytes(200_000))
        assert (answer.status, answer.text) == (503, "too many uploads at a time: try again\n")
        for _ in range(3):  # what was refused is not counted any more
            assert client.post("/api/image", content=b"BM" + bytes(60_000)).status == 400


def test_two_uploads_are_decoded_at_a_time(serve, monkeypatch):
    lock, now, seen = threading.Lock(), [], []

    def slow(data):
        with lock:
            now.append(data)
            seen.append(len(now))
        time.sleep(0.1)
        with lock:
            now.remove(data)
        return []

    monkeypatch.setattr(server, "read_image", slow)
    monkeypatch.setattr(server, "read_models", slow)
    with serve(create_app()) as address, ThreadPoolExecutor(6) as pool:
        client = Client(address)
        paths = ["/api/image", "/api/model"] * 3
        answers = pool.map(lambda path: client.post(path, content=b"a"), paths)
        assert [answer.status for answer in answers] == [200] * 6
    assert max(seen) == 2


def test_uploads_leave_nothing_behind(client, rng, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []
    read_gray = uploads.read_gray
    monkeypatch.setattr(
        uploads, "read_gray", lambda path, *rest: seen.append(path) or read_gray(path, *rest)
    )
    client.post("/api/image", content=png(rng.integers(0, 256, (9, 9), np.uint8)))
    client.post("/api/image", content=b"BM" + b"\xff" * 60)
    assert all(path.parent.parent == tmp_path for path in seen)
    assert len(seen) == 2
    assert list(tmp_path.iterdir()) == []


def save(path, parametrization="x(4,1)*theta(8,2)", patch_size=64):
    mkd = mkdesc.MKD(parametrization, patch_size)
    dims = mkdesc.as_parametrization(parametrization).dims
    matrix = np.random.default_rng(0).normal(size=(dims, 3)).astype(np.float32)
    head = linear_head(matrix[:, 0].copy(), matrix, square_root=True)
    mkd.whitening = mkdesc.Whitening.of_head(head, method="pca", dims=3)
    mkdesc.save_model(mkd, path)
    return head


def test_model(client, tmp_path):
    head = save(tmp_path / "m.safetensors")
    answer = client.post("/api/model", content=(tmp_path / "m.safetensors").read_bytes()).json()
    (model,) = answer
    tensor = model["tensors"]["head.0.matrix"]
    matrix = np.frombuffer(base64.b64decode(tensor["data"]), "<f4").reshape(15, 3)
    np.testing.assert_array_equal(matrix, head.linear().matrix)
    assert model["head"][-2:] == [{"op": "power", "exponent": 0.5}, {"op": "l2"}]
    assert model["parametrization"] == "x(4,1)*theta(8,2)"


def test_models_that_the_page_cannot_show(client, tmp_path):
    file = tmp_path / "m.safetensors"
    save(file, patch_size=160)
    answer = client.post("/api/model", content=file.read_bytes())
    assert (answer.status, answer.text) == (
        400,
        "model: expected a model of patches of 8 to 128 px, got 160 px\n",
    )
    save(file, "x(8,12)*y(8,12)*theta(8,2)")
    answer = client.post("/api/model", content=file.read_bytes())
    assert answer.text == "model: expected at most 2500 raw numbers, got 3125\n"


def test_models_with_a_hidden_layer(client, tmp_path):
    file = tmp_path / "m.safetensors"
    ones = np.ones((15, 3), np.float32)
    head = Head((Affine(ones), Relu(), L2()))
    mkdesc.save_model(mkdesc.MKD("x(4,1)*theta(8,2)", 32, head=head), file)
    (model,) = client.post("/api/model", content=file.read_bytes()).json()
    assert [stage["op"] for stage in model["head"]] == ["affine", "relu", "l2"]
    assert (model["patch_size"], model["method"]) == (32, None)


def test_published_models_hold_several(client, shared):
    data = (shared / "golden" / "mkd-polar-64.safetensors").read_bytes()
    models = client.post("/api/model", content=data).json()
    assert {model["name"] for model in models} >= {"liberty lw", "liberty pca", "yosemite pcaws"}
    assert models[0]["head"][-2]["dims"][1] == 128


def test_sockets():
    with open_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(ValueError, match=f"cannot listen at 127.0.0.1, port {port}: "):
            open_socket("127.0.0.1", port)
    with pytest.raises(ValueError, match="--port: expected 0 to 65535, got 70000"):
        open_socket("127.0.0.1", 70000)
    with pytest.raises(ValueError, match=r"cannot listen at nowhere\.invalid"):
        open_socket("nowhere.invalid", 0)


def test_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "::1", "localhost", "127.8.8.8")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.2", socket.gethostname())))
