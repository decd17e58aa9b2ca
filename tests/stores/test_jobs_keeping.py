"""What people do with jobs that are there, and what is kept of failed tries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.jobs import MAX_CRASHES, Job
from app.stores.database import Database
from app.stores.jobs import Ending, Jobs, StoredJob, enqueue_own_in

LEASES = {"greet": timedelta(seconds=60)}
HOUR = timedelta(hours=1)
EXPIRE = "UPDATE wakebell.jobs SET lease_until = now() - interval '1 second' WHERE status = 'running'"


async def claim_one(jobs: Jobs, token: int = 1, *, own: bool = False) -> Job:
    [job] = await jobs.claim(own=own, limit=1, leases=LEASES, token=token)
    return job


async def stored(jobs: Jobs, job_id: int) -> StoredJob:
    found = await jobs.get(job_id)
    assert found is not None
    return found


async def reach(jobs: Jobs, status: str, **more: Any) -> int:
    """A job in that status, by the ways that lead there."""
    added = await jobs.enqueue(type="greet", **more)
    if status != "pending":
        job = await claim_one(jobs)
        endings: dict[str, Ending] = {"done": "done", "failed": "failed", "cancelled": "cancelled"}
        if status in endings:
            await jobs.finish(job, endings[status], error="why")
    return added.id


async def test_every_failed_try_is_kept(jobs: Jobs, sql: asyncpg.Connection):
    added = await jobs.enqueue(type="greet")
    await jobs.finish(await claim_one(jobs), "retry", delay=timedelta(), error="first", traceback="line 1\nline 2")
    await jobs.finish(await claim_one(jobs), "snooze", delay=timedelta())
    await claim_one(jobs)
    await sql.execute(EXPIRE)
    await jobs.rescue()
    await jobs.finish(await claim_one(jobs), "failed", error="last")

    failures = (await stored(jobs, added.id)).failures

    assert failures is not None
    assert [(one.attempt, one.error, one.traceback) for one in failures] == [
        (1, "first", "line 1\nline 2"),
        (2, "its process died or outlived the lease while it ran", None),
        (3, "last", None),
    ]
    assert all(timedelta() <= datetime.now(UTC) - one.at < timedelta(minutes=1) for one in failures)
    assert [one.at for one in failures] == sorted(one.at for one in failures)


async def test_the_last_twenty_failures_are_kept(jobs: Jobs):
    added = await jobs.enqueue(type="greet", max_attempts=100)
    for number in range(1, 24):
        await jobs.finish(await claim_one(jobs), "retry", delay=timedelta(), error=f"failure {number}")

    failures = (await stored(jobs, added.id)).failures

    assert failures is not None
    assert [one.attempt for one in failures] == list(range(4, 24))
    assert failures[-1].error == "failure 23"


async def test_a_job_that_is_given_up_by_an_interruption_has_it_among_its_failures(jobs: Jobs, sql: asyncpg.Connection):
    added = await jobs.enqueue(type="greet")
    await sql.execute("UPDATE wakebell.jobs SET attempts = $1, crashes = $1", MAX_CRASHES - 1)

    await jobs.finish(await claim_one(jobs), "interrupted", error="the process was told to stop")

    failures = (await stored(jobs, added.id)).failures
    assert failures is not None
    assert [(one.attempt, one.error) for one in failures] == [(MAX_CRASHES, "the process was told to stop")]


@pytest.mark.parametrize("ending", ["done", "cancelled", "snooze", "release", "interrupted"])
async def test_what_did_not_fail_is_no_failure(ending: Ending, jobs: Jobs):
    added = await jobs.enqueue(type="greet")

    await jobs.finish(await claim_one(jobs), ending, error="why")

    assert (await stored(jobs, added.id)).failures == ()


async def test_a_traceback_that_cannot_be_stored_is_cleaned_and_its_end_is_kept(jobs: Jobs):
    added = await jobs.enqueue(type="greet")

    await jobs.finish(await claim_one(jobs), "failed", error="no", traceback="x" * 9000 + "\x00\ud800 the fault")

    failures = (await stored(jobs, added.id)).failures
    assert failures is not None
    told = failures[0].traceback
    assert told is not None
    assert len(told) < 4001
    assert told.endswith("xx? the fault")


@pytest.mark.parametrize(
    ("status", "answer", "then"),
    [
        ("pending", "cancelled", "cancelled"),
        ("running", "running", "running"),
        ("done", "done", "done"),
        ("failed", "failed", "failed"),
        ("cancelled", "cancelled", "cancelled"),
    ],
)
async def test_only_what_has_not_started_is_cancelled(status: str, answer: str, then: str, jobs: Jobs):
    job_id = await reach(jobs, status)
    before = await stored(jobs, job_id)

    assert await jobs.cancel(job_id) == answer

    after = await stored(jobs, job_id)
    assert after.status == then
    assert (after == before) == (status != "pending")
    assert (after.finished_at is None) == (status == "running")
    assert await jobs.claim(own=False, limit=1, leases=LEASES, token=9) == []


async def test_a_job_that_waits_for_its_next_try_is_cancelled_too(jobs: Jobs):
    added = await jobs.enqueue(type="greet")
    await jobs.finish(await claim_one(jobs), "retry", delay=timedelta(), error="no")

    assert await jobs.cancel(added.id) == "cancelled"

    assert await jobs.claim(own=False, limit=1, leases=LEASES, token=9) == []


async def test_a_cancelled_head_lets_the_next_of_its_serial_key_start(jobs: Jobs):
    first, second, third = [(await jobs.enqueue(type="greet", serial_key="k")).id for _ in range(3)]

    await jobs.cancel(second)
    await jobs.cancel(first)

    assert (await claim_one(jobs)).id == third


async def test_a_cancelled_job_is_parked_no_longer(jobs: Jobs):
    added = await jobs.enqueue(type="unknown")
    await jobs.park(["greet"])

    await jobs.cancel(added.id)

    assert not (await stored(jobs, added.id)).held
    assert await jobs.park(["greet", "unknown"]) == 0
    assert (await stored(jobs, added.id)).status == "cancelled"


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ("pending", "pending"),
        ("running", "running"),
        ("done", "done"),
        ("failed", "pending"),
        ("cancelled", "pending"),
    ],
)
async def test_what_ended_without_being_done_is_run_again_with_all_its_tries(status: str, answer: str, jobs: Jobs):
    job_id = await reach(jobs, status, priority=5, max_attempts=2)
    before = await stored(jobs, job_id)

    assert await jobs.retry(job_id) == answer

    claimed = await jobs.claim(own=False, limit=1, leases=LEASES, token=9)
    assert [(job.id, job.attempt, job.crashes) for job in claimed] == ([(job_id, 1, 0)] if answer == "pending" else [])
    after = await stored(jobs, job_id)
    assert after.failures == before.failures
    assert after.last_error == before.last_error
    assert answer == "pending" or after == before


async def test_a_retry_forgets_crashes_and_when_it_ended(jobs: Jobs, sql: asyncpg.Connection):
    added = await jobs.enqueue(type="greet")
    await sql.execute("UPDATE wakebell.jobs SET attempts = $1, crashes = $1", MAX_CRASHES - 1)
    await claim_one(jobs)
    await sql.execute(EXPIRE)
    await jobs.rescue()
    assert (await stored(jobs, added.id)).status == "failed"

    await jobs.retry(added.id)

    after = await stored(jobs, added.id)
    assert (after.status, after.attempts, after.crashes) == ("pending", 0, 0)
    assert after.finished_at is after.started_at is None
    assert after.failures


async def test_a_retry_does_not_wait_for_its_time(jobs: Jobs):
    later = await jobs.enqueue(type="greet", run_after=datetime.now(UTC) + HOUR)
    overdue = await jobs.enqueue(type="greet", run_after=datetime.now(UTC) - HOUR)
    before = await stored(jobs, overdue.id)

    assert await jobs.retry(later.id) == "pending"
    assert await jobs.retry(overdue.id) == "pending"

    assert await stored(jobs, overdue.id) == before
    assert len(await jobs.claim(own=False, limit=10, leases=LEASES, token=1)) == 2


@pytest.mark.parametrize("status", ["failed", "cancelled"])
@pytest.mark.parametrize("twin", ["pending", "running"])
async def test_a_job_whose_unique_key_is_taken_is_not_run_again(status: str, twin: str, jobs: Jobs):
    job_id = await reach(jobs, status, unique_key="u", serial_key="s")
    await reach(jobs, twin, unique_key="u")
    before = await stored(jobs, job_id)

    assert await jobs.retry(job_id) == "taken"

    assert await stored(jobs, job_id) == before


async def test_a_serial_job_that_comes_back_stands_in_line(jobs: Jobs):
    failed = await reach(jobs, "failed", serial_key="k")
    head = (await jobs.enqueue(type="greet", serial_key="k")).id
    last = (await jobs.enqueue(type="greet", serial_key="k")).id

    assert await jobs.retry(failed) == "pending"

    order = []
    while claimed := await jobs.claim(own=False, limit=10, leases=LEASES, token=1):
        order += [job.id for job in claimed]
        await jobs.finish(claimed[0], "done")
    assert order == [head, failed, last]


async def test_a_serial_job_that_comes_back_to_an_empty_line_leads_it(jobs: Jobs):
    failed = await reach(jobs, "failed", serial_key="k")

    await jobs.retry(failed)

    assert (await claim_one(jobs)).id == failed


async def test_all_failed_jobs_of_a_type_are_run_again_within_bounds(jobs: Jobs, sql: asyncpg.Connection):
    twins = [await reach(jobs, "failed", unique_key="u") for _ in range(2)]
    free = [await reach(jobs, "failed", serial_key="k") for _ in range(2)]
    taken = await reach(jobs, "failed", unique_key="t")
    await jobs.enqueue(type="greet", unique_key="t", run_after=datetime.now(UTC) + HOUR)
    cancelled = await reach(jobs, "cancelled")
    other = await jobs.enqueue(type="other")
    await sql.execute("UPDATE wakebell.jobs SET status = 'failed', finished_at = now() WHERE id = $1", other.id)

    first = await jobs.retry_all("greet", limit=1)
    second = await jobs.retry_all("greet", limit=100)
    third = await jobs.retry_all("greet")

    assert (first, second, third) == (1, 2, 0)
    statuses = [(await stored(jobs, job_id)).status for job_id in (*twins, *free, taken, cancelled, other.id)]
    assert statuses == ["pending", "failed", "pending", "pending", "failed", "cancelled", "failed"]
    assert [(await stored(jobs, job_id)).waiting for job_id in free] == [False, True]


@pytest.mark.parametrize("status", ["pending", "running", "done", "failed", "cancelled"])
async def test_only_a_pending_job_is_given_another_time(status: str, jobs: Jobs):
    job_id = await reach(jobs, status)
    before = await stored(jobs, job_id)
    at = datetime.now(UTC) + HOUR

    assert await jobs.reschedule(job_id, at) == status

    after = await stored(jobs, job_id)
    assert (after.run_after == at) == (status == "pending")
    assert (after == before) == (status != "pending")


async def test_a_time_may_be_nearer(jobs: Jobs):
    added = await jobs.enqueue(type="greet", run_after=datetime.now(UTC) + HOUR)

    await jobs.reschedule(added.id, datetime.now(UTC) - HOUR)

    assert (await claim_one(jobs)).id == added.id


async def test_no_time_is_refused(sql: asyncpg.Connection):
    with pytest.raises(asyncpg.InvalidParameterValueError, match="run_after must be a time"):
        await sql.fetchval("SELECT wakebell.reschedule_job(1, NULL)")


async def test_a_job_that_is_not_there_is_none(jobs: Jobs):
    assert await jobs.cancel(4711) is None
    assert await jobs.retry(4711) is None
    assert await jobs.reschedule(4711, datetime.now(UTC)) is None
    assert await jobs.retry_all("nothing") == 0


async def test_the_services_own_jobs_are_refused_but_a_failed_one_may_be_tried_again(jobs: Jobs, database: Database):
    async with database.transaction() as db:
        own = await enqueue_own_in(db, type="greet", payload={}, queue="wakebell.greet", unique_key="u")

    for refused in (jobs.cancel(own.id), jobs.retry(own.id), jobs.reschedule(own.id, datetime.now(UTC))):
        with pytest.raises(ValueError, match=r'^jobs in queues named "wakebell\.…" are the service\'s own$'):
            await refused
    await jobs.finish(await claim_one(jobs, own=True), "failed", error="no")

    assert await jobs.retry(own.id) == "pending"


async def test_a_job_that_has_not_started_is_replaced(jobs: Jobs):
    at = datetime.now(UTC) + HOUR
    first = await jobs.enqueue(type="greet", payload={"n": 1}, unique_key="u", replace=True)

    kept_time = await jobs.enqueue(type="greet", payload={"n": 2}, unique_key="u", replace=True)
    second = await stored(jobs, first.id)
    moved = await jobs.enqueue(type="greet", payload={"n": 3}, unique_key="u", run_after=at, replace=True)
    third = await stored(jobs, first.id)
    merged = await jobs.enqueue(type="greet", payload={"n": 4}, unique_key="u")

    assert (first.created, first.replaced) == (True, False)
    assert first.id == kept_time.id == moved.id == merged.id
    assert (kept_time.created, kept_time.replaced, moved.replaced, merged.replaced) == (False, True, True, False)
    assert second.payload == {"n": 2}
    assert second.run_after < at
    assert (third.payload, third.run_after) == ({"n": 3}, at)
    assert await stored(jobs, first.id) == third


async def test_a_job_that_runs_is_not_replaced(jobs: Jobs):
    job_id = await reach(jobs, "running", unique_key="u", payload={"n": 1})
    before = await stored(jobs, job_id)

    added = await jobs.enqueue(type="greet", payload={"n": 2}, unique_key="u", replace=True)

    assert (added.id, added.created, added.replaced) == (job_id, False, False)
    assert await stored(jobs, job_id) == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("'greet', 'u', '[]'", "payload must be a JSON object"),
        ("'greet', 'u', jsonb_build_object('a', repeat('x', 262144))", "payload must be at most 256 KiB"),
        ("'greet', 'own', '{}'", 'jobs in queues named "wakebell.…" are the service\'s own'),
    ],
)
async def test_a_wrong_replacement_is_refused(
    given: str, told: str, jobs: Jobs, database: Database, sql: asyncpg.Connection
):
    added = await jobs.enqueue(type="greet", unique_key="u")
    async with database.transaction() as db:
        await enqueue_own_in(db, type="greet", payload={"n": 1}, queue="wakebell.greet", unique_key="own")

    with pytest.raises(asyncpg.InvalidParameterValueError, match=f"^wakebell.replace_job: {told}"):
        await sql.fetchval(f"SELECT wakebell.replace_job({given})")

    assert (await stored(jobs, added.id)).payload == {}
    assert await sql.fetchval("SELECT payload::text FROM wakebell.jobs WHERE unique_key = 'own'") == '{"n": 1}'


async def test_nothing_to_replace_is_null(sql: asyncpg.Connection):
    assert await sql.fetchval("SELECT wakebell.replace_job('greet', 'nobody', '{}')") is None
