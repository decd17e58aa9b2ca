"""What the queue's statements read on a table that has been in use for a while: pages, which are the same on every
machine, and no whole table.
"""

from __future__ import annotations

import asyncpg
import pytest

from tests.stores.pages import above, read

HISTORY = """
INSERT INTO wakebell.jobs (type, queue, status, run_after, attempts, started_at, finished_at)
SELECT 'greet', 'queue' || n % 5, 'done', now() - interval '2 days', 1, now(), now() - interval '1 day'
FROM generate_series(1, 200000) AS n
"""
FUTURE = """
INSERT INTO wakebell.jobs (type, queue, run_after, priority)
SELECT 'greet', 'queue' || n % 5, now() + interval '3 hours' + make_interval(secs => n), n % 101
FROM generate_series(1, 200000) AS n
"""
IN_LINE = """
INSERT INTO wakebell.jobs (type, serial_key, waiting, run_after)
SELECT 'greet', 'key' || n % 100, n >= 100, CASE WHEN n >= 100 THEN now() ELSE now() + interval '1 day' END
FROM generate_series(0, 19999) AS n
"""
DUE = """
INSERT INTO wakebell.jobs (type, queue, run_after)
SELECT 'greet', 'queue' || n % 5, now() - interval '1 minute'
FROM generate_series(1, 20000) AS n
"""
LIMITS = "INSERT INTO wakebell.queues (name, max_running) SELECT 'queue' || n, 50 FROM generate_series(1, 3) AS n"

CLAIM_100 = "SELECT * FROM wakebell.claim_jobs(false, 100, '{\"greet\": 60}', 1, NULL)"
CLAIM_1000 = "SELECT * FROM wakebell.claim_jobs(false, 1000, '{\"greet\": 60}', 1, NULL)"
CLAIM_OWN = "SELECT * FROM wakebell.claim_jobs(true, 100, '{\"greet\": 60}', 1, NULL)"
CLAIM_ONE = "SELECT * FROM wakebell.claim_jobs(false, 100, '{\"greet\": 60}', 1, 'queue1')"
CLAIM_NONE = "SELECT * FROM wakebell.claim_jobs(false, 100, '{\"greet\": 60}', 1, 'queue0a')"
RESCUE = "SELECT * FROM wakebell.rescue_jobs(1000)"
PARK = "SELECT wakebell.park_jobs('[\"greet\"]')"
COUNT = "SELECT wakebell.count_startable('[\"greet\"]', 1000, NULL)"
COUNT_ONE = "SELECT wakebell.count_startable('[\"greet\"]', 1000, 'queue1')"
PRUNE = "SELECT wakebell.prune_jobs(864000, 500)"

IDLE = {
    CLAIM_100: 150,
    CLAIM_1000: 150,
    CLAIM_OWN: 100,
    CLAIM_ONE: 60,
    CLAIM_NONE: 60,
    PARK: 150,
    COUNT: 150,
    COUNT_ONE: 60,
    RESCUE: 900,
    PRUNE: 20,
}
"""Pages that each may read when it finds nothing to do. A rescue asks after each of the 100 serial keys."""

BUSY = {CLAIM_100: 3_000, CLAIM_1000: 25_000, CLAIM_ONE: 3_000, CLAIM_NONE: 60}
"""With that many jobs to take, or none in that queue: some twenty for each, for its row and its places in indexes."""


@pytest.mark.timeout(300)
async def test_its_statements_read_few_pages_and_never_a_whole_table(sql: asyncpg.Connection):
    assert await faults(sql) == []


async def faults(sql: asyncpg.Connection) -> list[str]:
    """What reads too much in an empty database that is filled here."""
    for script in (HISTORY, FUTURE, IN_LINE):
        await sql.execute(script)

    never_analyzed = {statement: await read(sql, statement) for statement in IDLE}
    await sql.execute("VACUUM ANALYZE wakebell.jobs")
    idle = {statement: await read(sql, statement) for statement in IDLE}
    await sql.execute(DUE)
    await sql.execute(LIMITS)
    busy = {statement: await read(sql, statement) for statement in BUSY}

    states = {"never analyzed": (never_analyzed, IDLE), "idle": (idle, IDLE), "busy": (busy, BUSY)}
    return [
        f"{state}: {statement} read {count} pages, {scans} times all"
        for state, (found, allowed) in states.items()
        for statement, (count, scans) in above(found, allowed).items()
    ]
