from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.settings import Retention
from app.stores.database import Database
from app.stores.looks import About, Looks
from app.stores.ticks import Tick, Ticks

ABOUT = About(
    users=[],
    own=[],
    sources=[],
    recipients=[],
    kept=Retention(items=timedelta(days=45), jobs=timedelta(days=14), messages=timedelta(days=90)),
)


@pytest.fixture
def ticks(database: Database) -> Ticks:
    return Ticks(database)


@pytest.fixture
def looks(database: Database) -> Looks:
    return Looks(database)


async def begun(looks: Looks, trigger: str) -> Tick:
    tick, _ = await looks.open(ABOUT, trigger=trigger)
    return tick


async def test_a_tick_is_kept_with_what_it_came_to(looks: Looks, ticks: Ticks, sql: asyncpg.Connection):
    tick = await begun(looks, "http")
    await ticks.close(tick, status="partial", summary={"errors": ["source ก failed"]})

    row = await sql.fetchrow("SELECT * FROM wakebell.ticks WHERE id = $1", tick.id)
    assert (row["trigger"], row["status"]) == ("http", "partial")
    assert json.loads(row["summary"]) == {"errors": ["source ก failed"]}
    assert row["started_at"] == tick.started_at <= row["finished_at"]


async def test_a_tick_that_was_killed_has_no_status(looks: Looks, sql: asyncpg.Connection):
    tick = await begun(looks, "cli")

    assert await sql.fetchval("SELECT status FROM wakebell.ticks WHERE id = $1", tick.id) is None
    assert abs(datetime.now(UTC) - tick.started_at) < timedelta(minutes=1)


async def test_two_at_once_are_two(looks: Looks):
    opened = await asyncio.gather(*(begun(looks, "http") for _ in range(4)))

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
