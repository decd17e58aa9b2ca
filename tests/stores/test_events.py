from __future__ import annotations

import asyncio
import dataclasses
import json
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from app.stores.database import Database
from app.stores.events import Events, KeptEvent, NewEvent, kept_seconds

EVENT = NewEvent(
    door="hooks.shop",
    id="evt_1",
    type="invoice.paid",
    source="shop",
    data={"amount": 7},
    body=b'{"amount": 7}',
    job="invoice_paid",
)


@pytest.fixture
def events(database: Database) -> Events:
    return Events(database)


def an_event(**changes: Any) -> NewEvent:
    return dataclasses.replace(EVENT, **changes)


async def jobs(sql: asyncpg.Connection) -> list[dict[str, Any]]:
    return [dict(row) for row in await sql.fetch("SELECT * FROM wakebell.jobs ORDER BY id")]


async def payload(sql: asyncpg.Connection) -> dict[str, Any]:
    [job] = await jobs(sql)
    told: dict[str, Any] = json.loads(job["payload"])
    return told


async def test_an_event_is_kept_with_its_job(events: Events, sql: asyncpg.Connection):
    kept = await events.keep(EVENT)

    [job] = await jobs(sql)
    assert kept == KeptEvent(job["id"], created=True)
    assert (job["type"], job["queue"], job["status"]) == ("invoice_paid", "default", "pending")
    told = await payload(sql)
    at = told.pop("received_at")
    assert told == {"id": "evt_1", "type": "invoice.paid", "source": "shop", "data": {"amount": 7}}
    row = await sql.fetchrow("SELECT *, received_at = CAST($1 AS timestamptz) AS same FROM wakebell.events", at_of(at))
    assert (row["door"], row["event_id"], row["job_id"], row["body"]) == ("hooks.shop", "evt_1", job["id"], None)
    assert row["same"], "what the job is told is when it was kept"


def at_of(written: str) -> Any:
    from datetime import datetime

    assert written.endswith("Z")
    return datetime.fromisoformat(written)


async def test_a_repeat_gets_the_same_job(events: Events, sql: asyncpg.Connection):
    first = await events.keep(EVENT)

    again = await events.keep(an_event(data={"amount": 8}))

    assert again == KeptEvent(first.job_id, created=False)
    assert len(await jobs(sql)) == 1


async def test_another_door_may_use_the_same_id(events: Events, sql: asyncpg.Connection):
    await events.keep(EVENT)

    assert (await events.keep(an_event(door="hooks.other"))).created
    assert len(await jobs(sql)) == 2


async def test_many_at_once_are_one(events: Events, sql: asyncpg.Connection):
    kept = await asyncio.gather(*(events.keep(EVENT) for _ in range(4)))

    assert sorted(one.created for one in kept) == [False, False, False, True]
    assert len({one.job_id for one in kept}) == 1
    assert len(await jobs(sql)) == 1


async def test_an_event_that_nobody_wants_is_kept_without_a_job(events: Events, sql: asyncpg.Connection):
    assert await events.keep(an_event(job=None)) == KeptEvent(None, created=True)
    assert await events.keep(an_event(job=None)) == KeptEvent(None, created=False)

    assert await jobs(sql) == []


async def test_one_that_is_wanted_by_then_gets_its_job_when_it_comes_again(events: Events, sql: asyncpg.Connection):
    await events.keep(an_event(job=None))

    again = await events.keep(EVENT)

    assert again.created
    assert again.job_id is not None
    assert await events.keep(EVENT) == KeptEvent(again.job_id, created=False)
    assert len(await jobs(sql)) == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"text": "x" * 262_144}, "it is longer than the 256 KiB that a payload may have"),
        ({"numbers": [1e308] * 1000}, "it is longer than the 256 KiB that a payload may have"),
        ({"text": ["a\x00"]}, "data.text[0]: holds a NUL character, which PostgreSQL cannot store"),
        ({"text": "\ud800"}, "data.text: holds half of a surrogate pair, which is no character"),
        ({"number": float("inf")}, "data.number: is not a finite number, which JSON does not have"),
        (json.loads("[" * 199 + "1" + "]" * 199), "it is nested too deeply: a payload may have fewer than 200 levels"),
        (
            json.loads('{"a":' * 199 + "1" + "}" * 199),
            "it is nested too deeply: a payload may have fewer than 200 levels",
        ),
    ],
    ids=["long", "grows", "nul", "surrogate", "infinite", "arrays", "objects"],
)
async def test_what_no_payload_can_hold_is_kept_as_it_came(
    events: Events, sql: asyncpg.Connection, data: Any, why: str
):
    body = json.dumps(data).encode()

    kept = await events.keep(an_event(data=data, body=body))

    told = await payload(sql)
    assert (told["data"], told["omitted"]) == (None, why)
    assert await events.body("shop", "evt_1") == body
    assert await events.keep(an_event(data=data, body=body)) == KeptEvent(kept.job_id, created=False)


async def test_what_is_not_left_out_is_not_kept_twice(events: Events):
    await events.keep(an_event(data={"text": "ไ" * 80_000}))

    assert await events.body("shop", "evt_1") is None
    assert await events.body("shop", "evt_2") is None


async def test_old_events_are_forgotten_and_no_others(events: Events, sql: asyncpg.Connection):
    await events.keep(EVENT)
    await events.keep(an_event(id="evt_2"))
    await sql.execute("UPDATE wakebell.events SET aged_from = now() - interval '15 days' WHERE event_id = 'evt_1'")

    assert await events.prune(keep=timedelta(days=14), most=500) == 1

    assert await sql.fetchval("SELECT event_id FROM wakebell.events") == "evt_2"


async def test_a_body_stays_while_its_job_is_there(events: Events, sql: asyncpg.Connection):
    await events.keep(an_event(data="\x00"))
    await sql.execute("UPDATE wakebell.events SET aged_from = now() - interval '15 days'")

    assert await events.prune(keep=timedelta(days=14), most=500) == 0
    assert await sql.fetchval("SELECT aged_from > now() - interval '1 minute' FROM wakebell.events")

    await sql.execute("DELETE FROM wakebell.jobs")
    await sql.execute("UPDATE wakebell.events SET aged_from = now() - interval '15 days'")
    assert await events.prune(keep=timedelta(days=14), most=500) == 1


async def test_no_more_are_forgotten_than_asked_for(events: Events, sql: asyncpg.Connection):
    for number in range(3):
        await events.keep(an_event(id=f"evt_{number}"))
    await sql.execute("UPDATE wakebell.events SET aged_from = now() - interval '15 days'")

    assert await events.prune(keep=timedelta(days=14), most=2) == 2


def test_events_are_known_for_as_long_as_providers_repeat_them():
    assert kept_seconds(timedelta(hours=1)) == timedelta(days=3).total_seconds()
    assert kept_seconds(timedelta(days=14)) == timedelta(days=14).total_seconds()
