from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel, ConfigDict

from app import scheduled, settings
from app.context import Context, Service
from app.domain import schedules as domain
from app.domain.schedules import Every, Schedule
from app.plans import schedules
from tests.fakes.batches import AnyPayload, a_batch, a_service, runnable, seen, watched

HOURLY = '[schedules.hourly]\ncron = "@every 1h"\njob = "greet"\n'
TWO = HOURLY + HOURLY.replace("hourly]", "other]")


class Nothing(BaseModel):
    pass


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    days: int = 1


class Slotted(Strict):
    slot: datetime


async def done(payload: Any, ctx: Context) -> None:
    pass


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
def built(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Service]:
    """A service that has just been started with this configuration, and a handler `greet`."""
    monkeypatch.setattr(scheduled, "problems", lambda *_, **__: [])

    def build(text: str, payload: type[BaseModel] = AnyPayload, **more: Any) -> Service:
        service = a_service(database_url, tmp_path, text)
        greet = runnable("greet", done, payload=payload)
        configured = dataclasses.replace(service.settings, **more)
        return dataclasses.replace(service, handlers={"greet": greet}, settings=configured)

    return build


@asynccontextmanager
async def planned(service: Service) -> AsyncIterator[Context]:
    async with a_batch(service) as ctx:
        await schedules.plan(ctx, await seen(ctx))
        yield ctx


async def plan(service: Service) -> int:
    async with planned(service) as ctx:
        return ctx.tally["schedules.fired"]


async def passed(sql: asyncpg.Connection, **time: float) -> None:
    """So much time has gone by."""
    for column in ("anchor_at", "next_at", "last_slot", "fired_slot", "removed_at", "missed_slot"):
        await sql.execute(f"UPDATE wakebell.schedules SET {column} = {column} - $1::interval", timedelta(**time))


async def payloads(sql: asyncpg.Connection) -> list[dict[str, Any]]:
    return [json.loads(row[0]) for row in await sql.fetch("SELECT payload FROM wakebell.jobs ORDER BY id")]


async def test_one_that_is_first_seen_waits_for_its_first_slot(
    built: Callable[..., Service], sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    service = built(HOURLY)

    assert await plan(service) == 0
    with watched(monkeypatch) as made:
        assert await plan(service) == 0

    assert len(made) == 1, "the look"
    row = await sql.fetchrow("SELECT anchor_at, next_at FROM wakebell.schedules")
    assert row["next_at"] - row["anchor_at"] == timedelta(hours=1)


async def test_a_slot_that_has_come_is_fired_once(built: Callable[..., Service], sql: asyncpg.Connection):
    service = built(HOURLY + 'payload = { days = 2 }\nqueue = "slow"\npriority = 5\n')
    await plan(service)
    await passed(sql, minutes=100)

    assert [await plan(service), await plan(service)] == [1, 0]

    slot = await sql.fetchval("SELECT last_slot FROM wakebell.schedules")
    told = f"{slot:%Y-%m-%dT%H:%M:%SZ}"
    [job] = await sql.fetch("SELECT * FROM wakebell.jobs")
    assert (job["type"], job["queue"], job["priority"]) == ("greet", "slow", 5)
    assert json.loads(job["payload"]) == {"slot": told, "days": 2}
    assert job["unique_key"] == f"schedule:hourly:{told}"
    assert slot < datetime.now(UTC) < slot + timedelta(hours=1)


async def test_ten_at_once_fire_each_slot_once(built: Callable[..., Service], sql: asyncpg.Connection):
    text = "".join(f'[schedules.s{n}]\ncron = "@every {n + 1}m"\njob = "greet"\ncatch_up = "all"\n' for n in range(5))
    services = [built(text) for _ in range(10)]
    await plan(services[0])
    await passed(sql, minutes=20)

    fired = await asyncio.gather(*(plan(service) for service in services))
    fired += [await plan(services[0])]

    keys = [row[0] for row in await sql.fetch("SELECT unique_key FROM wakebell.jobs")]
    assert len(keys) == len(set(keys)) == sum(fired) == 20 + 10 + 6 + 5 + 4


async def test_what_is_left_is_fired_by_the_next_ticks_the_oldest_first(
    built: Callable[..., Service], sql: asyncpg.Connection
):
    service = built(TWO.replace("1h", "1m").replace('"greet"\n', '"greet"\ncatch_up = "all"\n'))
    await plan(service)
    await passed(sql, minutes=80)

    fired = [await plan(service) for _ in range(3)]

    assert fired == [100, 60, 0]
    slots = [payload["slot"] for payload in await payloads(sql)]
    assert slots == sorted(slots)


async def test_another_line_starts_from_now_and_another_payload_does_not(
    built: Callable[..., Service], sql: asyncpg.Connection
):
    await plan(built(TWO, read_at=time.monotonic() - 60))
    await passed(sql, minutes=100)

    other_line = HOURLY.replace("1h", "7m")
    fired = await plan(built(other_line + HOURLY.replace("hourly]", "other]") + "payload = { days = 9 }\n"))

    assert fired == 1
    assert [payload["days"] for payload in await payloads(sql)] == [9]
    left = await sql.fetchval("SELECT next_at - now() FROM wakebell.schedules WHERE name = 'hourly'")
    assert timedelta(minutes=6) < left <= timedelta(minutes=7)


async def test_one_that_is_removed_and_back_starts_from_now(built: Callable[..., Service], sql: asyncpg.Connection):
    await plan(built(HOURLY))
    await plan(built(""))
    await passed(sql, minutes=100)

    assert await plan(built(HOURLY)) == 0

    row = await sql.fetchrow("SELECT removed_at, next_at > now() AS later FROM wakebell.schedules")
    assert tuple(row) == (None, True)


async def test_one_that_another_release_does_not_know_goes_on(built: Callable[..., Service], sql: asyncpg.Connection):
    before = built(HOURLY, read_at=time.monotonic() - 7200)
    await plan(before)
    await passed(sql, minutes=61)
    await plan(built(""))

    assert await plan(before) == 1
    assert await sql.fetchval("SELECT removed_at FROM wakebell.schedules") is None


OLD = HOURLY + 'payload = { by = "old" }\n'
LATER = HOURLY.replace("1h", "50m") + 'payload = { by = "later" }\n'


async def by(sql: asyncpg.Connection) -> list[str]:
    """Whose jobs there are; and no slot has two."""
    keys = [row[0] for row in await sql.fetch("SELECT unique_key FROM wakebell.jobs")]
    assert len(keys) == len(set(keys))
    return [payload["by"] for payload in await payloads(sql)]


@pytest.mark.parametrize("first", [0, 1], ids=["the old one rings first", "the later one rings first"])
async def test_of_two_releases_side_by_side_the_line_of_the_later_one_is_fired(
    built: Callable[..., Service], sql: asyncpg.Connection, first: int
):
    now = time.monotonic()
    releases = [built(OLD, read_at=now - 200), built(LATER, read_at=now - 100)]

    for at in range(10):
        await plan(releases[(first + at) % 2])
        await passed(sql, minutes=30)

    assert await by(sql) == ["later"] * 4


async def test_a_release_that_is_rolled_back_is_followed_as_soon_as_it_is_started(
    built: Callable[..., Service], sql: asyncpg.Connection
):
    now = time.monotonic()
    await plan(built(OLD, read_at=now - 200))
    rolled_back = built(LATER, read_at=now - 100)
    await plan(rolled_back)
    again = built(OLD, read_at=now - 50)

    await plan(again)
    await passed(sql, minutes=61)
    fired = [await plan(release) for release in (rolled_back, again, rolled_back, again)]

    assert (fired, await by(sql)) == ([0, 1, 0, 0], ["old"])


async def test_an_old_process_that_is_left_alone_objects_at_once_and_takes_over_after_an_hour(
    built: Callable[..., Service], sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    now = time.monotonic()
    old, later = built(OLD, read_at=now - 200), built(LATER, read_at=now - 100)
    await plan(old)
    await plan(later)
    hour = "UPDATE wakebell.schedules SET objected_at = objected_at - interval '61 minutes' RETURNING objected_at"

    async with planned(old) as ctx:
        assert ctx.tally.status == "ok"
        [told] = ctx.tally.errors
    with watched(monkeypatch) as made:
        await plan(old)
    await sql.execute(hour)
    await plan(later)
    dismissed = await sql.fetchval("SELECT objected_at FROM wakebell.schedules")
    await plan(old)
    await sql.execute(hour)
    await plan(old)
    await passed(sql, minutes=61)

    assert told.startswith("schedule hourly goes by the other line of a process that was started later")
    assert len(made) == 1, "the look, while the objection stands"
    assert dismissed is None
    assert (await plan(old), await by(sql)) == (1, ["old"])


async def test_one_that_is_gone_costs_one_statement_once(
    built: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
):
    await plan(built(HOURLY))
    await plan(built(""))

    with watched(monkeypatch) as made:
        await plan(built(""))

    assert len(made) == 1, "the look"


async def test_what_comes_too_late_is_passed_over_and_told(built: Callable[..., Service], sql: asyncpg.Connection):
    service = built(HOURLY + 'catch_up = "none"\ngrace_minutes = 10\n')
    await plan(service)
    await passed(sql, minutes=200)

    async with planned(service) as ctx:
        assert ctx.tally["schedules.fired"] == 0
        assert ctx.tally.errors == ["schedule hourly has missed 3 slots, for no tick came in time"]
        assert ctx.tally.status == "ok"

    row = await sql.fetchrow(
        "SELECT missed_count, missed_slot = last_slot, missed_at IS NOT NULL FROM wakebell.schedules"
    )
    assert tuple(row) == (3, True, True)
    await passed(sql, minutes=45)
    assert await plan(service) == 1


async def test_a_bad_one_stops_none_of_the_others(
    built: Callable[..., Service], sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    service = built(TWO + TWO.replace("hourly]", "large]").replace("other]", "raising]"))
    await plan(service)
    await passed(sql, minutes=100)
    large = dataclasses.replace(service.settings.schedules["large"], payload={"much": "x" * 262144})
    bad = {**service.settings.schedules, "large": large}
    service = dataclasses.replace(service, settings=dataclasses.replace(service.settings, schedules=bad))
    come = domain.come

    def raising(schedule: Schedule, *args: Any, **more: Any) -> Any:
        if schedule.name == "raising":
            raise ZeroDivisionError
        return come(schedule, *args, **more)

    monkeypatch.setattr(domain, "come", raising)

    async with planned(service) as ctx:
        assert ctx.tally["schedules.fired"] == 2
        assert ctx.tally.status == "partial"
        assert sorted(ctx.tally.errors) == [
            "schedule large cannot queue its job; the log says why",
            "schedule raising crashed; the log has its traceback",
        ]
    monkeypatch.undo()
    assert await sql.fetchval("SELECT count(*) FROM wakebell.schedules WHERE next_at <= now()") == 2, "still due"


FIVE = "".join(f'[schedules.s{n}]\ncron = "@every {n + 60}m"\njob = "greet"\n' for n in range(5))


async def test_what_a_tick_has_no_time_for_is_told_and_done_by_the_next_ones(
    built: Callable[..., Service], sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    service = built(FIVE)
    await plan(service)
    await passed(sql, hours=3)
    monkeypatch.setattr(schedules, "MOST_AT_ONCE", 2)

    told = []
    for _ in range(3):
        async with a_batch(service, elapsed=20) as ctx:
            await schedules.plan(ctx, await seen(ctx))
            told.append((ctx.tally["schedules.fired"], ctx.tally.status, ctx.tally.errors))

    assert told == [
        (2, "ok", ["the next tick goes on with 3 schedules, for time was up; ring again"]),
        (2, "ok", ["the next tick goes on with a schedule, for time was up; ring again"]),
        (1, "ok", []),
    ]


async def test_all_portions_are_done_by_one_tick_that_has_the_time_for_it(
    built: Callable[..., Service], sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    service = built(FIVE)
    monkeypatch.setattr(schedules, "PORTION", timedelta(0))
    await plan(service)
    await passed(sql, hours=3)

    assert await plan(service) == 5


async def test_slots_are_computed_beside_the_event_loop(
    built: Callable[..., Service], sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    service = built(TWO.replace('"greet"\n', '"greet"\ncatch_up = "none"\n'))
    await plan(service)
    await passed(sql, hours=3)
    threads = set()
    come = domain.come

    def watching(*args: Any, **more: Any) -> Any:
        threads.add(threading.current_thread())
        return come(*args, **more)

    monkeypatch.setattr(domain, "come", watching)
    await plan(service)

    assert threads
    assert threading.main_thread() not in threads


async def test_slots_without_number_are_told_as_so_many_and_more(
    built: Callable[..., Service], sql: asyncpg.Connection
):
    service = built(HOURLY.replace("1h", "1m") + 'catch_up = "none"\n')
    await plan(service)
    await passed(sql, days=20)

    async with planned(service) as ctx:
        assert ctx.tally["schedules.fired"] == 1
        assert ctx.tally.errors == ["schedule hourly has missed 1,000+ slots, for no tick came in time"]


SLOT = datetime(2026, 11, 30, 9, tzinfo=UTC)


def schedule(job: str = "greet", **payload: Any) -> Schedule:
    timing = Every(interval=timedelta(hours=1), timezone="UTC", zone=UTC)
    return Schedule(name="s", written="@every 1h", timing=timing, job=job, payload=payload, grace=timedelta(minutes=1))


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: str
    body: Any = None


@pytest.mark.parametrize(
    ("of", "model", "given"),
    [
        (schedule(days=2), Nothing, {"slot": "2026-11-30T09:00:00Z", "days": 2}),
        (schedule(days=2), None, {"slot": "2026-11-30T09:00:00Z", "days": 2}),
        (schedule(days=2), Slotted, {"slot": "2026-11-30T09:00:00Z", "days": 2}),
        (schedule(days=2), Strict, {"days": 2}),
        (schedule(days="x"), Strict, {"slot": "2026-11-30T09:00:00Z", "days": "x"}),
        (schedule(slot=3), AnyPayload, {"slot": 3}),
        (schedule("call_url", url="u"), Body, {"url": "u", "body": {"slot": "2026-11-30T09:00:00Z"}}),
        (
            schedule("call_url", url="u", body={"a": 1}),
            Body,
            {"url": "u", "body": {"slot": "2026-11-30T09:00:00Z", "a": 1}},
        ),
        (schedule("call_url", url="u", body="text"), Body, {"url": "u", "body": "text"}),
    ],
)
def test_the_payload_carries_its_slot_where_the_handler_takes_it(of: Schedule, model: Any, given: dict[str, Any]):
    assert schedules.payload_at(of, SLOT, model) == given


def test_settings_know_when_they_were_read(tmp_path: Path):
    (tmp_path / "wakebell.toml").write_text("")

    assert time.monotonic() - settings.load({"WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml")}).read_at < 60
