"""Which connections are closed: those without a request for long, and the oldest of those if there are too many."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracr.playground.connections import ConnectionSweeper
from tracr.playground.limits import ServerLimits

LIMITS = ServerLimits(idle=20, unread=60, connections=3)


@dataclass
class Transport:
    """What the sweeper uses of a transport."""

    unread: int = 0
    aborted: bool = False

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


@dataclass
class Cycle:
    """A request and its answer."""

    response_complete: bool


@dataclass(eq=False)
class Opened:
    """What the sweeper uses of a connection."""

    client: tuple[str, int] = ("1.2.3.4", 5000)
    cycle: Cycle | None = None
    transport: Transport = field(default_factory=Transport)


class Times:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_connections_without_a_request_are_closed() -> None:
    """New ones and those whose last answer is complete; not those that are being answered."""
    times = Times()
    sweeper = ConnectionSweeper(LIMITS, times)
    silent, answered, working = Opened(), Opened(cycle=Cycle(True)), Opened(cycle=Cycle(False))
    for times.now in (0.0, 10.0, 19.0, 21.0):
        sweeper.sweep([silent, answered, working])
        assert [one.transport.aborted for one in (silent, answered, working)] == [times.now > 20] * 2 + [False]


def test_the_time_begins_again_after_a_request() -> None:
    """A browser that sends a request every few seconds keeps its connection."""
    times = Times()
    sweeper, connection = ConnectionSweeper(LIMITS, times), Opened(cycle=Cycle(True))
    for times.now in range(0, 100, 15):
        assert connection.cycle is not None
        connection.cycle.response_complete = not connection.cycle.response_complete
        sweeper.sweep([connection])
    assert not connection.transport.aborted


def test_slow_readers_get_more_time() -> None:
    """An answer that is not read yet is waited for, but not without end."""
    times = Times()
    sweeper, slow = ConnectionSweeper(LIMITS, times), Opened(cycle=Cycle(True), transport=Transport(unread=1))
    for times.now in (0.0, 30.0, 59.0):
        sweeper.sweep([slow])
    assert not slow.transport.aborted
    times.now = 61.0
    sweeper.sweep([slow])
    assert slow.transport.aborted


def test_requests_that_wait_for_a_reader_keep_no_connection() -> None:
    """A client that sends many requests and reads no answer: the next answer is not complete, but it waits."""
    times = Times()
    sweeper, waiting = ConnectionSweeper(LIMITS, times), Opened(cycle=Cycle(False), transport=Transport(unread=1))
    for times.now in (0.0, 59.0, 61.0):
        sweeper.sweep([waiting])
        assert waiting.transport.aborted == (times.now > 60)


def test_the_time_of_an_unread_answer_begins_with_it() -> None:
    """Not with the silence before the request."""
    times = Times()
    sweeper, connection = ConnectionSweeper(LIMITS, times), Opened(cycle=Cycle(True))
    sweeper.sweep([connection])
    connection.transport.unread = 1
    for times.now in (19.0, 61.0, 78.0, 80.0):
        sweeper.sweep([connection])
        assert connection.transport.aborted == (times.now > 79)


def test_too_many_of_one_address_lose_the_oldest() -> None:
    """Those that are being answered stay, and other addresses too."""
    times = Times()
    sweeper = ConnectionSweeper(LIMITS, times)
    working, elsewhere = Opened(cycle=Cycle(False)), Opened(("5.6.7.8", 1))
    silent = [Opened() for _ in range(5)]
    for number in range(5):
        times.now = float(number)
        sweeper.sweep([working, elsewhere, *silent[: number + 1]][: number + 3])
    assert [one.transport.aborted for one in silent] == [True, True, True, False, False]
    assert not working.transport.aborted
    assert not elsewhere.transport.aborted
