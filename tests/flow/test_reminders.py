"""Bookings made by HTTP, and people who are reminded of them once, whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.flow.killable import OF_REMINDERS
from tests.flow.service import Service
from tests.flow.stage import TELLING, USER, Stage

API_TOKEN = "the-api-token-of-the-tests-thirty"
AUTHORIZED = {"Authorization": f"Bearer {API_TOKEN}"}
BANGKOK = ZoneInfo("Asia/Bangkok")

REMINDERS = """
[reminders.day_before]
before = "24h"

[reminders.hour_before]
before = "1h"
"""
MANY = """
INSERT INTO wakebell.bookings (ref, title, starts_at, timezone, recipient)
SELECT 'b-' || n, 'Visit ' || n, now() + interval '12 hours' + make_interval(secs => n), 'UTC', 'me'
FROM generate_series(1, $1) AS n
"""


async def serve(stage: Stage, **more: Any) -> Service:
    stage.more = REMINDERS
    return await stage.serve(API_TOKEN=API_TOKEN, **more)


async def put(service: Service, ref: str = "b-1", **body: Any) -> httpx.Response:
    given = {"title": "Haircut", "timezone": "Asia/Bangkok", "to": "me"} | body
    return await service.ask("PUT", f"/api/bookings/{ref}", json=given, headers=AUTHORIZED)


def tomorrow(hour: int = 0) -> str:
    """Less than a day away, and told as tomorrow: the beginning of the next day in Bangkok."""
    day = datetime.now(BANGKOK).date() + timedelta(days=1)
    return f"{day}T{hour:02}:00:00+07:00"


async def test_a_booking_is_told_in_thai_and_another_start_once_more(stage: Stage):
    stage.telling = TELLING.replace('to = "env:LINE_USER"', 'to = "env:LINE_USER"\nlanguage = "th"')
    service = await serve(stage)
    made = await put(service, starts_at=tomorrow(), title="ตัดผม")

    first = await service.tick()
    again = await service.tick()
    await put(service, starts_at=tomorrow().replace(":00:00+", ":30:00+"), title="ตัดผม")
    moved = await service.tick()

    assert made.status_code == 201
    assert [tick["reminders"]["queued"] for tick in (first, again, moved)] == [1, 0, 1]
    assert [tick["messages"]["sent"] for tick in (first, again, moved)] == [1, 0, 1]
    assert [push.to for push in stage.line.tries] == [USER, USER]
    assert [text for push in stage.line.tries for text in push.texts] == [
        "แจ้งเตือน: ตัดผม พรุ่งนี้ 00:00",
        "แจ้งเตือน: ตัดผม พรุ่งนี้ 00:30",
    ]
    assert "ตัดผม" not in str((first, again, moved))
    assert again["status"] == "ok"


async def test_a_deleted_booking_and_one_in_the_past_are_told_to_nobody(stage: Stage):
    service = await serve(stage)
    await put(service, "gone", starts_at=tomorrow())
    await put(service, "past", starts_at="2026-01-01T09:00:00Z")
    deleted = await service.ask("DELETE", "/api/bookings/gone", headers=AUTHORIZED)

    summary = await service.tick()

    assert deleted.status_code == 204
    assert summary["reminders"] == {"queued": 0}
    assert stage.line.tries == []


async def test_two_replicas_that_tick_at_once_tell_fifty_people_once_each(stage: Stage):
    replicas = [await serve(stage), await serve(stage)]
    await stage.sql.execute(MANY, 50)

    summaries = await asyncio.gather(*(replica.tick() for replica in replicas))
    summaries += [await replicas[0].tick()]

    assert sum(summary["reminders"]["queued"] for summary in summaries) == 50
    assert len({push.texts[0].partition(",")[0] for push in stage.line.tries}) == len(stage.line.tries) == 50
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.messages WHERE status = 'sent'") == 50


@pytest.mark.parametrize("point", OF_REMINDERS)
async def test_a_process_that_dies_leaves_each_booking_told_once(stage: Stage, point: str):
    survivor = await serve(stage)
    await stage.sql.execute(MANY, 3)
    mortal = await serve(stage, die_at=point)

    await mortal.ring_in_vain()

    assert await mortal.ended() == -signal.SIGKILL
    await stage.end_leases()
    for _ in range(2):
        await stage.make_due()
        await survivor.tick()
    assert sorted(push.texts[0].split(",")[0] for push in stage.line.accepted.values()) == [
        "Reminder: Visit 1",
        "Reminder: Visit 2",
        "Reminder: Visit 3",
    ]
    stage.line.assert_keys_frozen()
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status IN ('running', 'failed')") == 0


async def test_one_that_could_not_be_sent_in_time_opens_an_alert_that_names_no_address(stage: Stage):
    service = await serve(stage)
    stage.line.always[USER] = 500
    soon = datetime.now(UTC) + timedelta(minutes=10)
    await put(service, starts_at=soon.isoformat(), to={"channel": "line", "to": USER})
    retrying = await service.tick()
    await stage.sql.execute("UPDATE wakebell.messages SET expires_at = now()")

    over = await service.tick()
    calm = await service.tick()

    assert retrying["messages"]["retrying"] == 1
    assert (over["messages"]["failed"], over["alerts"]["opened"], calm["alerts"]["open"]) == (1, 1, 1)
    [alert] = await stage.alerts()
    assert "bookings/line" in alert["text"]
    assert "its time has passed before it could be sent" in alert["text"]
    assert USER not in alert["text"]
    assert USER not in service.log
    assert len(stage.line.tries) == 1


async def test_bookings_in_a_table_of_the_users_own_are_told(stage: Stage):
    await stage.sql.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.visits (id integer, name text, begins timestamptz, who text); "
        "INSERT INTO shop.visits VALUES (7, 'Massage', now() + interval '3 hours', 'me')"
    )
    stage.more = """
[reminders.shop]
before = "24h"
query = 'SELECT id AS ref, name AS title, begins AS starts_at, who AS "to" FROM shop.visits'
"""
    service = await stage.serve()

    first, second = await service.tick(), await service.tick()
    await stage.sql.execute("UPDATE shop.visits SET begins = begins + interval '1 hour'")
    third = await service.tick()

    assert [tick["messages"]["sent"] for tick in (first, second, third)] == [1, 0, 1]
    assert all(push.texts[0].startswith("Reminder: Massage, ") for push in stage.line.tries)


async def test_a_row_that_moves_while_its_message_waits_is_not_told_as_it_was(stage: Stage):
    await stage.sql.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.visits (id integer, name text, begins timestamptz, who text); "
        "INSERT INTO shop.visits VALUES (7, 'Massage', now() + interval '3 hours', 'me')"
    )
    stage.more = """
[reminders.shop]
before = "24h"
query = 'SELECT id AS ref, name AS title, begins AS starts_at, who AS "to" FROM shop.visits'
"""
    service = await stage.serve()
    stage.line.answers.append(500)
    await service.tick()
    await stage.sql.execute("UPDATE shop.visits SET begins = begins + interval '3 days'")
    await stage.make_due()

    summary = await service.tick()

    assert (summary["messages"]["sent"], summary["alerts"]["opened"]) == (0, 0)
    assert len(stage.line.tries) == 1
    assert await stage.sql.fetchval("SELECT last_error FROM wakebell.messages") == "the booking was moved or deleted"
