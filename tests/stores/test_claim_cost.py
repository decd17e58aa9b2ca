"""What a claim costs in a table that is full, or whose dead rows nobody may remove: in pages, hardly more than ever."""

from __future__ import annotations

import asyncpg
import pytest

from tests.stores.pages import LOOK, read
from tests.stores.test_claim_plan import CLAIM_100, DUE

HISTORY = """
INSERT INTO wakebell.jobs (type, queue, status, run_after, attempts, started_at, finished_at)
SELECT 'greet', 'queue' || n % 5, 'done', now() - interval '2 days', 1, now(), now() - interval '1 day'
FROM generate_series(1, 60000) AS n
"""
NEXT_WEEK = """
INSERT INTO wakebell.jobs (type, queue, run_after, priority)
SELECT 'greet', 'queue' || n % 5, now() + interval '7 days' + make_interval(secs => n), n % 101
FROM generate_series(1, 60000) AS n
"""
IN_LINE = """
INSERT INTO wakebell.jobs (type, serial_key, waiting, run_after)
SELECT 'greet', 'key' || n % 50, n >= 50, CASE WHEN n >= 50 THEN now() ELSE now() + interval '1 day' END
FROM generate_series(0, 9999) AS n
"""
MANY = """
INSERT INTO wakebell.jobs (type, queue, run_after)
SELECT 'greet', 'queue' || n % 5, now() - interval '1 hour' + make_interval(secs => n * 0.01)
FROM generate_series(1, 12000) AS n
"""

IDLE_PAGES = 1_000
"""For a claim, and for a tick's look, which reads the next hundred of each queue: however many rows there are."""


@pytest.mark.timeout(300)
async def test_it_costs_as_much_in_a_full_table_as_in_an_empty_one(sql: asyncpg.Connection):
    await sql.execute(DUE)
    empty = [await claimed(sql), await vacuumed_and_claimed(sql)]
    await sql.execute("TRUNCATE wakebell.jobs")
    for script in (HISTORY, NEXT_WEEK, IN_LINE):
        await sql.execute(script)
    idle = [await read(sql, CLAIM_100), await read(sql, *LOOK)]
    await sql.execute("VACUUM ANALYZE wakebell.jobs")
    idle += [await read(sql, CLAIM_100), await read(sql, *LOOK)]
    await sql.execute(DUE)

    full = [await claimed(sql), await vacuumed_and_claimed(sql)]

    assert [there / here for here, there in zip(empty, full, strict=True) if there > 1.5 * here] == []
    assert [(count, scans) for count, scans in idle if count > IDLE_PAGES or scans] == []


@pytest.mark.timeout(300)
async def test_it_costs_little_more_while_somebody_holds_an_old_snapshot(sql: asyncpg.Connection, database_url: str):
    await sql.execute(MANY)
    await sql.execute("VACUUM ANALYZE wakebell.jobs")
    holding = await asyncpg.connect(database_url)
    try:
        await holding.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM wakebell.queues")

        first = await claimed(sql)
        for token in range(1, 12):
            await sql.fetch(turn(token))
        last = await claimed(sql)
    finally:
        await holding.close()

    # The dead ones before the first that lives are walked over once, not once for each step of the claim.
    assert last < 4 * first


def turn(token: int) -> str:
    """Finish what the claim before has taken, and claim a thousand."""
    return f"""
        SELECT wakebell.turn_jobs(
            coalesce(CAST(array_agg(j.id) AS text), '{{}}'),
            coalesce(CAST(array_agg(j.lease_token) AS text), '{{}}'),
            NULL, false, 1000, '{{"greet": 60}}', {token}, NULL
        )
        FROM wakebell.jobs AS j
        WHERE j.status = 'running'
    """


async def claimed(sql: asyncpg.Connection, statement: str = CLAIM_100) -> int:
    count, _ = await read(sql, statement)
    return count


async def vacuumed_and_claimed(sql: asyncpg.Connection) -> int:
    await sql.execute("VACUUM ANALYZE wakebell.jobs")
    return await claimed(sql)
