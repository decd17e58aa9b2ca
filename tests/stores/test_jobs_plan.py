"""What putting in, finishing and changing read on a table that has been in use for a while: few pages, never all."""

from __future__ import annotations

import json

import asyncpg
import pytest

FILLED = """
INSERT INTO wakebell.jobs (type, queue, status, unique_key, started_at, finished_at)
SELECT 'greet', 'queue' || n % 5, 'done', 'key' || n % 1000, now(), now() - interval '1 day'
FROM generate_series(1, 100000) AS n;
INSERT INTO wakebell.jobs (type, queue, run_after)
SELECT 'greet', 'queue' || n % 5, now() + interval '3 hours'
FROM generate_series(1, 50000) AS n;
INSERT INTO wakebell.jobs (type, serial_key, waiting, run_after)
SELECT 'greet', 'line' || n % 100, n >= 100, now()
FROM generate_series(0, 9999) AS n;
INSERT INTO wakebell.jobs (type, status, finished_at)
SELECT CASE WHEN n % 2 = 0 THEN 'greet' ELSE 'other' END, 'failed', now()
FROM generate_series(1, 2000) AS n;
"""
LEASES = '{"greet": 60}'
TURN = f"""
SELECT wakebell.turn_jobs(
    (SELECT array_agg(id)::text FROM wakebell.claim_jobs(false, 100, '{LEASES}', 1, NULL)),
    array_fill(1::bigint, ARRAY[100])::text, NULL, false, 0, '{LEASES}', 2, NULL
)
"""
PUT_IN = """
SELECT wakebell.enqueue_many((
    SELECT jsonb_agg(jsonb_build_object('type', 'greet', 'unique_key', 'key' || n, 'serial_key', 'new' || n % 10))
    FROM generate_series(1, 100) AS n
))
"""
FAILED = "(SELECT min(id) FROM wakebell.jobs WHERE status = 'failed')"

MOST = {
    TURN: 8_000,
    PUT_IN: 6_000,
    "SELECT wakebell.retry_jobs('greet', 10)": 1_500,
    f"SELECT wakebell.retry_job({FAILED})": 300,
    "SELECT wakebell.cancel_job(150001)": 200,
    "SELECT wakebell.reschedule_job(150001, now())": 200,
    "SELECT wakebell.replace_job('greet', 'key7')": 100,
}
"""Pages that each may read, a hundred jobs or one."""


@pytest.mark.parametrize("analyzed", [False, True])
async def test_keeping_jobs_reads_few_pages_and_never_a_whole_table(analyzed: bool, sql: asyncpg.Connection):  # noqa: FBT001
    await sql.execute(FILLED)
    if analyzed:
        await sql.execute("VACUUM ANALYZE wakebell.jobs")

    read = {statement: await pages_and_scans(sql, statement) for statement in MOST}

    assert {told: found for told, found in read.items() if found[0] > MOST[told] or found[1]} == {}


async def pages_and_scans(sql: asyncpg.Connection, statement: str) -> tuple[int, int]:
    """Pages that it reads and whole scans of the table that it makes, when it is not the first of its session."""
    transaction = sql.transaction()
    await transaction.start()
    try:
        await sql.execute(f"SET LOCAL enable_seqscan = off; SAVEPOINT unread; {statement}; ROLLBACK TO unread")
        [plan] = json.loads(await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"))
        scans = await sql.fetchval(
            "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relid = 'wakebell.jobs'::regclass"
        )
        return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"], scans
    finally:
        await transaction.rollback()
