from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.stores.database import Database
from app.stores.ticks import Ticks


@pytest.fixture
def ticks(database: Database) -> Ticks:
    return Ticks(database)


async def test_a_tick_is_kept_with_what_it_came_to(ticks: Ticks, sql: asyncpg.Connection):
    tick = await ticks.open(trigger="http")
    await ticks.close(tick, status="partial", summary={"errors": ["source ก failed"]})

    row = await sql.fetchrow("SELECT * FROM wakebell.ticks WHERE id = $1", tick.id)
    assert (row["trigger"], row["status"]) == ("http", "partial")
    assert json.loads(row["summary"]) == {"errors": ["source ก failed"]}
    assert row["started_at"] == tick.started_at <= row["finished_at"]


async def test_a_tick_that_was_killed_has_no_status(ticks: Ticks, sql: asyncpg.Connection):
    tick = await ticks.open(trigger="cli")

    assert await sql.fetchval("SELECT status FROM wakebell.ticks WHERE id = $1", tick.id) is None
    assert abs(datetime.now(UTC) - tick.started_at) < timedelta(minutes=1)


async def test_two_at_once_are_two(ticks: Ticks):
    opened = await asyncio.gather(*(ticks.open(trigger="http") for _ in range(4)))

    assert len({tick.id for tick in opened}) == 4


async def test_old_ticks_are_pruned_oldest_first(ticks: Ticks, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.ticks (trigger, started_at) SELECT n::text, now() - make_interval(days => n) "
        "FROM generate_series(0, 5) AS n",
    )

    pruned = await ticks.prune(keep=timedelta(days=2, hours=1), most=2)

    left = [row["trigger"] for row in await sql.fetch("SELECT trigger FROM wakebell.ticks ORDER BY id")]
    assert pruned == 2
    assert left == ["0", "1", "2", "3"]


async def test_two_prunings_at_once_share_the_rows(ticks: Ticks, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.ticks (trigger, started_at) SELECT 'old', now() - interval '9 days' "
        "FROM generate_series(1, 40)",
    )

    pruned = await asyncio.gather(*(ticks.prune(keep=timedelta(days=1), most=10) for _ in range(4)))

    assert sum(pruned) == 40 - await sql.fetchval("SELECT count(*) FROM wakebell.ticks")
