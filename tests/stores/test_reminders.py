from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.bookings import Booking, Rule, Start, course
from app.domain.errors import LeaseLost
from app.domain.jobs import Job
from app.domain.messages import Body
from app.stores.bookings import Bookings
from app.stores.database import Database
from app.stores.jobs import Jobs
from app.stores.reminders import MOST, Asked, Reminders, Telling

DAY_BEFORE = Rule(name="day_before", before=timedelta(hours=24))
HOUR_BEFORE = Rule(name="hour_before", before=timedelta(hours=1))
RULES = [DAY_BEFORE, HOUR_BEFORE]
LEASE = timedelta(seconds=60)

JOBS = "SELECT payload ->> 'booking' FROM wakebell.jobs WHERE type = 'send_reminder' ORDER BY 1"
MANY = """
INSERT INTO wakebell.bookings (ref, title, starts_at, timezone, recipient)
SELECT 'b-' || n, 't', now() + $1::interval + make_interval(secs => n), 'UTC', 'me' FROM generate_series(1, $2) AS n
"""


@pytest.fixture
def reminders(database: Database) -> Reminders:
    return Reminders(database)


@pytest.fixture
def bookings(database: Database) -> Bookings:
    return Bookings(database)


def booking(ref: str = "b-1", *, hours: float = 12) -> Booking:
    start = Start(at=datetime.now(UTC) + timedelta(hours=hours), zone=UTC)
    return Booking(ref=ref, title="Haircut", start=start, timezone="UTC", recipient="me")


async def queued(sql: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await sql.fetch(JOBS)]


async def make_due(sql: asyncpg.Connection) -> None:
    await sql.execute("UPDATE wakebell.bookings SET next_at = now()")


async def claimed(jobs: Jobs) -> Job:
    [job] = await jobs.claim(own=True, limit=1, leases={"send_reminder": LEASE}, token=7)
    return job


def telling(told: Booking, now: datetime | None = None) -> Telling:
    passed = course(told.start, RULES, now or datetime.now(UTC)).passed
    return Telling(
        booking=told, origin="", passed=passed, to="me", channel="inbox", address="f", bodies=[Body(body="b", text="t")]
    )


async def test_a_booking_whose_instant_has_passed_is_queued_and_the_next_one_is_waited_for(
    reminders: Reminders, bookings: Bookings, sql: asyncpg.Connection
):
    due, later = booking("due"), booking("later", hours=30)
    await bookings.put(due)
    await bookings.put(later)

    assert await reminders.any_due() is True
    assert await reminders.plan(RULES) == (1, False)

    assert await reminders.any_due() is False
    assert await queued(sql) == ["due"]
    waits = dict(await sql.fetch("SELECT ref, starts_at - next_at FROM wakebell.bookings"))
    assert waits == {"due": timedelta(hours=1), "later": timedelta(hours=24)}
    assert await reminders.plan(RULES) == (0, False)


async def test_one_job_at_a_time_tells_of_a_start(reminders: Reminders, bookings: Bookings, sql: asyncpg.Connection):
    await bookings.put(booking())
    await reminders.plan(RULES)
    await make_due(sql)

    assert await reminders.plan(RULES) == (0, False)
    assert await queued(sql) == ["b-1"]


async def test_what_was_told_is_not_queued_again_whatever_is_configured_since(
    reminders: Reminders, bookings: Bookings, jobs: Jobs, sql: asyncpg.Connection
):
    told = booking(hours=0.5)
    await bookings.put(told)
    await reminders.plan(RULES)
    await reminders.tell(await claimed(jobs), telling(told))
    await reminders.keep_rules({"day_before": "other"})

    assert await reminders.plan([DAY_BEFORE]) == (0, False)  # the later one of both was told: both count

    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages") == 1
    names = await sql.fetch("SELECT reminder FROM wakebell.reminders ORDER BY 1")
    assert [row[0] for row in names] == ["day_before", "hour_before"]


async def test_a_moved_booking_earns_a_new_reminder_and_its_old_job_finds_no_such_start(
    reminders: Reminders, bookings: Bookings, sql: asyncpg.Connection
):
    first = booking()
    await bookings.put(first)
    await reminders.plan(RULES)
    second = dataclasses.replace(first, start=dataclasses.replace(first.start, at=first.start.at + timedelta(hours=1)))
    await bookings.put(second)

    assert await reminders.plan(RULES) == (1, False)
    assert await queued(sql) == ["b-1", "b-1"]
    assert await reminders.find("b-1", first.start.at) is None
    assert (await reminders.find("b-1", second.start.at)) is not None


async def test_a_booking_in_the_past_is_let_be_and_one_that_no_tick_came_for_is_not(
    reminders: Reminders, bookings: Bookings, sql: asyncpg.Connection
):
    await bookings.put(booking("past", hours=-1))
    await bookings.put(booking("missed", hours=-1))
    await sql.execute("UPDATE wakebell.bookings SET scheduled_at = now() - interval '2 days' WHERE ref = 'missed'")

    assert await reminders.plan(RULES) == (1, False)
    assert await queued(sql) == ["missed"]


async def test_other_reminders_than_before_call_nothing_missed(
    reminders: Reminders, bookings: Bookings, sql: asyncpg.Connection
):
    await bookings.put(booking(hours=-1))
    await sql.execute("UPDATE wakebell.bookings SET scheduled_at = now() - interval '2 days'")

    assert await reminders.plan(RULES, new={rule.name for rule in RULES}) == (0, False)


async def test_a_new_reminder_excuses_nobody_from_coming_for_an_old_one(
    reminders: Reminders, bookings: Bookings, sql: asyncpg.Connection
):
    await bookings.put(booking(hours=-1))
    await sql.execute("UPDATE wakebell.bookings SET scheduled_at = now() - interval '2 days'")

    assert await reminders.plan(RULES, new={"hour_before"}) == (1, False)
    assert await queued(sql) == ["b-1"]


async def test_other_reminders_have_what_is_to_come_looked_at_again(
    reminders: Reminders, bookings: Bookings, sql: asyncpg.Connection
):
    for ref, hours in (("past", -1), ("to come", 48)):
        await bookings.put(booking(ref, hours=hours))
    await reminders.plan(RULES)

    await reminders.keep_rules({"week_before": "f"})

    due = await sql.fetch("SELECT ref FROM wakebell.bookings WHERE next_at <= now()")
    assert [row[0] for row in due] == ["to come"]
    assert await sql.fetch("SELECT name, fingerprint FROM wakebell.reminder_rules") == [("week_before", "f")]


async def test_four_plans_at_once_queue_each_booking_once(reminders: Reminders, sql: asyncpg.Connection):
    await sql.execute(MANY, timedelta(hours=1), 200)

    found = await asyncio.gather(*(reminders.plan(RULES) for _ in range(4)))

    assert sum(count for count, _ in found) == 200
    assert len(set(await queued(sql))) == 200


async def test_thousands_of_new_bookings_are_looked_at_in_portions(reminders: Reminders, sql: asyncpg.Connection):
    await sql.execute(MANY, timedelta(days=30), MOST + 1)

    assert [await reminders.plan(RULES), await reminders.plan(RULES)] == [(0, True), (0, False)]


async def test_the_message_its_job_the_mark_and_the_end_of_the_job_are_one(
    reminders: Reminders, bookings: Bookings, jobs: Jobs, sql: asyncpg.Connection
):
    told = booking()
    await bookings.put(told)
    await reminders.plan(RULES)
    job = await claimed(jobs)

    assert await reminders.tell(job, telling(told)) is True

    message = await sql.fetchrow("SELECT * FROM wakebell.messages")
    assert (message["kind"], message["status"], message["expires_at"]) == ("reminder", "queued", told.start.at)
    assert await sql.fetchval("SELECT message_id FROM wakebell.reminders") == message["id"]
    assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE id = $1", job.id) == "done"
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'send_message'") == 1
    found = await reminders.find("b-1", told.start.at)
    assert found is not None
    assert found.told == {"day_before"}


@pytest.mark.parametrize("change", [{"title": "Shave"}, {"recipient": "you"}, {"language": "th"}])
async def test_a_booking_that_has_changed_since_it_was_read_is_not_told_as_it_was(
    reminders: Reminders, bookings: Bookings, jobs: Jobs, sql: asyncpg.Connection, change: dict[str, Any]
):
    read = booking()
    await bookings.put(read)
    await reminders.plan(RULES)
    await bookings.put(dataclasses.replace(read, **change))

    assert await reminders.tell(await claimed(jobs), telling(read)) is False
    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages") == 0


async def test_who_lost_the_lease_or_comes_second_writes_nothing(
    reminders: Reminders, bookings: Bookings, jobs: Jobs, sql: asyncpg.Connection
):
    told = booking()
    await bookings.put(told)
    await reminders.plan(RULES)
    job = await claimed(jobs)
    with pytest.raises(LeaseLost):
        await reminders.tell(dataclasses.replace(job, token=8), telling(told))
    await reminders.tell(job, telling(told))
    await sql.execute("UPDATE wakebell.jobs SET status = 'pending', finished_at = NULL WHERE type = 'send_reminder'")

    with pytest.raises(LeaseLost):
        await reminders.tell(await claimed(jobs), telling(told))

    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages") == 1


async def test_what_can_be_told_to_nobody_is_marked_and_its_job_is_failed(
    reminders: Reminders, bookings: Bookings, jobs: Jobs, sql: asyncpg.Connection
):
    told = booking()
    await bookings.put(told)
    await reminders.plan(RULES)

    await reminders.refuse(
        await claimed(jobs), booking="b-1", starts_at=told.start.at, origin="", passed=["day_before"], reason="why"
    )
    await make_due(sql)

    assert await reminders.plan(RULES) == (0, False)
    assert await sql.fetch("SELECT status, last_error FROM wakebell.jobs") == [("failed", "why")]


async def test_messages_whose_time_has_passed_are_ended_with_the_reason(reminders: Reminders, sql: asyncpg.Connection):
    for status, unanswered, late in (
        ("queued", False, True),
        ("retrying", True, True),
        ("sending", False, True),
        ("queued", False, False),
    ):
        await sql.execute(
            "INSERT INTO wakebell.messages (recipient, channel, kind, status, body, text, unanswered, last_error, "
            "expires_at) VALUES ('me', 'line', 'reminder', $1, '', '', $2, 'LINE is down', now() + $3)",
            status,
            unanswered,
            timedelta(seconds=-1 if late else 60),
        )

    assert await reminders.expire() == 2

    rows = await sql.fetch("SELECT status, last_error FROM wakebell.messages ORDER BY id")
    told = "its time has passed before it could be sent; before that: LINE is down"
    assert [tuple(row) for row in rows] == [
        ("failed", told),
        ("uncertain", told),
        ("sending", "LINE is down"),
        ("queued", "LINE is down"),
    ]


async def test_a_query_that_fails_is_counted_until_it_works_again(reminders: Reminders, sql: asyncpg.Connection):
    await reminders.keep_rules({"x": "f", "y": "f"})

    for _ in range(2):
        await reminders.fail_query(["x"], "no such table")
    failing = await sql.fetch("SELECT failures, last_error FROM wakebell.reminder_rules ORDER BY name")
    await reminders.heal_query(["x"])

    assert failing == [(2, "no such table"), (0, None)]
    assert await sql.fetchval("SELECT failures FROM wakebell.reminder_rules WHERE name = 'x'") == 0


async def test_rows_of_a_users_table_are_queued_once(reminders: Reminders, sql: asyncpg.Connection):
    asked = [Asked(booking="17", starts_at=datetime.now(UTC), reminder="x", origin="x")]

    assert [await reminders.queue(asked), await reminders.queue(asked)] == [1, 0]
