from __future__ import annotations

from datetime import timedelta

import asyncpg
import pytest

from app.domain.jobs import MAX_CRASHES, Job
from app.stores.jobs import Jobs, Rescued

LEASES = {"greet": timedelta(seconds=60)}
EXPIRE = "UPDATE wakebell.jobs SET lease_until = now() - interval '1 second' WHERE status = 'running'"
NOTHING = Rescued(pending=0, failed=0, promoted=0)


async def crash(jobs: Jobs, sql: asyncpg.Connection, token: int = 1) -> Job:
    """One run whose process does not live to finish it."""
    [job] = await jobs.claim(own=False, limit=1, leases=LEASES, token=token)
    await sql.execute(EXPIRE)
    return job


async def test_a_job_whose_lease_holds_is_left_alone(jobs: Jobs):
    await jobs.enqueue(type="greet")
    await jobs.claim(own=False, limit=1, leases=LEASES, token=1)

    assert await jobs.rescue() == NOTHING


async def test_a_job_whose_process_died_is_due_at_once_with_its_tries(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", max_attempts=1)
    await crash(jobs, sql)

    rescued = await jobs.rescue()
    [job] = await jobs.claim(own=False, limit=1, leases=LEASES, token=2)

    assert rescued == Rescued(pending=1, failed=0, promoted=0)
    assert (job.attempt, job.crashes) == (2, 1)
    stored = await jobs.get(job.id)
    assert stored is not None
    assert stored.last_error == "its process died or outlived the lease while it ran"


async def test_crashes_and_failed_tries_are_counted_apart(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", max_attempts=2)
    for token in range(5):
        await crash(jobs, sql, token)
        await jobs.rescue()

    [first] = await jobs.claim(own=False, limit=1, leases=LEASES, token=11)
    await jobs.finish(first, "retry", delay=timedelta(), error="no")
    [second] = await jobs.claim(own=False, limit=1, leases=LEASES, token=12)

    assert (first.attempt, first.crashes, first.last_attempt) == (6, 5, False)
    assert (second.attempt, second.crashes, second.last_attempt) == (7, 5, True)


async def test_a_job_that_kills_its_process_is_given_up_in_the_end(jobs: Jobs, sql: asyncpg.Connection):
    added = await jobs.enqueue(type="greet", max_attempts=100)
    for token in range(MAX_CRASHES - 1):
        await crash(jobs, sql, token)
        assert await jobs.rescue() == Rescued(pending=1, failed=0, promoted=0)
    await crash(jobs, sql, 99)

    assert await jobs.rescue() == Rescued(pending=0, failed=1, promoted=0)

    stored = await jobs.get(added.id)
    assert stored is not None
    assert (stored.status, stored.crashes) == ("failed", MAX_CRASHES)
    assert stored.last_error == "given up: its process died or outlived the lease 20 times while it ran"
    assert stored.finished_at is not None


async def test_an_interruption_counts_towards_giving_up(jobs: Jobs, sql: asyncpg.Connection):
    added = await jobs.enqueue(type="greet")
    await sql.execute("UPDATE wakebell.jobs SET attempts = $1, crashes = $1", MAX_CRASHES - 1)
    [job] = await jobs.claim(own=False, limit=1, leases=LEASES, token=1)

    assert await jobs.finish(job, "interrupted", error="the process was told to stop")

    stored = await jobs.get(added.id)
    assert stored is not None
    assert stored.status == "failed"


async def test_a_given_up_head_lets_the_next_of_its_serial_key_start(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", serial_key="k")
    second = await jobs.enqueue(type="greet", serial_key="k")
    await sql.execute("UPDATE wakebell.jobs SET attempts = $1, crashes = $1", MAX_CRASHES - 1)
    await crash(jobs, sql)
    await jobs.rescue()

    [job] = await jobs.claim(own=False, limit=10, leases=LEASES, token=2)

    assert job.id == second.id


async def test_a_rescued_head_keeps_its_place(jobs: Jobs, sql: asyncpg.Connection):
    head = await jobs.enqueue(type="greet", serial_key="k", unique_key="u")
    await jobs.enqueue(type="greet", serial_key="k")
    await crash(jobs, sql)
    twin = await jobs.enqueue(type="greet", unique_key="u")
    await jobs.rescue()

    [job] = await jobs.claim(own=False, limit=10, leases=LEASES, token=2)

    assert (job.id, twin.id, twin.created) == (head.id, head.id, False)


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_rescue_is_bounded(limit: int, jobs: Jobs, sql: asyncpg.Connection):
    for key in ("a", "b", "c"):
        await jobs.enqueue(type="greet", serial_key=key)
        await jobs.enqueue(type="greet", serial_key=key)
    await jobs.claim(own=False, limit=10, leases=LEASES, token=1)
    await sql.execute("DELETE FROM wakebell.jobs WHERE status = 'running' AND serial_key <> 'c'")
    await sql.execute(EXPIRE)

    assert await jobs.rescue(limit=limit) == Rescued(pending=1, failed=0, promoted=limit)


async def test_a_deleted_head_does_not_hold_up_its_serial_key(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", serial_key="k")
    second = await jobs.enqueue(type="greet", serial_key="k")
    third = await jobs.enqueue(type="greet", serial_key="k")
    await sql.execute("DELETE FROM wakebell.jobs WHERE NOT waiting")

    rescued = await jobs.rescue()
    [job] = await jobs.claim(own=False, limit=10, leases=LEASES, token=1)

    assert rescued == Rescued(pending=0, failed=0, promoted=1)
    assert job.id == second.id != third.id
