from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.settings import Retention
from app.stores.database import Database
from app.stores.jobs import Jobs
from app.stores.looks import About, Look, Looks

ABOUT = About(
    users=["greet"],
    own=["fetch_source"],
    sources=["board"],
    recipients=["me"],
    kept=Retention(items=timedelta(days=45), jobs=timedelta(days=14), messages=timedelta(days=90)),
)

NOTHING = Look(
    rescuable=False,
    strange=False,
    startable=0,
    owed=False,
    abandoned=False,
    prunable=False,
    judgeable=False,
    next_due_at=None,
)

JOB = "INSERT INTO wakebell.jobs (type, queue, status, {columns}) VALUES ('{type}', '{queue}', '{status}', {values})"


def job(columns: str, values: str, *, kind: str = "greet", queue: str = "default", status: str = "pending") -> str:
    return JOB.format(type=kind, queue=queue, status=status, columns=columns, values=values)


OWED = (
    "WITH item AS (INSERT INTO wakebell.items (source, key, title) VALUES ('board', 'k', 't') RETURNING id) "
    "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, '{to}', '[]' FROM item"
)
COMPOSING = job("unique_key", "'me'", kind="compose_messages", queue="wakebell.compose")
WAITING = job(
    "unique_key, run_after", "'me', now() + interval '1 h'", kind="compose_messages", queue="wakebell.compose"
)
MESSAGE = "INSERT INTO wakebell.messages (recipient, channel, status, body, text) VALUES ('me', 'x', '{}', '', '')"
ALERT = (
    "INSERT INTO wakebell.alerts (key, kind, subject, reason, failures, failed_at) "
    "VALUES ('job_failed:x', 'job_failed', 'x', '', 1, now())"
)
PAUSED = "INSERT INTO wakebell.queues (name, paused_until) VALUES ('default', 'infinity')"
OF_FETCHES = job("run_after", "now()", kind="fetch_source", queue="wakebell.fetch")

SEEN: dict[str, tuple[list[str], dict[str, Any]]] = {
    "a lease that has run out": (
        [job("lease_token, lease_until", "1, now() - interval '1 s'", status="running")],
        {"rescuable": True},
    ),
    "a lease that holds": ([job("lease_token, lease_until", "1, now() + interval '9 s'", status="running")], {}),
    "a job in line": ([job("serial_key, waiting", "'k', true")], {"rescuable": True}),
    "one of a queue that is paused": ([job("run_after", "now()"), PAUSED], {}),
    "one of our own": ([OF_FETCHES], {"startable": 1}),
    "one that nobody handles": ([job("run_after", "now()", kind="other")], {"strange": True}),
    "one that nobody handles, and is parked": ([job("held", "true", kind="other")], {"judgeable": True}),
    "one that was parked, of a type known now": ([job("held", "true")], {"strange": True, "judgeable": True}),
    "one that nobody handles, later": ([job("run_after", "now() + interval '1 h'", kind="other")], {}),
    "one that failed": ([job("finished_at", "now()", status="failed")], {"judgeable": True}),
    "something owed": ([OWED.format(to="me")], {"owed": True, "tellable": ("me",)}),
    "something owed that is being composed": ([OWED.format(to="me"), COMPOSING], {}),
    "something owed that waits to be composed": ([OWED.format(to="me"), WAITING], {"held": 1}),
    "something owed to nobody we know": ([OWED.format(to="you")], {}),
    "a message without a job": ([MESSAGE.format("sending")], {"abandoned": True}),
    "a message that was sent": ([MESSAGE.format("sent")], {}),
    "an alert": ([ALERT], {"judgeable": True}),
}


@pytest.fixture
def looks(database: Database) -> Looks:
    return Looks(database)


@pytest.mark.parametrize("what", SEEN)
async def test_a_look_sees_what_there_is(looks: Looks, sql: asyncpg.Connection, what: str):
    statements, expected = SEEN[what]
    for statement in statements:
        await sql.execute(statement)

    look = await looks.look(ABOUT)

    assert dataclasses.replace(look, next_due_at=None) == dataclasses.replace(NOTHING, **expected)


async def test_jobs_that_rank_before_they_are_due_hide_none_that_is(looks: Looks, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, priority, run_after) "
        "SELECT 'greet', 100, now() + interval '1 hour' FROM generate_series(1, 150)"
    )
    await sql.execute(job("run_after", "now()"))
    await sql.execute(job("run_after", "now()", kind="other"))

    look = await looks.look(ABOUT)

    assert (look.startable, look.strange) == (1, True)
    assert look.next_due_at is not None
    assert look.next_due_at <= datetime.now(UTC)


@pytest.mark.parametrize("at", ["'infinity'", "'-infinity'", "'57943-01-01'", "'0044-03-15 BC'"])
async def test_a_time_that_no_driver_can_read_stops_no_look(looks: Looks, jobs: Jobs, sql: asyncpg.Connection, at: str):
    await sql.execute(job("run_after", at))

    look = await looks.look(ABOUT)

    assert look.next_due_at is not None
    assert look.next_due_at.tzinfo is not None
    [stored] = await sql.fetch("SELECT id FROM wakebell.jobs")
    found = await jobs.get(stored["id"])
    assert found is not None
    assert found.run_after.tzinfo is not None


async def test_an_empty_database_has_nothing(looks: Looks):
    assert await looks.look(ABOUT) == NOTHING


async def test_what_opens_a_tick_looks_too(looks: Looks, sql: asyncpg.Connection):
    await sql.execute(job("run_after", "now()"))

    tick, look = await looks.open(ABOUT, trigger="http")

    assert look.startable == 1
    assert await sql.fetchval("SELECT trigger FROM wakebell.ticks WHERE id = $1", tick.id) == "http"


async def test_what_is_due_next_is_of_the_first_that_may_start(looks: Looks, jobs: Jobs, sql: asyncpg.Connection):
    now = datetime.now(UTC)
    await jobs.enqueue(type="greet", run_after=now + timedelta(minutes=90), priority=100)
    await jobs.enqueue(type="greet", run_after=now + timedelta(minutes=30), queue="other", serial_key="k")
    await jobs.enqueue(type="greet", run_after=now + timedelta(minutes=10), queue="other", serial_key="k")
    held = await jobs.enqueue(type="unknown", run_after=now + timedelta(minutes=5))
    await sql.execute("UPDATE wakebell.jobs SET held = true WHERE id = $1", held.id)

    assert (await looks.look(ABOUT)).next_due_at == now + timedelta(minutes=30)


async def test_a_source_may_be_due_next(looks: Looks, jobs: Jobs, sql: asyncpg.Connection):
    now = datetime.now(UTC)
    await jobs.enqueue(type="greet", run_after=now + timedelta(minutes=30))
    await sql.execute(
        "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at) VALUES ('board', 'f', 60, $1)",
        now + timedelta(minutes=20),
    )

    assert (await looks.look(ABOUT)).next_due_at == now + timedelta(minutes=20)


MORNING = datetime(2030, 1, 1, 7, tzinfo=UTC)


async def test_what_is_held_is_counted_and_due_later(looks: Looks, sql: asyncpg.Connection):
    await sql.execute(OWED.format(to="me"))
    asked: list[tuple[str, datetime, datetime | None]] = []

    def held_until(name: str, now: datetime, full_since: datetime | None) -> datetime | None:
        asked.append((name, now, full_since))
        return MORNING

    look = await looks.look(dataclasses.replace(ABOUT, held_until=held_until))

    assert look == dataclasses.replace(NOTHING, held=1, next_due_at=MORNING)
    [(name, now, full_since)] = asked
    assert (name, full_since) == ("me", None)
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=5)


async def test_a_look_tells_when_somebody_was_told_so_many_times(looks: Looks, sql: asyncpg.Connection):
    await sql.execute(OWED.format(to="me"))
    for hours in (9, 6, 3):
        await sql.execute(MESSAGE.format("sent"))
        await sql.execute(
            "UPDATE wakebell.messages SET created_at = now() - make_interval(hours => $1) "
            "WHERE id = (SELECT max(id) FROM wakebell.messages)",
            hours,
        )
    ages: dict[int, timedelta | None] = {}
    for most in (1, 3, 4):

        def held_until(name: str, now: datetime, full_since: datetime | None, most: int = most) -> None:
            ages[most] = None if full_since is None else now - full_since

        await looks.look(dataclasses.replace(ABOUT, most_a_day={"me": most}, held_until=held_until))

    assert {most: None if age is None else round(age / timedelta(hours=1)) for most, age in ages.items()} == {
        1: 3,
        3: 9,
        4: None,
    }
