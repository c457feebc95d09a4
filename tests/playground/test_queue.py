"""The queue: nobody waits for a browser that uses more than its share, and stale requests leave."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracr.playground.limits import ServerLimits
from tracr.playground.queue import FairQueue, Job
from tracr.playground.rate import Browser
from tracr.playground.replies import RefusedRequest, Reply, json_reply

DONE = json_reply({})


def browser(name: str, address: str = "1.2.3.4") -> Browser:
    return Browser(address, name)


def job(tab: str, task: str = "compile", lasting: bool = False, address: str = "1.2.3.4") -> Job:
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    return Job(browser(tab, address), task, tab.encode(), future, lasting)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 10))


def test_browsers_take_turns() -> None:
    """One that sent many requests does not make the others wait for all of them."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        for number in range(5):
            queue.put(job("many", f"task {number}"))
        queue.put(job("one"))
        queue.put(job("two"))
        order = []
        for _ in range(7):
            taken = await queue.take(slow=False)
            order.append(taken.browser.tab)
            queue.done(taken, 0.1)
        assert order[:3] == ["many", "one", "two"]
        assert order[3:] == ["many"] * 4

    run(test())


def test_the_browser_that_used_least_goes_first() -> None:
    """Until its use is long ago."""

    async def test() -> None:
        now = [0.0]
        queue = FairQueue(ServerLimits(), lambda: now[0])
        for tab, seconds in (("more", 0.9), ("less", 0.1)):
            queue.put(job(tab))
            queue.done(await queue.take(slow=False), seconds)
        queue.put(job("more"))
        queue.put(job("less"))
        taken = await queue.take(slow=False)
        assert taken.browser.tab == "less"
        queue.done(taken, 0.1)
        now[0] += 600
        queue.put(job("less"))
        assert (await queue.take(slow=False)).browser.tab == "more"

    run(test())


def test_much_typing_is_not_slow() -> None:
    """Many quick requests stay in the quick lane, whatever they add up to."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        for _ in range(200):
            queue.put(job("typist"))
            queue.done(await queue.take(slow=False), 0.3)

    run(test())


def test_slow_requests_have_a_lane_of_their_own() -> None:
    """Those that were not done in a second, and the next ones of their browser, until one is quick."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        queue.put(job("slow"))
        taken = await queue.take(slow=False)
        queue.done(taken, 1.0)
        queue.put_slow(taken)
        quick = asyncio.ensure_future(queue.take(slow=False))
        assert await queue.take(slow=True) is taken
        queue.done(taken, 8.0)
        queue.put(job("slow"))
        queue.put(job("quick"))
        assert (await quick).browser.tab == "quick"
        again = await queue.take(slow=True)
        assert again.browser.tab == "slow"
        queue.done(again, 0.1)
        queue.put(job("slow"))
        assert (await queue.take(slow=False)).browser.tab == "slow"

    run(test())


def test_one_browser_runs_only_a_few() -> None:
    """Its other requests wait, though workers are free."""

    async def test() -> None:
        queue = FairQueue(ServerLimits(running_of_browser=2))
        for number in range(3):
            queue.put(job("many", f"task {number}"))
        first = await queue.take(slow=False)
        await queue.take(slow=False)
        third = asyncio.ensure_future(queue.take(slow=False))
        await asyncio.sleep(0.01)
        assert not third.done()
        queue.done(first, 0.1)
        assert (await third).task == "task 2"

    run(test())


def test_a_newer_request_replaces_the_older() -> None:
    """One that waits leaves, with the status 409, and the newer one has its place."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        older, other, newer = job("tab"), job("other"), job("tab")
        for one in (older, other, newer):
            queue.put(one)
        assert older.reply.result().status == 409
        assert queue.waiting == 2
        assert await queue.take(slow=False) is newer

    run(test())


def test_a_quick_request_that_runs_may_finish() -> None:
    """Else someone who types without a pause would never see an answer. If it turns out to be slow, it is dropped."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        older, slow = job("tab"), job("other")
        for one in (older, slow):
            queue.put(one)
            assert await queue.take(slow=False) is one
        for one in (older, slow):
            queue.put(job(one.browser.tab))
        assert not older.stale.is_set()
        queue.done(older, 0.1)
        older.finish(DONE)
        assert older.reply.result().status == 200
        queue.done(slow, 1.0)
        queue.put_slow(slow)
        assert slow.reply.result().status == 409

    run(test())


def test_a_slow_request_that_runs_is_stopped() -> None:
    """A newer one comes: the worker is told that nobody waits, and its answer comes too late."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        older = job("tab")
        queue.put(older)
        queue.done(await queue.take(slow=False), 1.0)
        queue.put_slow(older)
        assert await queue.take(slow=True) is older
        queue.put(job("tab"))
        assert older.stale.is_set()
        queue.done(older, 2.0)
        older.finish(DONE)
        assert older.reply.result().status == 409

    run(test())


@pytest.mark.parametrize(
    ("second", "tab"), [({"task": "levels"}, "tab"), ({}, ""), ({}, "other")], ids=["task", "no tab", "other tab"]
)
def test_other_requests_are_not_replaced(second: dict[str, Any], tab: str) -> None:
    """Of another task, of clients without a tab, of other tabs."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        first = job(tab and "tab")
        queue.put(first)
        queue.put(job(tab, **second))
        assert not first.reply.done()
        assert queue.waiting == 2

    run(test())


def test_lasting_requests_are_not_replaced() -> None:
    """Two downloads are two files."""

    async def test() -> None:
        queue = FairQueue(ServerLimits())
        first = job("tab", "download", lasting=True)
        queue.put(first)
        queue.put(job("tab", "download", lasting=True))
        assert not first.reply.done()

    run(test())


def test_the_queue_is_bounded() -> None:
    """In all, and for each address, with the status 503."""

    async def test() -> None:
        queue = FairQueue(ServerLimits(waiting=10, waiting_of_address=6))
        for number in range(6):
            queue.put(job(f"tab {number}"))
        with pytest.raises(RefusedRequest) as refused:
            queue.put(job("one more"))
        assert (refused.value.status, refused.value.retry_after > 0) == (503, True)
        for number in range(4):
            queue.put(job(f"tab {number}", address="5.6.7.8"))
        with pytest.raises(RefusedRequest):
            queue.put(job("one more", address="5.6.7.8"))
        assert queue.waiting == 10
        queue.put(job("tab 0"))  # takes the place of an older one

    run(test())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["compile", "format"])), max_size=40), st.data())
def test_every_request_is_answered_once(requests: list[tuple[str, str]], data: st.DataObject) -> None:
    """Whatever the order of arrivals, workers and clients that go away: each is taken, replaced or discarded."""

    async def test() -> None:
        queue, put = FairQueue(ServerLimits()), []
        taken: list[Job] = []
        for tab, task in requests:
            put.append(job(tab, task, lasting=task == "format"))
            queue.put(put[-1])
            match data.draw(st.sampled_from(["wait", "take", "leave"])):
                case "take" if queue.waiting:
                    taken.append(await asyncio.wait_for(queue.take(slow=False), 5))
                    queue.done(taken[-1], 0.1)
                case "leave":
                    queue.discard(put[0])
                    put[0].drop(DONE)
        while queue.waiting:
            taken.append(await queue.take(slow=False))
            queue.done(taken[-1], 0.1)
        assert len(set(taken)) == len(taken)
        assert all((one in taken) or one.reply.done() for one in put)
        assert queue.running == queue.waiting == 0

    run(test())
