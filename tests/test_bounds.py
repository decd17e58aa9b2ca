from __future__ import annotations

import asyncio
import contextvars

import pytest

from app import bounds
from app.bounds import Bound, Stepped


async def test_what_is_over_its_time_is_cancelled_and_told():
    bound = Bound(0.01)

    with pytest.raises(TimeoutError), bound:
        await asyncio.Event().wait()

    assert bound.expired
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_ends_in_time_is_left_alone():
    with Bound(60) as bound:
        value = await asyncio.sleep(0, "done")

    assert (value, bound.expired) == ("done", False)


async def test_a_time_out_of_the_inside_stays_what_it_is():
    bound = Bound(60)

    with pytest.raises(TimeoutError, match="mine"), bound:
        raise TimeoutError("mine")

    assert not bound.expired


async def test_a_cancellation_from_outside_goes_on():
    begun = asyncio.Event()

    async def work() -> None:
        with Bound(60):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_time_in_which_another_held_the_loop_does_not_count(monkeypatch: pytest.MonkeyPatch):
    stalls = bounds.Stalls()
    monkeypatch.setattr(bounds, "STALLS", stalls)
    bound = Bound(60)

    with bound:
        stalls.total = 0.05
        bound._over()  # the timer, as if the 60 s were over
        first = bound.expired
        bound._over()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)

    assert (first, bound.expired) == (False, True)


async def test_a_long_step_is_a_stall_and_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setattr(bounds, "BLOCKING_SECONDS", 0)
    monkeypatch.setattr(bounds, "STALLS", stalls := bounds.Stalls())

    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    stepped = Stepped(work(), {"job": 7})

    assert not stepped.begin()
    assert await stepped == "done"

    assert stalls.total > 0
    assert {record.getMessage() for record in caplog.records} == {"job blocked the event loop"}
    assert caplog.records[0].__dict__["job"] == 7


async def test_steps_hand_errors_and_cancellations_in_and_out():
    begun = asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise KeyError("cleaned up") from None

    async def stepped() -> None:
        steps = Stepped(work(), {})
        assert not steps.begin()
        await steps

    task = asyncio.create_task(stepped())
    await begun.wait()
    task.cancel()

    with pytest.raises(KeyError, match="cleaned up"):
        await task


async def test_what_waits_for_nothing_ends_with_its_first_step():
    async def work() -> str:
        return "done"

    stepped = Stepped(work(), {})

    assert stepped.begin()
    assert stepped.value == "done"


async def test_what_one_sets_for_itself_another_in_the_same_task_does_not_see():
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    async def work(name: str) -> None:
        seen.append(who.get())
        who.set(name)
        await asyncio.sleep(0)
        seen.append(who.get())

    for name in ("first", "second"):
        stepped = Stepped(work(name), {})
        stepped.begin()
        await stepped

    assert seen == ["nobody", "first", "nobody", "second"]
