"""Hostile and slow clients, killed workers, restarts: others are unharmed. Every test has a real server process."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from tests.hanging import HUNG
from tests.playground.running import QUICK, SLOW, Answer, RunningServer, running

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.slow

PATIENCE = 4.0  # seconds that a quick request may take during an attack, on a machine that does nothing else
LOADED = 20  # and so many times what it takes without an attack, on a machine that is busy with other things


@contextmanager
def meanwhile(*calls: Callable[[], Any]) -> Iterator[list[Any]]:
    """Run calls in threads during the block; their results are there after it."""
    results: list[Any] = []
    threads = [threading.Thread(target=lambda call=call: results.append(call())) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield results
    finally:
        for thread in threads:
            thread.join()


def unharmed(server: RunningServer, times: int = 10, usual: float = 0.0) -> float:
    """Others are answered, quickly and rightly; the longest time. `usual` is that without an attack."""
    longest = 0.0
    for number in range(times):
        answer = server.compile(f"honest {number}")
        assert answer.status == 200, answer.body
        assert answer.json["outputs"]["model"] == [1, 2]
        longest = max(longest, answer.seconds)
    assert longest < PATIENCE + LOADED * usual
    return longest


HOSTILE: dict[str, dict[str, Any]] = {
    "nested brackets": {"source": "y = " + "(" * 30_000 + "indices" + ")" * 30_000 + ";"},
    "nested operators": {"source": "y = " + "-" * 90_000 + "indices;"},
    "endless recursion": {"source": "def f(x) { return f(f(x)); } y = f(indices);"},
    "endless doubling": {"source": "x = indices; " + "x = x + x; " * 8_000},
    "long loops": SLOW,
    "large lists": {"source": "x = [[[i + j for i in range(1000)] for j in range(1000)] for k in range(99)];"},
    "large values": {"source": "x = indices; " + "x = x * 1000003; " * 3_000},
    "huge vocabulary": {"source": "y = tokens;", "vocab": [f"token {n}" for n in range(8_000)]},
    "large program": {
        "source": "".join(f"x{n} = selector_width(select(tokens, indices + {n}, ==));\n" for n in range(900))
        + "y = "
        + " + ".join(f"x{n}" for n in range(900))
        + ";",
        "vocab": [str(n) for n in range(256)],
        "max_len": 60,
        "level": 2,
    },
    "large tables": {
        "source": "x = selector_width(select(tokens_int, tokens_int, <)) * tokens_int; y = x * x + tokens_int * x;",
        "vocab": [str(n * n) for n in range(256)],
        "max_len": 60,
        "level": 2,
    },
    "many drawings": {"source": "y = indices; " + 'draw(y, "ab"); ' * 6_000},
    "files of the server": {"source": 'load "/etc/passwd"; load "../../setup"; y = indices;'},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs(name: str) -> None:
    """Several at the same time; each gets an answer within the limit, and the others hardly notice."""
    with running(seconds=6.0, address_burst=10_000) as server:
        usual = unharmed(server, usual=1)
        calls = [lambda n=n: server.compile(f"hostile {n}", **HOSTILE[name]) for n in range(6)]
        with meanwhile(*calls) as answers:
            time.sleep(0.2)
            unharmed(server, usual=usual)
        assert {answer.status for answer in answers} <= {200, 413, 422}
        assert all(answer.status == 200 or answer.json["error"]["message"] for answer in answers)
        unharmed(server, usual=1)
        assert server.ask("/health").json["workers"] == 2


def test_a_flood_of_slow_programs_from_one_tab() -> None:
    """It waits for itself."""
    with running(seconds=6.0, burst=1_000) as server:
        usual = unharmed(server, usual=1)
        calls = [lambda: server.ask("/api/levels", {**QUICK, **SLOW}, {"X-Tracr-Tab": "flood"}) for _ in range(30)]
        with meanwhile(*calls) as answers:
            time.sleep(0.5)
            unharmed(server, usual=usual)
        assert {answer.status for answer in answers} <= {409, 422}


def test_a_program_over_the_time_limit_is_stopped() -> None:
    """With a message; the worker is another one."""
    with running(seconds=1.0, workers=1, slow_workers=1) as server:
        before = server.workers()
        usual = unharmed(server, 3, usual=1)
        answer = server.compile(**SLOW)
        assert answer.status == 422
        assert "longer than 1 seconds" in answer.json["error"]["message"]
        assert answer.seconds < 30 + LOADED * usual
        unharmed(server, 3, usual=1)
        assert server.workers() != before


def test_a_program_over_the_memory_limit_is_refused() -> None:
    """The worker's own limit, where the compiler's estimate allows more."""
    size = 230 * 1024**2
    with running(memory=size) as server:
        answer = server.compile(**HOSTILE["large tables"])
        assert answer.status in (422, 200)
        unharmed(server, 3, usual=1)
        for pid in server.workers():
            with open(f"/proc/{pid}/limits") as limits:
                found = next(line for line in limits if line.startswith("Max address space"))
            assert str(size) in found


def test_killed_workers_are_replaced() -> None:
    """Idle ones: there are as many as before, with other process ids, and requests are answered."""
    with running() as server:
        before = server.workers()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        unharmed(server, 3, usual=1)
        deadline = time.monotonic() + HUNG
        while len(server.workers()) < len(before) and time.monotonic() < deadline:
            time.sleep(0.1)
        after = server.workers()
        assert len(after) == len(before)
        assert not set(after) & set(before)
        assert server.ask("/health").json["workers"] == 2


def test_a_request_survives_the_death_of_its_worker() -> None:
    """All workers are killed while they work; every request is answered rightly."""
    with running(address_burst=10_000, burst=10_000) as server:

        def edit(user: int) -> list[Answer]:
            return [server.compile(f"user {user}") for _ in range(10)]

        with meanwhile(*(lambda user=user: edit(user) for user in range(4))) as answers:
            for _ in range(6):
                time.sleep(0.1)
                for pid in server.workers()[:2]:
                    with suppress(ProcessLookupError):  # it was replaced just now
                        os.kill(pid, signal.SIGKILL)
        assert [answer.status for user in answers for answer in user] == [200] * 40


def test_the_process_that_forks_is_replaced() -> None:
    """If it is killed, too."""
    with running() as server:
        (forking,) = {_parent(pid) for pid in server.workers()}
        os.kill(forking, signal.SIGKILL)
        time.sleep(1)
        unharmed(server, 5, usual=1)
        assert server.ask("/health").json["workers"] == 2


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def test_workers_end_with_a_server_that_is_killed() -> None:
    """No process is left."""
    with running() as server:
        workers = server.workers()
        server.process.kill()
        server.process.wait()
        deadline = time.monotonic() + HUNG
        while any(os.path.exists(f"/proc/{pid}") for pid in workers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


def received(connection: socket.socket, within: float) -> int:
    """How many bytes come before the server closes a connection, which it must do in time."""
    connection.settimeout(within)
    size = 0
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            size += len(part)
    return size


def closed(connection: socket.socket, within: float) -> bool:
    """Whether the server closes a connection in time."""
    try:
        received(connection, within)
    except TimeoutError:
        return False
    return True


def test_slow_clients() -> None:
    """Connections that send nothing, half a header, or half a body do not keep their places."""
    with running(idle=2.0, body_seconds=2.0) as server, ExitStack() as stack:
        silent = [stack.enter_context(server.connect()) for _ in range(100)]
        header = [stack.enter_context(server.connect()) for _ in range(100)]
        body = [stack.enter_context(server.connect()) for _ in range(100)]
        for one in header:
            one.sendall(b"POST /api/compile HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        for one in body:
            one.sendall(b"POST /api/compile HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        unharmed(server, usual=1)
        for one in header[:50]:
            one.sendall(b"x")  # a byte now and then keeps no connection open
        assert all(closed(one, 30) for one in (*silent, *header, *body))
        unharmed(server, 3, usual=1)


def test_a_client_that_does_not_read() -> None:
    """Its answers wait for a while, then the connection is closed: most answers are never sent."""
    with running(idle=2.0, unread=3.0) as server, ExitStack() as stack:
        request = b"GET /static/explorer.js HTTP/1.1\r\nHost: x\r\n\r\n"
        slow = [stack.enter_context(server.connect()) for _ in range(50)]
        for one in slow:
            one.sendall(request * 200)
        unharmed(server, 5, usual=1)
        time.sleep(6)
        unharmed(server, 3, usual=1)
        every = 200 * len(server.ask("/static/explorer.js").body)
        assert max(received(one, 30) for one in slow) < every / 2


def test_many_connections() -> None:
    """More than the server keeps for one address: the oldest without a request are closed, new ones are answered."""
    with running(connections=100) as server, ExitStack() as stack:
        for _ in range(900):
            stack.enter_context(server.connect())
        unharmed(server, usual=1)


def test_clients_that_go_away() -> None:
    """Their requests leave the queue, and their programs are stopped."""
    with running(seconds=30.0, workers=1, slow_workers=1, address_burst=10_000) as server:
        body = b'{"source": "%s"}' % SLOW["source"].encode()
        head = b"POST /api/compile HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        for _ in range(20):
            with server.connect() as connection:
                connection.sendall(head + body)
                time.sleep(0.05)
        unharmed(server, 5, usual=1)
        assert server.ask("/health").json["waiting"] == 0


def test_a_full_queue() -> None:
    """Status 503 with Retry-After; what was accepted is answered."""
    with running(waiting=5, waiting_of_address=5, workers=1, slow_workers=4, seconds=0.5) as server:
        calls = [lambda n=n: server.compile(f"tab {n}", **SLOW) for n in range(12)]
        with meanwhile(*calls) as answers:
            pass
        statuses = [answer.status for answer in answers]
        assert statuses.count(503) >= 5
        assert set(statuses) == {422, 503}
        assert all("retry-after" in answer.headers for answer in answers if answer.status == 503)
        unharmed(server, 2, usual=1)


def test_a_gentle_stop() -> None:
    """After SIGTERM what runs is finished, new requests get 503, and the process ends with status 0."""
    with running(seconds=4.0) as server:
        with meanwhile(lambda: server.compile(**SLOW)) as answers:
            time.sleep(0.7)
            server.stop()
            time.sleep(0.3)
            refused = server.compile()
            assert refused.status == 503
            assert int(refused.headers["retry-after"]) >= 1
            health = server.ask("/health")
            assert (health.status, health.json["status"]) == (503, "stopping")
        assert [answer.status for answer in answers] == [422]
        assert server.process.wait(HUNG) == 0


def test_workers_survive_the_signal_that_stops_the_server() -> None:
    """A service manager sends SIGTERM to all processes of a service: running programs still finish."""
    with running(seconds=4.0) as server:
        with meanwhile(lambda: server.compile(**SLOW)) as answers:
            time.sleep(0.7)
            for pid in server.workers():
                os.kill(pid, signal.SIGTERM)
            server.stop()
        assert "longer than" in answers[0].json["error"]["message"]
        assert server.process.wait(HUNG) == 0
