"""A tick that finds more than it may run wakes others for it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app import fan_out, tick
from app.context import Context, Service
from app.domain.errors import DatabaseUnavailable
from app.domain.jobs import Done
from app.fan_out import FanOut
from tests.fakes.batches import CRON_SECRET, Handle, a_batch, a_service, runnable, watched
from tests.fakes.replica import Replica
from tests.flow.service import free_port


async def done(payload: Any, ctx: Context) -> Done:
    return Done()


def a_ringing(database_url: str, folder: Path, url: str, *, most: int = 2, handle: Handle = done) -> Service:
    """A service with one job type, `greet`, that rings at `url`."""
    service = a_service(database_url, folder, f"[tick]\nfan_out = {most}\n", PUBLIC_URL=url)
    return dataclasses.replace(service, handlers={"greet": runnable("greet", handle, timeout=1)})


async def put_in(service: Service, count: int, **more: Any) -> None:
    for _ in range(count):
        await service.stores.jobs.enqueue(type="greet", **more)


async def ticked(service: Service, *, max_jobs: int, budget: float = 25) -> dict[str, Any]:
    return await tick.run(service, budget=timedelta(seconds=budget), max_jobs=max_jobs, trigger="test")


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.name == "app.fan_out"]


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    async with Replica() as replica:
        yield replica


@pytest.mark.parametrize(
    ("due", "most", "rings"),
    [(10, 2, 0), (11, 2, 1), (20, 2, 1), (21, 2, 2), (60, 2, 2), (60, 10, 5), (60, 0, 0)],
)
async def test_as_many_are_woken_as_there_is_work_for(
    database_url: str, tmp_path: Path, replica: Replica, *, due: int, most: int, rings: int
):
    service = a_ringing(database_url, tmp_path, replica.url, most=most)
    await put_in(service, due)

    summary = await ticked(service, max_jobs=10)

    assert len(replica.rung) == rings
    assert (summary["status"], summary["jobs"]["done"], summary["jobs"]["remaining"]) == ("ok", 10, due - 10)


async def test_what_no_claim_could_take_wakes_nobody(database_url: str, tmp_path: Path, replica: Replica):
    service = a_ringing(database_url, tmp_path, replica.url)
    await put_in(service, 20, serial_key="one after the other")

    await ticked(service, max_jobs=5)

    assert replica.rung == []


async def test_without_the_setting_no_statement_is_made_for_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counted = {}
    for most in (0, 1):
        service = a_ringing(database_url, tmp_path, "http://127.0.0.1:9", most=most)
        await put_in(service, 1)
        with watched(monkeypatch) as made:
            await ticked(service, max_jobs=5)
        counted[most] = sum("wakebell.count_startable" in statement for statement in made)

    assert counted == {0: 0, 1: 1}


async def test_the_drain_has_what_the_tick_has_left(database_url: str, tmp_path: Path, replica: Replica):
    service = a_ringing(database_url, tmp_path, replica.url, most=1)
    await put_in(service, 3)

    async with a_batch(service, budget=25, elapsed=10.5, max_jobs=2) as ctx, FanOut(ctx, ["greet"]) as others:
        await others.ring()
        await others.answers()

    [asked] = replica.asked
    assert asked["max_jobs"] == "2"
    assert 11 < float(asked["budget"]) <= 12.5


async def test_with_too_little_time_left_nobody_is_woken(database_url: str, tmp_path: Path, replica: Replica):
    service = a_ringing(database_url, tmp_path, replica.url)
    await put_in(service, 3)

    async with a_batch(service, budget=25, elapsed=22.5, max_jobs=1) as ctx, FanOut(ctx, ["greet"]) as others:
        await others.ring()

    assert replica.rung == []


async def test_the_rings_stay_open_while_the_tick_drains_and_it_waits_for_their_answers(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    drained = asyncio.Event()

    class Waiting(Replica):
        async def answer(self, *given: Any) -> None:
            await drained.wait()
            await super().answer(*given)

    async def handle(payload: Any, ctx: Context) -> None:
        assert waiting.rung == []
        drained.set()

    async with Waiting() as waiting:
        service = a_ringing(database_url, tmp_path, waiting.url, handle=handle)
        await put_in(service, 3)

        summary = await ticked(service, max_jobs=1)

    assert (len(waiting.rung), summary["jobs"]["claimed"]) == (2, 1)
    [told] = lines(caplog)
    jobs = {"claimed": 6, "done": 4, "retrying": 2, "snoozed": 0, "failed": 0}
    assert (told["msg"], told["rings"], told["answered"], told["jobs"]) == ("replicas rung", 2, 2, jobs)


@pytest.mark.parametrize("does", [500, 302, 401, b"nonsense", "hang up", "dead"])
async def test_whoever_does_not_wake_is_one_line_in_the_log_and_changes_nothing(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, does: int | bytes | str
):
    async with Replica(does) as replica:
        url = f"http://127.0.0.1:{free_port()}" if does == "dead" else replica.url
        service = a_ringing(database_url, tmp_path, url)
        await put_in(service, 30)

        summary = await ticked(service, max_jobs=10)

    assert (summary["status"], summary["errors"]) == ("ok", [])
    assert (summary["jobs"]["done"], summary["jobs"]["remaining"]) == (10, 20)
    [warning] = [line for line in lines(caplog) if line["levelno"] >= logging.WARNING]
    assert (warning["msg"], warning["rings"], len(warning["reasons"])) == ("replicas not woken", 2, 1)
    assert CRON_SECRET not in str(lines(caplog))


async def test_a_replica_that_never_answers_is_left_when_the_tick_must_end(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(fan_out, "WAKING", timedelta(seconds=-3))  # else it would wait for five seconds here
    async with Replica("hang") as replica:
        service = a_ringing(database_url, tmp_path, replica.url, most=1)
        await put_in(service, 2)
        async with a_batch(service, budget=4, elapsed=5, max_jobs=1) as ctx, FanOut(ctx, ["greet"]) as others:
            await others.ring()
            await replica.held.acquire()
            await others.answers()
            left = ctx.deadline.left

    assert left < timedelta(seconds=0.2)
    assert lines(caplog)[-1]["reasons"] == ["127.0.0.1 did not answer in time"]


async def test_an_order_to_stop_ends_the_waiting(database_url: str, tmp_path: Path):
    async with Replica("hang") as replica:
        service = a_ringing(database_url, tmp_path, replica.url, most=1)
        await put_in(service, 2)
        ticking = asyncio.create_task(ticked(service, max_jobs=1, budget=300))
        await replica.held.acquire()

        service.stopping.request()

        summary = await ticking
    assert summary["errors"] == ["the process was told to stop; what it had not started is still due"]


async def test_a_tick_that_loses_its_database_leaves_no_ring_open(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def losing(*_: Any) -> None:
        await hanging.held.acquire()
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(tick._Batch, "_compose_for_latecomers", losing)
    async with Replica("hang") as hanging:
        service = a_ringing(database_url, tmp_path, hanging.url, most=1)
        await put_in(service, 2)
        before = asyncio.all_tasks()

        with pytest.raises(DatabaseUnavailable):
            await ticked(service, max_jobs=1)

        ours = asyncio.all_tasks() - before
        assert [task for task in ours if "FanOut" in repr(task.get_coro())] == []


async def test_without_a_secret_nobody_is_rung(
    database_url: str, tmp_path: Path, replica: Replica, caplog: pytest.LogCaptureFixture
):
    service = a_ringing(database_url, tmp_path, replica.url, most=1)
    environment = dataclasses.replace(service.settings.environment, cron_secrets=())
    service = dataclasses.replace(service, settings=dataclasses.replace(service.settings, environment=environment))
    await put_in(service, 2)

    summary = await ticked(service, max_jobs=1)

    assert (replica.rung, summary["status"]) == ([], "ok")
    assert lines(caplog)[-1]["reasons"] == ["CRON_SECRET is not set"]
