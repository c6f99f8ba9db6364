import re
import signal
import socket
import sys
import urllib.request

import pytest

SERVE = ("-m", "mkdesc", "explore", "--no-browser")


def test_export(tmp_path, run):
    done = run("explore", "--export", "kernels.html", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "written: kernels.html\n"), done.stderr
    assert (tmp_path / "kernels.html").read_text().startswith("<!doctype html>")


def test_bad_arguments(tmp_path, run):
    bad = {
        "--export: expected a name ending in .html": ["--export", "kernels.pdf"],
        "nowhere/kernels.html: the folder nowhere does not exist": [
            "--export",
            "nowhere/kernels.html",
        ],
        "--port: expected 0 to 65535, got 99999": ["--no-browser", "--port", "99999"],
        "cannot listen at nowhere.invalid": ["--no-browser", "--host", "nowhere.invalid"],
    }
    for message, arguments in bad.items():
        done = run("explore", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert f"error: {message}" in done.stderr
        assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_serving_until_ctrl_c(start, tmp_path, monkeypatch):
    """As it is typed: a browser is opened, whichever is the user's."""
    monkeypatch.setenv("BROWSER", 'sh -c "echo %s > opened"')
    child = start("-m", "mkdesc", "explore", cwd=tmp_path)
    address = re.search(r"http://127\.0\.0\.1:\d+/", child.stdout.readline())[0]
    with urllib.request.urlopen(address) as answer:
        assert b"See the kernels" in answer.read()
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=60)
    assert (child.returncode, output, errors) == (0, "explorer ended\n", "")
    assert (tmp_path / "opened").read_text() == f"{address}\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 must be set up first")
def test_ctrl_c_does_not_wait_for_unfinished_uploads(start):
    child = start(*SERVE, "--host", "127.0.0.2")
    place = re.search(r"http://(127\.0\.0\.2):(\d+)/", child.stdout.readline())
    with urllib.request.urlopen(place[0]) as answer:  # any loopback address will do
        assert answer.status == 200
    with socket.create_connection((place[1], int(place[2])), 10) as connection:
        head = f"POST /api/image HTTP/1.1\r\nHost: {place[1]}\r\nExpect: 100-continue\r\n"
        connection.sendall(head.encode() + b"Content-Length: 1000\r\n\r\nabc")
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # it waits for the rest
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=15)
    assert (child.returncode, output, errors) == (0, "explorer ended\n", "")


def test_listening_elsewhere_is_warned_of(start):
    child = start(*SERVE, "--host", "0.0.0.0")
    assert "http://0.0.0.0:" in child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert errors == "warning: --host 0.0.0.0: anyone who can reach this machine can use it\n"
