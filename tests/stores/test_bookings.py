from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.bookings import Booking, Rule, Start
from app.stores.bookings import Bookings
from app.stores.database import Database
from app.stores.reminders import Reminders

NINE = datetime(2036, 12, 24, 9, tzinfo=UTC)
BOOKING = Booking(ref="b-1", title="Haircut", start=Start(at=NINE, zone=UTC), timezone="UTC", recipient="me")
YEARS_BEFORE = Rule(name="years_before", before=timedelta(days=36500))

MESSAGE = """
WITH message AS (
    INSERT INTO wakebell.messages (recipient, channel, kind, status, body, text, unanswered)
    VALUES ('me', 'line', 'reminder', replace($1, ' unanswered', ''), '', '', $1 LIKE '%unanswered') RETURNING id
)
INSERT INTO wakebell.reminders (booking, reminder, starts_at, message_id)
SELECT 'b-1', 'day_before', $2, id FROM message RETURNING message_id
"""
STORY = "SELECT status, last_error, judged_finish IS NOT DISTINCT FROM finished_at AS quiet FROM wakebell.messages"


@pytest.fixture
def bookings(database: Database) -> Bookings:
    return Bookings(database)


def moved(days: int = 1) -> Booking:
    return dataclasses.replace(BOOKING, start=dataclasses.replace(BOOKING.start, at=NINE + timedelta(days=days)))


async def looked_at(sql: asyncpg.Connection) -> None:
    await sql.execute("UPDATE wakebell.bookings SET next_at = NULL")


async def marks(sql: asyncpg.Connection) -> int:
    count: int = await sql.fetchval("SELECT count(*) FROM wakebell.reminders")
    return count


async def test_a_booking_is_made_once_and_the_same_once_more_changes_nothing(
    bookings: Bookings, sql: asyncpg.Connection
):
    first, made = await bookings.put(BOOKING)
    await looked_at(sql)
    second, made_again = await bookings.put(BOOKING)

    assert (made, made_again) == (True, False)
    assert second == first
    assert await sql.fetchval("SELECT next_at FROM wakebell.bookings") is None


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Shave"},
        {"start": Start(at=NINE + timedelta(minutes=1), zone=UTC)},
        {"start": Start(at=NINE, all_day=True, zone=UTC)},
        {"timezone": "Asia/Bangkok"},
        {"recipient": "you"},
        {"recipient": None, "channel": "line", "address": "U1"},
        {"language": "th"},
    ],
)
async def test_whatever_changes_has_the_booking_looked_at_again(
    bookings: Bookings, sql: asyncpg.Connection, change: dict[str, Any]
):
    await bookings.put(BOOKING)
    await looked_at(sql)

    stored, made = await bookings.put(dataclasses.replace(BOOKING, **change))

    assert not made
    assert stored.updated_at > stored.created_at
    assert await sql.fetchval("SELECT next_at <= now() FROM wakebell.bookings") is True


@pytest.mark.parametrize("how", ["moved", "deleted"])
@pytest.mark.parametrize(
    ("status", "after"),
    [
        ("queued", "failed"),
        ("retrying", "failed"),
        ("retrying unanswered", "uncertain"),
        ("sending", "sending"),
        ("sent", "sent"),
    ],
)
async def test_what_has_not_left_is_called_off_and_alarms_nobody(
    bookings: Bookings, sql: asyncpg.Connection, how: str, status: str, after: str
):
    await bookings.put(BOOKING)
    await sql.execute(MESSAGE, status, NINE)

    assert await bookings.put(moved()) if how == "moved" else await bookings.delete("b-1")

    story = await sql.fetchrow(STORY)
    assert story["status"] == after
    assert story["quiet"] is True
    assert (story["last_error"] is None) == (status == "sent")
    assert await marks(sql) == (0 if after == "failed" else 1)


async def test_one_that_is_on_its_way_is_not_tried_again(bookings: Bookings, sql: asyncpg.Connection):
    await bookings.put(BOOKING)
    await sql.execute(MESSAGE, "sending", NINE)

    await bookings.put(moved())

    assert await sql.fetchval("SELECT expires_at <= now() FROM wakebell.messages") is True


async def test_a_booking_that_comes_back_to_a_start_after_another_was_told_earns_it_again(
    bookings: Bookings, sql: asyncpg.Connection
):
    await bookings.put(BOOKING)
    await sql.execute(MESSAGE, "sent", NINE)
    await bookings.put(moved())
    await bookings.put(BOOKING)
    untold = await marks(sql)
    await bookings.put(moved())
    await sql.execute(MESSAGE, "sent", NINE + timedelta(days=1))

    await bookings.put(BOOKING)

    assert untold == 1
    assert await sql.fetch("SELECT starts_at FROM wakebell.reminders") == [(NINE + timedelta(days=1),)]


async def test_a_deleted_booking_is_gone_and_deleting_it_again_says_so(bookings: Bookings):
    await bookings.put(BOOKING)

    assert [await bookings.delete("b-1"), await bookings.delete("b-1")] == [True, False]
    assert await bookings.get("b-1") is None


async def test_pages_hold_every_booking_once(bookings: Bookings):
    for number in range(5):
        await bookings.put(dataclasses.replace(BOOKING, ref=f"b-{number}"))

    first = await bookings.list_bookings(limit=2)
    second = await bookings.list_bookings(limit=2, before=first.rows[-1].id)
    third = await bookings.list_bookings(limit=2, before=second.rows[-1].id)

    assert [[row.ref for row in page.rows] for page in (first, second, third)] == [
        ["b-4", "b-3"],
        ["b-2", "b-1"],
        ["b-0"],
    ]
    assert [page.more for page in (first, second, third)] == [True, True, False]


async def test_bookings_and_marks_are_pruned_some_time_after_their_start(
    database: Database, bookings: Bookings, sql: asyncpg.Connection
):
    await bookings.put(BOOKING)
    await bookings.put(dataclasses.replace(BOOKING, ref="b-2"))
    await sql.execute("UPDATE wakebell.bookings SET starts_at = now() - interval '15 days' WHERE ref = 'b-1'")
    await sql.execute(MESSAGE, "sent", datetime.now(UTC) - timedelta(days=15))
    await sql.execute(MESSAGE, "sent", NINE)

    pruned = [await store.prune(keep=timedelta(days=14), most=10) for store in (bookings, Reminders(database))]

    assert pruned == [1, 1]
    assert [row.ref for row in (await bookings.list_bookings(limit=9)).rows] == ["b-2"]
    assert await marks(sql) == 1
