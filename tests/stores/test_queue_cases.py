"""Kinds of faults that queues on PostgreSQL have had elsewhere, each ruled out by one test."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from app.domain.jobs import NewJob
from app.stores.database import connect
from app.stores.jobs import Jobs

LEASES = {"greet": timedelta(seconds=60)}
ENDED = "UPDATE wakebell.jobs SET lease_until = now() - interval '1 second' WHERE lease_token = $1"

BOOKS = """
SELECT format('TRUNCATE %s CASCADE', string_agg(oid::regclass::text, ', '))
FROM pg_class
WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'r' AND relname NOT IN ('jobs', 'alembic_version')
"""
FUNCTIONS = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'wakebell'::regnamespace ORDER BY proname"
SESSION_LOCKS = r"""
SELECT proname FROM pg_proc
WHERE pronamespace = 'wakebell'::regnamespace
  AND prosrc ~* '\mpg_notify\M|\mNOTIFY\M|\mLISTEN\M|\mpg_(try_)?advisory_lock(_shared)?\M'
"""


async def claim_one(jobs: Jobs, token: int) -> int | None:
    claimed = await jobs.claim(own=False, limit=1, leases=LEASES, token=token)
    return claimed[0].id if claimed else None


async def test_bringing_back_a_job_whose_process_died_needs_nothing_but_its_own_row(
    jobs: Jobs, sql: asyncpg.Connection
):
    added = await jobs.enqueue(type="greet")
    await claim_one(jobs, token=1)
    await sql.execute(await sql.fetchval(BOOKS))
    await sql.execute(ENDED, 1)

    await jobs.rescue()

    assert await claim_one(jobs, token=2) == added.id


async def test_no_job_depends_on_a_row_of_another_table(sql: asyncpg.Connection):
    keys = await sql.fetchval(
        "SELECT count(*) FROM pg_constraint WHERE conrelid = 'wakebell.jobs'::regclass AND contype = 'f'"
    )

    assert keys == 0, "history would make ending a job slow, and a missing row would keep it from being brought back"


async def test_a_job_that_fails_while_its_twin_was_asked_for_comes_back_without_an_error(
    jobs: Jobs, sql: asyncpg.Connection
):
    first = await jobs.enqueue(type="greet", unique_key="k")
    [job] = await jobs.claim(own=False, limit=1, leases=LEASES, token=1)

    twin = await jobs.enqueue(type="greet", unique_key="k")
    with pytest.raises(asyncpg.UniqueViolationError):
        await sql.execute("INSERT INTO wakebell.jobs (type, unique_key) VALUES ('greet', 'k')")

    assert (twin.id, twin.created) == (first.id, False)
    assert await jobs.finish(job, "retry", delay=timedelta(), error="no")
    assert await claim_one(jobs, token=2) == first.id


async def test_a_dead_process_costs_each_job_its_own_lease_and_not_the_longest(jobs: Jobs, sql: asyncpg.Connection):
    quick = await jobs.enqueue(type="quick")
    slow = await jobs.enqueue(type="slow")
    leases = {"quick": timedelta(seconds=2), "slow": timedelta(seconds=600)}
    await jobs.claim(own=False, limit=2, leases=leases, token=1)
    await sql.execute("UPDATE wakebell.jobs SET lease_until = lease_until - interval '3 seconds'")  # as time passes

    rescued = await jobs.rescue()

    claimed = await jobs.claim(own=False, limit=2, leases=leases, token=2)
    assert (rescued.pending, [job.id for job in claimed]) == (1, [quick.id])
    running = await jobs.get(slow.id)
    assert running is not None
    assert running.status == "running"


async def test_a_late_finish_frees_no_second_place_under_a_limit(jobs: Jobs, sql: asyncpg.Connection):
    for _ in range(3):
        await jobs.enqueue(type="greet")
    await sql.execute("INSERT INTO wakebell.queues (name, max_running) VALUES ('default', 1)")
    [late] = await jobs.claim(own=False, limit=3, leases=LEASES, token=1)
    await sql.execute(ENDED, 1)
    await jobs.rescue()
    assert await claim_one(jobs, token=2) == late.id, "its handler may run still, and the lease is another's"

    assert not await jobs.finish(late, "done")
    assert await jobs.release([late]) == 0

    assert await claim_one(jobs, token=3) is None
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'running'") == 1


async def test_putting_in_wakes_nobody_and_holds_no_lock_that_a_pooler_would_keep(sql: asyncpg.Connection):
    triggers = await sql.fetch(
        "SELECT tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid "
        "WHERE c.relnamespace = 'wakebell'::regnamespace AND NOT t.tgisinternal"
    )

    assert triggers == []
    assert len(await sql.fetch(FUNCTIONS)) > 10
    assert await sql.fetch(SESSION_LOCKS) == []


async def test_many_keys_put_in_at_once_in_opposite_orders_meet_no_deadlock(database_url: str, sql: asyncpg.Connection):
    keys = [f"key {number}" for number in range(500)]
    databases = [connect(database_url) for _ in range(4)]

    async def put(jobs: Jobs, order: list[str]) -> int:
        created = 0
        for _ in range(8):
            added = await jobs.enqueue_many([NewJob(type="greet", unique_key=key) for key in order])
            created += sum(one.created for one in added)
            await sql_free(database_url)
        return created

    try:
        created = await asyncio.gather(
            *(put(Jobs(database), keys if number % 2 else keys[::-1]) for number, database in enumerate(databases))
        )
    finally:
        for database in databases:
            await database.dispose()

    assert sum(created) == await sql.fetchval("SELECT count(*) FROM wakebell.jobs")
    await sql.execute("SELECT pg_stat_force_next_flush()")
    assert await sql.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0


async def sql_free(url: str) -> None:
    """The keys are free for the next round."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "UPDATE wakebell.jobs SET status = 'done', finished_at = now() WHERE id = ANY (ARRAY("
            "SELECT id FROM wakebell.jobs WHERE status = 'pending' ORDER BY id LIMIT 250 FOR UPDATE SKIP LOCKED))"
        )
    finally:
        await connection.close()
