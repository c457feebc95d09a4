"""Measures the playground's server with fifty users who edit programs at the same time, on two processors.

    python benchmarks/playground_load.py            fifty users, two minutes; writes docs/benchmarks/playground.json
    python benchmarks/playground_load.py --quick    few users, a few seconds, writes nothing

Starts `tracr playground` and sends the requests of users who edit: each opens an example of the gallery, types its last
statement again and adds a comment; its page asks for a compilation about every 1.5 seconds, whether the last one is
answered or not. Now and then a user compares the levels or checks a puzzle. Server and users share two processors.
Every answer is compared with the one that the compiler gives without a server. A request is lost if it has no answer, a
wrong one, or a refusal; that the newer request of a tab replaces an older one (status 409) is not a loss. Needs the
extra `web`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tracr.playground.compiling import answer
from tracr.playground.gallery import gallery
from tracr.playground.limits import ServerLimits
from tracr.playground.requests import read_task
from tracr.threads import processors

RESULT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "playground.json"
PROCESSORS = 2
PAUSE = (0.5, 2.5)  # seconds between two requests of a user
LEVELS, CHECKS = 0.03, 0.05  # the parts of the requests that compare levels and check puzzles
REPLACED = 409
QUICK_ENOUGH = 0.3  # seconds


@dataclass
class Measured:
    """The times of the answers, the statuses, the answers, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    answers: list[tuple[str, UserRequest, int, Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Compare the answers with the right ones, after the clock has stopped."""
        for tab, request, status, found in self.answers:
            if (status, found) != request.expected:
                self.lost.append(
                    f"{tab}: {request.task}: {status} instead of {request.expected[0]}: {str(found)[:300]}"
                )


@dataclass(frozen=True)
class UserRequest:
    """A path and a body."""

    task: str
    body: bytes

    @property
    def expected(self) -> tuple[int, Any]:
        return expected(self.task, self.body)


@cache
def expected(task: str, body: bytes) -> tuple[int, Any]:
    """The status of the right answer, and the part of it that is compared."""
    reply = answer(json.dumps(read_task(task, body)).encode(), ServerLimits())
    return reply.status, compared(json.loads(reply.body))


def compared(content: dict[str, Any]) -> Any:
    """What of an answer must be the same: outputs, sizes, verdicts, errors."""
    if "levels" in content:
        return [one["summary"] for one in content["levels"]]
    return [content.get(name) for name in ("outputs", "summary", "solved", "error")]


def typed(source: str) -> list[str]:
    """The texts of a user who types the last statement of this source again, and a comment; two of them are wrong."""
    source = source.rstrip()
    start = source.rstrip(";").rfind(";") + 1
    half = (start + len(source)) // 2
    return [source, source[:half], source[:-1], source, f"{source}\n# mine", f"{source}\n# my own"]


def edits(rng: random.Random) -> Sequence[UserRequest]:
    """What a user sends, in order."""
    examples, found = gallery(), []
    for example in rng.sample(examples, len(examples)):
        level = rng.choice((0, 1, 1, 1, 2))
        for text in typed(example["source"]):
            settings = {"vocab": example["vocab"], "max_len": example["max_len"], "level": level}
            body = json.dumps({"source": text, **settings}).encode()
            found.append(UserRequest("compile", body))
            chance = rng.random()
            if chance < LEVELS:
                found.append(UserRequest("levels", body))
            elif chance < LEVELS + CHECKS:
                found.append(UserRequest("check", json.dumps({"puzzle": rng.randint(1, 8), "source": text}).encode()))
    return found


async def ask(port: int, tab: str, request: UserRequest) -> tuple[int, bytes]:
    """Send a request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /api/{request.task} HTTP/1.1\r\nHost: localhost\r\nX-Tracr-Tab: {tab}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(request.body)}\r\n\r\n".encode() + request.body)
    top, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return int(top.split()[1]), body


async def one_request(port: int, tab: str, request: UserRequest, measured: Measured) -> None:
    """Send a request, and keep its answer."""
    start = time.monotonic()
    try:
        status, body = await ask(port, tab, request)
    except (OSError, IndexError, ValueError) as error:
        measured.lost.append(f"{tab}: {request.task}: no answer: {error!r}")
        return
    measured.statuses[status] += 1
    if status == REPLACED:
        return
    measured.seconds.append(time.monotonic() - start)
    measured.answers.append((tab, request, status, compared(json.loads(body))))


async def user(port: int, number: int, seconds: float, measured: Measured) -> None:
    """One user, who does not wait for answers."""
    rng, pending = random.Random(number), []
    end = time.monotonic() + seconds
    await asyncio.sleep(rng.uniform(0, PAUSE[1]))
    for request in edits(random.Random(number)):
        if time.monotonic() > end:
            break
        pending.append(asyncio.create_task(one_request(port, f"user {number}", request, measured)))
        await asyncio.sleep(rng.uniform(*PAUSE))
    await asyncio.gather(*pending)


async def load(port: int, users: int, seconds: float) -> Measured:
    """All users at the same time."""
    measured = Measured()
    await asyncio.gather(*(user(port, number, seconds, measured) for number in range(users)))
    return measured


def summary(measured: Measured, users: int, seconds: float, before: float) -> dict[str, Any]:
    """The result as JSON."""
    cuts = statistics.quantiles(measured.seconds, n=100)
    quick = sum(one < QUICK_ENOUGH for one in measured.seconds) / len(measured.seconds)
    return {
        "users": users,
        "seconds": seconds,
        "processors": min(PROCESSORS, processors()),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "load average before": round(before, 1),
        "requests": measured.statuses.total() + sum("no answer" in one for one in measured.lost),
        "statuses": {str(status): count for status, count in sorted(measured.statuses.items())},
        "lost": len(measured.lost),
        "p50 ms": round(cuts[49] * 1000),
        "p95 ms": round(cuts[94] * 1000),
        "p99 ms": round(cuts[98] * 1000),
        "longest ms": round(max(measured.seconds) * 1000),
        "under 300 ms": round(quick, 4),
    }


def main() -> None:
    """Start the server, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--note", default="", help="a remark about the machine, kept in the result")
    parser.add_argument("--quick", action="store_true", help="5 users, 5 seconds; nothing is written")
    options = parser.parse_args()
    users, seconds = (5, 5.0) if options.quick else (options.users, options.seconds)
    before = os.getloadavg()[0]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    command = [sys.executable, "-m", "tracr.cli", "playground", "--port", "0", "--workers", str(PROCESSORS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split(":")[2].split()[0])
            measured = asyncio.run(load(port, users, seconds))
        finally:
            server.terminate()
    measured.check()
    result = summary(measured, users, seconds, before) | ({"note": options.note} if options.note else {})
    print(json.dumps(result, indent=2))
    print(*measured.lost[:20], sep="\n")
    if not options.quick:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    sys.exit(bool(measured.lost))


if __name__ == "__main__":
    main()
