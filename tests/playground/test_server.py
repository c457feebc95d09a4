"""The server as a client sees it: a real process, its routes, statuses and headers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.hanging import HUNG
from tests.playground.running import QUICK, SLOW, RunningServer, running
from tracr.playground.page_files import INDEX, page_files
from tracr.playground.requests import TASKS

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """One server for all tests that leave it as it was."""
    with running(burst=10_000, address_burst=10_000) as found:
        yield found


def test_health(server: RunningServer) -> None:
    """What a watchdog asks."""
    answer = server.ask("/health")
    assert answer.status == 200
    assert answer.json == {"status": "ok", "workers": 2, "waiting": 0, "running": 0}


def test_a_program_compiles(server: RunningServer) -> None:
    """Over HTTP as in a worker."""
    answer = server.compile()
    assert answer.status == 200
    assert answer.json["outputs"] == {"program": [1, 2], "model": [1, 2]}


def test_an_error_has_its_place(server: RunningServer) -> None:
    """Status 422, and the error as JSON."""
    answer = server.compile(source="y =\n  indicez;")
    assert answer.status == 422
    found = answer.json["error"]
    assert (found["line"], found["column"], found["hint"]) == (2, 3, "did you mean indices?")


@pytest.mark.parametrize("path", ["/", "/static/explorer.js", "/health", "/api/examples", "/nothing", "/api/compile"])
def test_every_answer_has_the_security_headers(server: RunningServer, path: str) -> None:
    """Also errors; and none sets a cookie."""
    headers = server.ask(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src 'self'" in headers["content-security-policy"].split("; ")
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "server" not in headers


def test_the_page(server: RunningServer) -> None:
    """The built page, or a message that it is missing, which is an error."""
    answer = server.ask("/")
    assert answer.status == page_files()[INDEX].status
    assert answer.body == page_files()[INDEX].content
    assert answer.headers["content-type"].startswith("text/html")


def test_files_are_sent_once(server: RunningServer) -> None:
    """A browser that has the same version gets no body."""
    first = server.ask("/static/explorer.js")
    assert first.status == 200
    second = server.ask("/static/explorer.js", headers={"If-None-Match": first.headers["etag"]})
    assert (second.status, second.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/",
        "/../../../../etc/passwd",
        "/page/index.html",
        "/api/../health/../etc/passwd",
    ],
)
def test_no_path_leads_out(server: RunningServer, path: str) -> None:
    """Only names of the list are served."""
    answer = server.ask(path)
    assert answer.status == 404
    assert answer.json["error"]["message"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/compile"), ("DELETE", "/"), ("POST", "/health")])
def test_wrong_methods(server: RunningServer, method: str, path: str) -> None:
    """Status 405."""
    assert server.ask(path, method=method).status == 405


@pytest.mark.parametrize("task", sorted(TASKS))
def test_malformed_bodies(server: RunningServer, task: str) -> None:
    """Every route: 400 for what is not JSON, 422 for wrong fields, 413 for too much."""
    assert server.ask(f"/api/{task}", b"{").status == 400
    assert server.ask(f"/api/{task}", bytes(range(256))).status == 400
    assert server.ask(f"/api/{task}", b"[" * 100_000).status == 400
    assert server.ask(f"/api/{task}", {"sauce": "y = 1;"}).status == 422
    assert server.ask(f"/api/{task}", b"x" * 200_000).status == 413


def test_large_bodies_without_a_length(server: RunningServer) -> None:
    """A body in chunks is counted as it comes."""
    with server.connect() as connection:
        connection.sendall(b"POST /api/compile HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(40):
            connection.sendall(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
        assert connection.recv(12) == b"HTTP/1.1 413"


def test_garbage_is_answered(server: RunningServer) -> None:
    """Bytes that are not HTTP."""
    with server.connect() as connection:
        connection.sendall(bytes(range(256)) * 10 + b"\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 400"
    assert server.compile().status == 200


def test_requests_of_other_sites_are_refused(server: RunningServer) -> None:
    """A page elsewhere cannot use a server on this computer."""
    refused = server.ask("/api/compile", QUICK, {"Sec-Fetch-Site": "cross-site"})
    assert refused.status == 403
    assert server.ask("/api/compile", QUICK, {"Sec-Fetch-Site": "same-origin"}).status == 200


def test_examples_and_puzzles(server: RunningServer) -> None:
    """Each is a list; the examples have what the editor needs."""
    examples = server.ask("/api/examples").json
    assert all(set(one) == {"name", "title", "source", "vocab", "max_len", "input"} for one in examples)
    assert len(server.ask("/api/puzzles").json) >= 15
    assert server.ask("/api/check", {"puzzle": 1, "source": "y = tokens;"}).json["solved"] is False


def test_a_download_has_a_name(server: RunningServer) -> None:
    """And is kept, not shown."""
    answer = server.ask("/api/download", {**QUICK, "kind": "python"})
    assert answer.headers["content-disposition"] == 'attachment; filename="y.py"'
    assert b"import tracr" in answer.body


def in_threads(*calls: Any) -> list[Any]:
    """The results of calls that run at the same time."""
    results: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda n=n, call=call: results.update({n: call()})) for n, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(len(calls))]


def test_a_newer_request_of_a_tab_stops_the_older(server: RunningServer) -> None:
    """The older gets 409 long before its program would end."""

    def newer() -> Any:
        time.sleep(0.3)
        return server.compile("the tab")

    older, answer = in_threads(lambda: server.compile("the tab", **SLOW), newer)
    assert (older.status, answer.status) == (409, 200)
    assert older.seconds < 8 + 10 * answer.seconds  # the second for a busy machine


def test_the_rate_of_one_browser_is_limited() -> None:
    """Status 429 with Retry-After; other tabs of the same address are not affected."""
    with running(burst=5, rate=0.5) as server:
        statuses = [server.compile("busy").status for _ in range(8)]
        assert statuses.count(200) in (5, 6)
        refused = server.compile("busy")
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json["error"]["message"]
        assert server.compile("calm").status == 200


def test_starting_on_a_busy_port(server: RunningServer) -> None:
    """An error that says what to do."""
    command = [sys.executable, "-m", "tracr.cli", "playground", "--port", str(server.port)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"port {server.port}" in done.stderr
    assert "--port 0" in done.stderr


def test_the_command_starts_and_stops() -> None:
    """`tracr playground` prints its address, listens on this computer only, and ends with status 0 after SIGTERM."""
    command = [sys.executable, "-m", "tracr.cli", "playground", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line
        server = RunningServer(process, int(line.split(":")[2].split()[0]))
        assert server.ask("/health").json["workers"] == 1
        server.stop()
        assert process.wait(HUNG) == 0


def test_a_page_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The placeholder says how to build it."""
    monkeypatch.setattr("tracr.playground.page_files.resources.files", lambda package: tmp_path)
    (tmp_path / "explorer.js").write_text("")
    file = page_files()[INDEX]
    assert file.status == 500
    assert b"make bundle" in file.content
    assert json.dumps(sorted(page_files())) == '["explorer.js", "index.html"]'
    assert replace(file, content=b"").tag != file.tag
