from __future__ import annotations

import json
from datetime import timedelta

import asyncpg
import pytest

from app.stores import parked
from app.stores.database import Database

PARK = (
    "INSERT INTO wakebell.jobs (type, held, status, run_after) "
    "SELECT $1, true, $2, now() - make_interval(mins => $3) FROM generate_series(1, $4)"
)


async def test_where_none_is_there_is_nothing(database: Database):
    found = await parked.read(database)

    assert (found.count, found.types, found.since) == (0, [], None)


async def test_they_are_counted_with_their_types_and_since_when(database: Database, sql: asyncpg.Connection):
    for kind, status, minutes, count in (
        ("send_recipt", "pending", 30, 2),
        ("another", "pending", 90, 1),
        ("taken out by hand", "cancelled", 999, 3),
    ):
        await sql.execute(PARK, kind, status, minutes, count)
    await sql.execute("INSERT INTO wakebell.jobs (type) VALUES ('due')")

    found = await parked.read(database)

    assert (found.count, found.types) == (3, ["another", "send_recipt"])
    assert found.since is not None
    now = await sql.fetchval("SELECT now()")
    assert (now - found.since) // timedelta(minutes=1) == 90


@pytest.mark.parametrize("analyzed", [False, True])
async def test_however_many_there_are_it_reads_few_pages(sql: asyncpg.Connection, *, analyzed: bool):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, held) SELECT 'type' || n % 30, true FROM generate_series(1, 50000) AS n"
    )
    if analyzed:
        await sql.execute("VACUUM ANALYZE wakebell.jobs")

    statement, names = parked.SQL["parked"].driver
    params = [PARAMS[name] for name in names]
    [plan] = json.loads(await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *params))

    assert (
        plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 1200
    )  # most of them to count a thousand


PARAMS = {"most_types": 20, "most": 1000, "old_seconds": 86400.0}


async def test_types_that_wait_for_a_day_are_told_apart(database: Database, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, held, run_after) VALUES ('old', true, now() - interval '25 hours'), "
        "('new', true, now() - interval '23 hours'), ('known', false, now() - interval '99 hours')"
    )

    found = await parked.read(database)

    assert (found.types, found.old_types) == (["new", "old"], ["old"])
