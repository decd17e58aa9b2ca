from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app import tick
from app.context import Context, Service
from app.domain.errors import DatabaseUnavailable, SchemaOutdated, TemporaryFailure
from app.domain.jobs import Done, NewJob
from app.handlers import Runnable
from app.stores.looks import Look
from tests.fakes.batches import Handle, a_service, runnable, watched

BUDGET = timedelta(seconds=25)

SUMMARY = {
    "status": "ok",
    "budget_exhausted": False,
    "sources": {
        "due": 0,
        "fetched": 0,
        "unchanged": 0,
        "failed": 0,
        "primed": 0,
        "new_items": 0,
        "matched_items": 0,
    },
    "messages": {"composed": 0, "sent": 0, "held": 0, "retrying": 0, "failed": 0},
    "schedules": {"fired": 0},
    "reminders": {"queued": 0},
    "jobs": {"claimed": 0, "done": 0, "retrying": 0, "snoozed": 0, "failed": 0, "remaining": 0},
    "pruned": 0,
    "next_due_at": None,
    "alerts": {"open": 0, "opened": 0, "resolved": 0},
    "errors": [],
}


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Service:
    return a_service(database_url, tmp_path)


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


def with_handlers(service: Service, *made_up: Runnable) -> Service:
    return dataclasses.replace(service, handlers={each.type: each for each in made_up})


async def ring(service: Service, *, budget: timedelta = BUDGET, max_jobs: int = 100) -> dict[str, Any]:
    return await tick.run(service, budget=budget, max_jobs=max_jobs, trigger="test")


async def done(payload: Any, ctx: Context) -> Done:
    return Done()


def raising(error: Exception) -> Handle:
    async def handle(payload: Any, ctx: Context) -> None:
        raise error

    return handle


async def test_an_idle_tick_says_so_and_leaves_nothing_but_its_row(service: Service, sql: asyncpg.Connection):
    summary = await ring(service)

    told = {name: value for name, value in summary.items() if name not in {"tick", "started_at", "duration_ms"}}
    assert told == SUMMARY
    assert list(summary)[:4] == ["tick", "status", "started_at", "duration_ms"]
    assert isinstance(summary["duration_ms"], int)
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 0


async def test_a_payload_that_is_nested_too_deeply_fails_its_job_and_no_other(
    service: Service, sql: asyncpg.Connection
):
    for payload in ('{"a":' * 250 + "1" + "}" * 250, "{}", '{"a":' + "[" * 900 + "1" + "]" * 900 + "}", "{}"):
        await sql.execute("SELECT wakebell.enqueue('greet', $1)", payload)

    summary = await ring(with_handlers(service, runnable("greet", done)))

    rows = await sql.fetch("SELECT status, last_error FROM wakebell.jobs WHERE type = 'greet' ORDER BY id")
    assert [row["status"] for row in rows] == ["failed", "done", "failed", "done"]
    assert "nested too deeply" in rows[0]["last_error"]
    assert (summary["jobs"]["done"], summary["jobs"]["failed"]) == (2, 2)


async def test_an_idle_tick_asks_two_questions(service: Service, monkeypatch: pytest.MonkeyPatch):
    await service.stores.require_schema()

    with watched(monkeypatch) as made:
        await ring(service)

    assert [statement.split(maxsplit=1)[0] for statement in made] == ["WITH", "UPDATE"]


async def test_a_hundred_jobs_take_few_statements(service: Service, monkeypatch: pytest.MonkeyPatch):
    await service.stores.require_schema()
    await service.stores.jobs.enqueue_many([NewJob(type="greet")] * 100)

    with watched(monkeypatch) as made:
        summary = await ring(with_handlers(service, runnable("greet", done)))

    assert summary["jobs"]["done"] == 100
    assert len(made) <= 10, "two looks, a claim of own jobs, a few turns, one rescue, and the end"


async def test_the_answer_is_what_is_kept(service: Service, sql: asyncpg.Connection):
    summary = await ring(service)

    row = await sql.fetchrow("SELECT * FROM wakebell.ticks")
    assert (row["id"], row["trigger"], row["status"]) == (summary["tick"], "test", "ok")
    assert json.loads(row["summary"]) == summary
    assert row["started_at"].strftime("%Y-%m-%dT%H:%M:%SZ") == summary["started_at"]


async def test_jobs_are_run_and_counted(service: Service, sql: asyncpg.Connection):
    for name in ("greet", "greet", "fail", "unknown"):
        await service.stores.jobs.enqueue(type=name)

    summary = await ring(
        with_handlers(service, runnable("greet", done), runnable("fail", raising(TemporaryFailure("down"))))
    )

    assert summary["jobs"] == {"claimed": 3, "done": 2, "retrying": 1, "snoozed": 0, "failed": 0, "remaining": 0}
    assert summary["status"] == "partial"
    assert summary["errors"] == [
        "job type fail failed",
        "1 job of a type that nobody handles is parked: unknown",
    ]
    held = await sql.fetchrow("SELECT attempts, status FROM wakebell.jobs WHERE type = 'unknown'")
    assert tuple(held) == (0, "pending"), "no attempt is spent on a type that nobody knows"


async def test_what_a_further_tick_could_start_is_told(service: Service):
    for _ in range(5):
        await service.stores.jobs.enqueue(type="greet")
    known = with_handlers(service, runnable("greet", done))

    first = await ring(known, max_jobs=3)
    second = await ring(known, max_jobs=3)

    assert (first["jobs"]["claimed"], first["jobs"]["remaining"]) == (3, 2)
    assert first["next_due_at"] is not None
    assert not first["budget_exhausted"], "max_jobs was, not the time"
    assert (second["jobs"]["claimed"], second["jobs"]["remaining"], second["next_due_at"]) == (2, 0, None)


async def test_a_plan_that_crashes_fails_the_tick_and_stops_nothing(
    service: Service,
    sql: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    planned: list[str] = []

    async def crashing(ctx: Context, look: Look) -> int:
        raise KeyError("bug")

    async def sound(ctx: Context, look: Look) -> int:
        planned.append(ctx.trigger)
        return 0

    monkeypatch.setattr(tick, "_plans", lambda: [crashing, sound])
    await service.stores.jobs.enqueue(type="greet")

    summary = await ring(with_handlers(service, runnable("greet", done)))

    assert summary["status"] == "failed"
    assert (summary["jobs"]["done"], planned) == (1, ["test"])
    assert await sql.fetchval("SELECT status FROM wakebell.ticks") == "failed"
    assert [record.getMessage() for record in caplog.records if record.exc_info] == ["tick part crashed"]


async def test_a_database_that_a_plan_loses_ends_the_tick(
    service: Service, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    async def losing(ctx: Context, look: Look) -> int:
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(tick, "_plans", lambda: [losing])

    with pytest.raises(DatabaseUnavailable):
        await ring(service)
    assert await sql.fetchval("SELECT status FROM wakebell.ticks") is None


async def test_what_a_killed_tick_left_is_done_first(service: Service, sql: asyncpg.Connection):
    await service.stores.jobs.enqueue(type="greet")
    await service.stores.jobs.claim(own=False, limit=1, leases={"greet": timedelta(seconds=1)}, token=1)
    await sql.execute("UPDATE wakebell.jobs SET lease_until = now() - interval '1 second'")

    summary = await ring(with_handlers(service, runnable("greet", done)))

    assert summary["jobs"]["done"] == 1
    assert await sql.fetchval("SELECT crashes FROM wakebell.jobs") == 1


async def test_two_ticks_at_once_share_what_is_due(service: Service):
    for _ in range(30):
        await service.stores.jobs.enqueue(type="greet")
    known = with_handlers(service, runnable("greet", done))

    summaries = await asyncio.gather(*(ring(known) for _ in range(4)))

    assert sum(summary["jobs"]["done"] for summary in summaries) == 30
    assert len({summary["tick"] for summary in summaries}) == 4


async def test_a_tick_that_is_told_to_stop_says_what_it_left(service: Service):
    for _ in range(30):
        await service.stores.jobs.enqueue(type="stop")

    async def handle(payload: Any, ctx: Context) -> None:
        service.stopping.request()

    summary = await ring(with_handlers(service, runnable("stop", handle)))

    assert summary["status"] == "partial"
    assert summary["jobs"]["remaining"] > 0
    assert summary["errors"] == ["the process was told to stop; what it had not started is still due"]


@pytest.mark.direct
async def test_a_tick_lets_go_of_the_database(service: Service, sql: asyncpg.Connection):
    await ring(service)

    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'wakebell'"
    while await sql.fetchval(query):  # noqa: ASYNC110 - the server takes a moment to see it
        await asyncio.sleep(0.01)


async def test_a_database_without_our_schema_is_told(empty_database_url: str, tmp_path: Path):
    with pytest.raises(SchemaOutdated, match="wakebell migrate"):
        await ring(a_service(empty_database_url, tmp_path))


async def test_a_schema_that_is_newer_serves_too(service: Service, sql: asyncpg.Connection):
    await sql.execute("UPDATE wakebell.alembic_version SET version_num = '9999'")

    assert (await ring(service))["status"] == "ok"


async def test_a_database_that_does_not_answer_is_waited_for_no_longer_than_the_budget(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        service = a_service(f"postgres://127.0.0.1:{listening.getsockname()[1]}/name", tmp_path)

        with pytest.raises(DatabaseUnavailable, match="within the tick's budget"):
            await ring(service, budget=timedelta(seconds=0.05))


async def test_a_summary_names_no_more_than_a_scheduler_takes(service: Service):
    names = [f"type_{number}_{'x' * 80}" for number in range(60)]
    for name in names:
        await service.stores.jobs.enqueue(type=name)

    summary = await ring(with_handlers(service, *(runnable(name, raising(TemporaryFailure("x"))) for name in names)))

    assert len(summary["errors"]) == 20
    assert len(json.dumps(summary)) < 8192
