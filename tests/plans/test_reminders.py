from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from app.context import Context
from app.plans import reminders as plan
from app.stores import reminders as stored
from tests.fakes.batches import a_batch, a_service, seen, watched

CONFIGURATION = """
[recipients.me]
channel = "inbox"

[reminders.day_before]
before = "24h"

[reminders.hour_before]
before = "1h"
"""
SHOP = """
[reminders.shop_day]
before = "24h"
query = "SELECT id AS ref, name AS title, begins AS starts_at, 'me' AS \\"to\\" FROM shop.visits"

[reminders.shop_hour]
before = "1h"
query = "SELECT id AS ref, name AS title, begins AS starts_at, 'me' AS \\"to\\" FROM shop.visits"
"""
VISITS = """
CREATE SCHEMA shop;
CREATE TABLE shop.visits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, begins timestamptz);
"""
ADD = "INSERT INTO shop.visits (name, begins) VALUES ('visit', now() + $1)"
BOOK = """
INSERT INTO wakebell.bookings (ref, title, starts_at, timezone, recipient)
SELECT 'b-' || n, 't', now() + $1, 'UTC', 'me' FROM generate_series(1, $2) AS n
"""
WAITING = """
WITH message AS (
    INSERT INTO wakebell.messages (recipient, channel, kind, body, text, expires_at)
    SELECT 'me', 'inbox', 'reminder', '', id::text, begins FROM shop.visits RETURNING id, text, expires_at
)
INSERT INTO wakebell.reminders (booking, reminder, starts_at, origin, message_id)
SELECT text, 'shop_day', expires_at, 'shop_day', id FROM message
"""
QUEUED = "SELECT payload ->> 'booking' FROM wakebell.jobs WHERE type = 'send_reminder' ORDER BY id"


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path) -> AsyncIterator[Context]:
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION)) as ctx:
        yield ctx


@pytest.fixture
async def shop(database_url: str, tmp_path: Path, sql: asyncpg.Connection) -> AsyncIterator[Context]:
    await sql.execute(VISITS)
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION + SHOP)) as ctx:
        yield ctx


async def tick(ctx: Context) -> int:
    """How many it has queued."""
    before = ctx.tally["reminders.queued"]
    await plan.plan(ctx, await seen(ctx))
    return ctx.tally["reminders.queued"] - before


async def queued(sql: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await sql.fetch(QUEUED)]


async def test_bookings_that_are_due_are_queued_and_counted(ctx: Context, sql: asyncpg.Connection):
    await sql.execute(BOOK, timedelta(hours=12), 3)

    assert await tick(ctx) == 3
    assert ctx.tally["reminders.queued"] == 3
    assert await tick(ctx) == 0


async def test_nothing_due_asks_the_database_nothing(
    ctx: Context, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await tick(ctx)
    look = await seen(ctx)
    database = ctx.stores.database
    monkeypatch.setattr(database, "fetch", None)
    monkeypatch.setattr(database, "transaction", None)

    assert await plan.plan(ctx, look) == 0


async def test_the_next_reminder_is_when_the_next_tick_is_due(ctx: Context, sql: asyncpg.Connection):
    await sql.execute(BOOK, timedelta(days=3), 1)
    await tick(ctx)

    look = await seen(ctx)

    expected = await sql.fetchval("SELECT starts_at - interval '24 hours' FROM wakebell.bookings")
    assert (look.next_due_at, look.bookings_due) == (expected, False)


async def test_without_any_reminder_bookings_are_kept_and_never_due(
    database_url: str, tmp_path: Path, sql: asyncpg.Connection
):
    await sql.execute(BOOK, timedelta(hours=12), 1)
    async with a_batch(a_service(database_url, tmp_path)) as ctx:
        assert await tick(ctx) == 0
        look = await seen(ctx)

    assert (look.bookings_due, look.next_due_at) == (False, None)


async def test_a_reminder_that_is_added_tells_of_bookings_that_are_there(
    database_url: str, tmp_path: Path, sql: asyncpg.Connection
):
    await sql.execute(BOOK, timedelta(hours=12), 1)
    async with a_batch(a_service(database_url, tmp_path)) as ctx:
        await tick(ctx)
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION)) as ctx:
        assert await tick(ctx) == 1

    assert await queued(sql) == ["b-1"]


async def test_rows_of_a_users_table_are_told_once_and_by_one_reminder(shop: Context, sql: asyncpg.Connection):
    await sql.execute(ADD, timedelta(minutes=30))
    await sql.execute(ADD, timedelta(days=2))

    assert [await tick(shop), await tick(shop)] == [1, 0]
    assert await queued(sql) == ["1"]
    assert (
        shop.tally.summary(
            tick=1,
            status="ok",
            started_at=(begins := await sql.fetchval("SELECT begins FROM shop.visits WHERE id = 2")),
            duration=timedelta(0),
            budget_exhausted=False,
            next_due_at=None,
        )["next_due_at"]
        == f"{begins - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    )


async def test_a_query_that_fails_makes_the_tick_partial_and_stops_nothing_else(shop: Context, sql: asyncpg.Connection):
    await sql.execute("DROP TABLE shop.visits")
    await sql.execute(BOOK, timedelta(hours=12), 1)

    assert await tick(shop) == 1

    assert shop.tally.status == "partial"
    assert shop.tally.errors == ["reminder shop_day failed: its query could not be run"]
    failing = await sql.fetch("SELECT name, failures FROM wakebell.reminder_rules WHERE failures > 0 ORDER BY name")
    assert [tuple(row) for row in failing] == [("shop_day", 1), ("shop_hour", 1)]
    assert (await seen(shop)).reminder_rules["shop_day"][1] == 1


async def test_a_query_that_gives_what_nobody_can_use_stops_no_other(
    database_url: str, tmp_path: Path, sql: asyncpg.Connection
):
    await sql.execute(VISITS)
    await sql.execute(ADD, timedelta(hours=3))
    bad = (
        '[reminders.bad]\nbefore = "24h"\n'
        "query = \"SELECT 'e' AS ref, 't' AS title, now()::timestamp + interval '1 hour' AS starts_at\"\n"
    )
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION + bad + SHOP)) as ctx:
        assert await tick(ctx) == 1

    assert ctx.tally.errors == ["reminder bad failed: its query could not be run"]
    told = await sql.fetchval("SELECT last_error FROM wakebell.reminder_rules WHERE failures = 1")
    assert told.startswith("it gives starts_at as timestamp without time zone; it must be a timestamptz")


async def test_whatever_breaks_one_query_is_its_own_failure(
    shop: Context, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    async def broken(*_: object) -> object:
        raise TypeError("a bug")

    monkeypatch.setattr(type(shop.stores.own_tables), "due", broken)

    assert await tick(shop) == 0
    assert shop.tally.errors == ["reminder shop_day failed: its query could not be run"]
    assert await sql.fetchval("SELECT min(failures) FROM wakebell.reminder_rules WHERE name LIKE 'shop%'") == 1


async def test_rows_without_a_ref_are_noted(shop: Context, sql: asyncpg.Connection):
    await sql.execute("ALTER TABLE shop.visits ALTER id DROP IDENTITY, DROP CONSTRAINT visits_pkey")
    await sql.execute("ALTER TABLE shop.visits ALTER id DROP NOT NULL")
    await sql.execute("INSERT INTO shop.visits (begins) SELECT now() + interval '3 hours' FROM generate_series(1, 2)")

    assert await tick(shop) == 0
    assert shop.tally.errors == ["reminder shop_day: rows left out since their ref is NULL: 2"]


async def test_however_many_messages_wait_those_of_rows_that_are_gone_are_withdrawn(
    shop: Context, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await tick(shop)
    monkeypatch.setattr(plan, "MOST_WAITING", 2)
    monkeypatch.setattr(stored, "MOST_WAITING", 2)
    for hours in (3, 4, 5, 6, 7):
        await sql.execute(ADD, timedelta(hours=hours))
    await sql.execute(WAITING)
    await sql.execute("DELETE FROM shop.visits WHERE id IN (1, 5)")

    await tick(shop)

    over = await sql.fetch("SELECT text FROM wakebell.messages WHERE status = 'failed' ORDER BY text")
    assert [row["text"] for row in over] == ["1", "5"]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.reminders WHERE booking IN ('1', '5')") == 0


async def test_messages_of_bookings_hide_no_message_of_a_users_table(shop: Context, sql: asyncpg.Connection):
    await tick(shop)
    await sql.execute(
        "INSERT INTO wakebell.messages (recipient, channel, kind, body, text, expires_at) "
        "SELECT 'me', 'inbox', 'reminder', '', '', now() + interval '1 hour' FROM generate_series(1, 200)"
    )
    await sql.execute(ADD, timedelta(hours=3))
    await sql.execute(WAITING)
    await sql.execute("DELETE FROM shop.visits")

    await tick(shop)

    assert await sql.fetchval("SELECT status FROM wakebell.messages WHERE text = '1'") == "failed"


async def test_a_changed_file_excuses_only_the_reminders_that_are_new(
    database_url: str, tmp_path: Path, sql: asyncpg.Connection
):
    old = CONFIGURATION.partition("[reminders.hour_before]")[0]
    async with a_batch(a_service(database_url, tmp_path, old)) as ctx:
        await tick(ctx)
    await sql.execute(BOOK, timedelta(minutes=-5), 1)
    await sql.execute("UPDATE wakebell.bookings SET scheduled_at = now() - interval '2 days'")
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION)) as ctx:
        assert await tick(ctx) == 1


async def test_a_query_that_works_again_is_no_failure_any_more(shop: Context, sql: asyncpg.Connection):
    await tick(shop)
    await sql.execute("UPDATE wakebell.reminder_rules SET failures = 3, last_error = 'why'")

    await tick(shop)

    assert await sql.fetchval("SELECT max(failures) FROM wakebell.reminder_rules WHERE name LIKE 'shop%'") == 0


async def test_reminders_with_one_query_ask_it_once(shop: Context, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []
    due = shop.stores.own_tables.due

    async def counting(query: str, rules: list[object]) -> object:
        asked.append(len(rules))
        return await due(query, rules)  # type: ignore[arg-type]

    monkeypatch.setattr(type(shop.stores.own_tables), "due", lambda _, query, rules: counting(query, rules))
    await tick(shop)
    with watched(monkeypatch) as made:
        await plan.plan(shop, await seen(shop))

    assert asked == [2, 2]
    assert len(made) == 1  # the look; a query has a transaction of its own
