"""When a worker ticks, how long it waits, and how it ends. What it does to real processes is in tests/flow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app import tick, work
from app.context import Service
from app.domain.errors import DatabaseUnavailable, SchemaOutdated
from app.work import WAITS, Worker
from tests.fakes.batches import a_service
from tests.fakes.feeds import Feeds

GREET = """
from pydantic import BaseModel

class Payload(BaseModel):
    pass

async def handle(payload, ctx):
    pass
"""
NEVER = timedelta(days=1)


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Service:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "greet.py").write_text(GREET)
    return a_service(database_url, tmp_path, HEARTBEAT_URL="https://hc.example/ping/x")


class Ticks:
    """Each tick of a worker, as it was asked for, and a step at which the test acts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = tick.run
        self.asked: list[dict[str, Any]] = []
        self.heartbeats: list[bool] = []
        self.answers: list[dict[str, Any] | Exception] = []
        self.after: Callable[[], Any] = lambda: None
        monkeypatch.setattr(tick, "run", self.run)

    async def run(self, service: Service, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        self.heartbeats.append(service.settings.environment.heartbeat_url is not None)
        answer = self.answers.pop(0) if self.answers else summary()
        self.after()
        if isinstance(answer, Exception):
            raise answer
        return answer


def summary(
    *, status: str = "ok", claimed: int = 0, remaining: int = 0, held: int = 0, next_due_at: str | None = None
) -> dict[str, Any]:
    return {
        "status": status,
        "started_at": "2026-11-30T09:00:00Z",
        "budget_exhausted": False,
        "jobs": {"claimed": claimed, "remaining": remaining},
        "messages": {"held": held},
        "next_due_at": next_due_at,
    }


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    return Ticks(monkeypatch)


class Pauses:
    """How long a worker waits, without the waiting. After so many it is told to stop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[float] = []
        self.then: dict[int, Callable[[], Any]] = {}
        monkeypatch.setattr(work, "asyncio", self)

    CancelledError = asyncio.CancelledError
    current_task = staticmethod(asyncio.current_task)

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        told = self.then.get(len(self.taken))
        if told is not None:
            outcome = told()
            if asyncio.iscoroutine(outcome):
                await outcome
        await asyncio.sleep(0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


def a_worker(service: Service, *, every: timedelta = NEVER) -> Worker:
    return Worker(service, every=every, poll=timedelta(seconds=2))


async def test_it_ticks_at_once_and_then_looks_until_there_is_a_job(service: Service, ticks: Ticks, pauses: Pauses):
    worker = a_worker(service)
    counts: list[int] = []

    async def enqueue() -> None:
        counts.append(len(ticks.asked))
        await service.stores.jobs.enqueue(type="greet")

    pauses.then = {
        3: enqueue,
        4: worker.stop,
    }

    await worker.run()

    assert counts == [1], "an idle worker ticks by its schedule alone"
    assert len(ticks.asked) == 2
    assert pauses.taken == [2.0] * 4
    assert {asked["trigger"] for asked in ticks.asked} == {"work"}
    assert ticks.asked[0]["budget"] == timedelta(seconds=25)


async def test_only_scheduled_ticks_are_told_to_the_switch(service: Service, ticks: Ticks, pauses: Pauses):
    worker = a_worker(service)
    await service.stores.jobs.enqueue(type="greet")
    pauses.then = {3: worker.stop}

    await worker.run()

    assert ticks.heartbeats == [True, False, False]


async def test_the_schedule_counts_from_the_beginning_of_a_tick(service: Service, ticks: Ticks, pauses: Pauses):
    worker = a_worker(service, every=timedelta())
    pauses.then = {3: worker.stop}

    await worker.run()

    assert ticks.heartbeats == [True] * 3


async def test_what_is_left_is_taken_up_at_once_while_there_is_progress(service: Service, ticks: Ticks, pauses: Pauses):
    worker = a_worker(service, every=timedelta())
    ticks.answers = [summary(claimed=100, remaining=40), summary(claimed=0, remaining=40), summary()]
    pauses.then = {1: worker.stop}

    await worker.run()

    assert len(ticks.asked) == 2
    assert pauses.taken == [2.0], "what nobody can start is not asked for without a pause"


@pytest.mark.parametrize(
    "away", [DatabaseUnavailable("the database is away"), SchemaOutdated("run `wakebell migrate`")]
)
async def test_a_database_that_is_away_is_told_once_and_waited_for_longer_and_longer(
    service: Service, ticks: Ticks, pauses: Pauses, caplog: pytest.LogCaptureFixture, away: Exception
):
    worker = a_worker(service, every=timedelta())
    ticks.answers = [away] * 7
    pauses.then = {8: worker.stop}

    with caplog.at_level(logging.INFO, "app.work"):
        await worker.run()

    assert pauses.taken == [*WAITS, 30.0, 30.0, 2.0]
    assert [record.message for record in caplog.records] == [
        "database cannot be used",
        "database can be used again",
    ]
    assert vars(caplog.records[0])["reason"] == str(away)


async def test_a_database_that_does_not_answer_the_look_is_waited_for_too(
    tmp_path: Path, ticks: Ticks, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.stores.database.CONNECT_WAITS", ())
    worker = a_worker(a_service("postgresql://nobody@127.0.0.1:9/none", tmp_path))
    pauses.then = {3: worker.stop}

    await worker.run()

    assert ticks.asked == []
    assert pauses.taken == list(WAITS[:3])


async def test_a_tick_that_crashes_or_fails_does_not_end_it(
    service: Service, ticks: Ticks, pauses: Pauses, caplog: pytest.LogCaptureFixture
):
    worker = a_worker(service, every=timedelta())
    ticks.answers = [RuntimeError("a bug"), summary(status="failed", claimed=3, remaining=3), summary()]
    pauses.then = {3: worker.stop}

    await worker.run()

    assert pauses.taken == [1.0, 2.0, 2.0]
    assert [record.message for record in caplog.records if record.exc_info] == ["tick crashed"]


async def test_a_source_is_fetched_when_its_time_has_come(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch, pauses: Pauses
):
    async with Feeds() as feeds:
        feed = feeds.add("jobs", "Cook")
        text = f'[sources.jobs]\nkind = "feed"\nurl = "{feed.url}"\nevery_minutes = 0.02\n'
        service = a_service(database_url, tmp_path, text)
        worker = a_worker(service)
        run, due = tick.run, []

        async def counted(*given: Any, **asked: Any) -> dict[str, Any]:
            told = await run(*given, **asked)
            due.append(told["sources"]["due"])
            if len(due) == 2:
                worker.stop()
            return told

        monkeypatch.setattr(tick, "run", counted)
        await worker.run()

    assert due == [1, 1]


async def test_a_slot_is_fired_when_its_time_has_come(
    service: Service, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch, pauses: Pauses
):
    text = '[schedules.often]\ncron = "@every 1s"\njob = "greet"\n'
    worker = a_worker(a_service(database_url, tmp_path, text))
    run, fired = tick.run, []

    async def counted(*given: Any, **asked: Any) -> dict[str, Any]:
        told = await run(*given, **asked)
        fired.append(told["schedules"]["fired"])
        if len(fired) == 2:
            worker.stop()
        return told

    monkeypatch.setattr(tick, "run", counted)
    await worker.run()

    assert fired == [0, 1]


@pytest.mark.parametrize(
    ("held", "next_due_at", "expected"),
    [
        (1, "2026-11-30T09:00:20Z", 2),
        (1, "2026-11-30T09:00:00Z", 1),
        (1, None, 1),
        (0, "2026-11-30T09:00:20Z", 1),
    ],
)
async def test_what_is_held_is_told_when_its_time_has_come(  # noqa: PLR0917 - three of them are a table's
    service: Service, ticks: Ticks, pauses: Pauses, held: int, next_due_at: str | None, expected: int
):
    ticks.answers.append(summary(held=held, next_due_at=next_due_at))
    worker = a_worker(service)
    pauses.then = {1: lambda: setattr(worker, "_held_until", worker._held_until - 30), 2: worker.stop}

    await worker.run()

    assert len(ticks.asked) == expected


async def test_what_a_killed_process_left_is_brought_back(service: Service, ticks: Ticks, pauses: Pauses):
    worker = a_worker(service)
    await service.stores.jobs.enqueue(type="greet")
    await service.stores.jobs.claim(own=False, limit=1, leases={"greet": timedelta()}, token=1)
    pauses.then = {1: lambda: setattr(worker, "_rescued_at", -1e9), 2: worker.stop}

    await worker.run()

    assert len(ticks.asked) == 2
    assert await service.stores.jobs.count_startable(["greet"]) == 1


async def test_told_to_stop_it_leaves_its_pause_at_once(service: Service, ticks: Ticks):
    worker = Worker(service, every=NEVER, poll=timedelta(hours=1))
    ticks.after = lambda: asyncio.get_running_loop().call_later(0.01, worker.stop)

    await worker.run()

    assert len(ticks.asked) == 1
    assert service.stores.database._users == 0


async def test_told_to_stop_amid_a_tick_it_lets_it_wind_down(service: Service, monkeypatch: pytest.MonkeyPatch):
    worker = Worker(service, every=NEVER, poll=timedelta(hours=1))
    ended: list[bool] = []

    async def slow(*_: Any, **__: Any) -> dict[str, Any]:
        worker.stop()
        worker.stop()  # the echo of the same order
        await asyncio.sleep(0)
        ended.append(service.stopping.requested)
        return summary()

    monkeypatch.setattr(tick, "run", slow)
    await worker.run()

    assert ended == [True]


async def test_told_once_more_it_cuts_the_tick_off(service: Service, monkeypatch: pytest.MonkeyPatch):
    worker = Worker(service, every=NEVER, poll=timedelta(hours=1))
    cut: list[bool] = []

    async def endless(*_: Any, **__: Any) -> dict[str, Any]:
        worker.stop()
        monkeypatch.setattr(work, "ECHO_SECONDS", -1.0)
        worker.stop()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cut.append(True)
            raise
        return summary()

    monkeypatch.setattr(tick, "run", endless)
    await worker.run()

    assert cut == [True]


async def test_cancelled_by_somebody_else_it_is_cancelled(service: Service, ticks: Ticks):
    worker = Worker(service, every=NEVER, poll=timedelta(hours=1))
    working = asyncio.create_task(worker.run())
    ticks.after = lambda: asyncio.get_running_loop().call_soon(working.cancel)

    with pytest.raises(asyncio.CancelledError):
        await working
