"""A real server process to send requests to."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hanging import HUNG

START = """
import sys, json
from dataclasses import replace
from tracr.playground.limits import ServerLimits
from tracr.playground.serving import serve
def ready(address):
    print(address, flush=True)
serve("127.0.0.1", 0, replace(ServerLimits(), **json.loads(sys.argv[1])), ready=ready)
"""
QUICK = {"source": "y = indices + 1;", "vocab": ["a", "b"], "max_len": 4, "input": ["a", "b"]}
SLOW = {"source": "x = indices; " + "x = 1 - x; " * 100 + 'draw(x, "a"); ' * 6_000}
"""A program that takes half a minute."""


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class RunningServer:
    """A server process and its port."""

    process: subprocess.Popen[str]
    port: int

    def ask(
        self,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        method: str = "",
        wait: float = HUNG,
    ) -> Answer:
        """Send a request: GET, or POST if there is a body, which is JSON unless it is bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=wait)
        start = time.monotonic()
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method or ("GET" if body is None else "POST"), path, content, dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read(), time.monotonic() - start)
        finally:
            connection.close()

    def compile(self, tab: str = "", **fields: Any) -> Answer:
        """Compile a small program, changed by these fields."""
        return self.ask("/api/compile", {**QUICK, **fields}, {"X-Tracr-Tab": tab} if tab else None)

    def connect(self) -> socket.socket:
        """An open connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=HUNG)

    def workers(self) -> list[int]:
        """The process ids of its workers."""
        parents = {self.process.pid}
        found: list[int] = []
        for depth in range(2):  # the server, the process that forks, the workers
            children = [pid for pid, parent in _parents().items() if parent in parents]
            parents = set(children)
            found = children if depth else []
        return sorted(found)

    def stop(self) -> None:
        """Ask it to stop."""
        self.process.send_signal(signal.SIGTERM)


def _parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    return found


@contextlib.contextmanager
def running(**limits: Any) -> Iterator[RunningServer]:
    """A server with these limits, stopped at the end."""
    command = [sys.executable, "-c", START, json.dumps({"workers": 2, **limits})]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        yield RunningServer(process, port)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
