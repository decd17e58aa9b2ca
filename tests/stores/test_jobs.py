from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.domain.errors import LeaseLost
from app.domain.jobs import Job
from app.stores.database import Database
from app.stores.jobs import Ending, Jobs, enqueue_own_in, finish_in, lock_in

LEASE = timedelta(seconds=30)
LEASES = {"greet": LEASE}
SNOOZED = timedelta(hours=1)


async def claim_one(jobs: Jobs, token: int = 1, *, own: bool = False) -> Job:
    [job] = await jobs.claim(own=own, limit=1, leases=LEASES, token=token)
    return job


async def test_an_enqueued_job_is_claimed_with_all_its_sides(jobs: Jobs):
    added = await jobs.enqueue(type="greet", payload={"name": "မြန်မာ"}, queue="people", max_attempts=7)

    job = await claim_one(jobs, token=2**62)

    assert added.created
    assert job == Job(
        id=added.id,
        type="greet",
        payload={"name": "မြန်မာ"},
        queue="people",
        attempt=1,
        crashes=0,
        max_attempts=7,
        token=2**62,
        lease_until=job.lease_until,
    )
    assert timedelta(seconds=20) < job.lease_until - datetime.now(UTC) <= LEASE


async def test_each_type_has_its_own_lease(jobs: Jobs):
    await jobs.enqueue(type="quick")
    await jobs.enqueue(type="slow")

    leases = {"quick": timedelta(seconds=5), "slow": timedelta(seconds=605)}
    claimed = {job.type: job for job in await jobs.claim(own=False, limit=2, leases=leases, token=1)}

    assert claimed["slow"].lease_until - claimed["quick"].lease_until == timedelta(seconds=600)


async def test_a_job_that_is_not_due_is_left_alone(jobs: Jobs):
    await jobs.enqueue(type="greet", run_after=datetime.now(UTC) + timedelta(hours=1))
    await jobs.enqueue(type="greet", run_after=datetime.now(UTC) + timedelta(hours=1), priority=100)

    assert await jobs.claim(own=False, limit=10, leases=LEASES, token=1) == []


async def test_a_type_without_a_lease_is_left_alone(jobs: Jobs):
    await jobs.enqueue(type="unknown")

    assert await jobs.claim(own=False, limit=10, leases=LEASES, token=1) == []
    assert await jobs.claim(own=False, limit=10, leases={}, token=1) == []


async def test_own_and_users_queues_are_claimed_apart(jobs: Jobs, database: Database):
    await jobs.enqueue(type="greet", queue="wakebel")
    await jobs.enqueue(type="greet", queue="wakebellow")
    async with database.transaction() as db:
        await enqueue_own_in(db, type="greet", payload={}, queue="wakebell.greet", unique_key="one")

    own = await jobs.claim(own=True, limit=10, leases=LEASES, token=1)
    users = await jobs.claim(own=False, limit=10, leases=LEASES, token=1)

    assert [job.queue for job in own] == ["wakebell.greet"]
    assert sorted(job.queue for job in users) == ["wakebel", "wakebellow"]


async def test_an_own_job_may_wait_and_is_unique_too(jobs: Jobs, database: Database):
    async with database.transaction() as db:
        first = await enqueue_own_in(
            db, type="greet", payload={}, queue="wakebell.greet", unique_key="one", delay=SNOOZED
        )
        again = await enqueue_own_in(db, type="greet", payload={}, queue="wakebell.greet", unique_key="one")

    assert (again.id, again.created) == (first.id, False)
    assert await jobs.claim(own=True, limit=10, leases=LEASES, token=1) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"type": ""}, "type must not be empty"),
        ({"type": "x" * 201}, "type must be at most 200 bytes"),
        ({"queue": "wakebell.send"}, "the service's own"),
        ({"queue": ""}, "queue must not be empty"),
        ({"priority": 101}, "priority must be from 0 to 100"),
        ({"priority": -1}, "priority must be from 0 to 100"),
        ({"max_attempts": 0}, "max_attempts must be at least 1"),
        ({"unique_key": ""}, "unique_key must be from 1 to 1000 bytes"),
        ({"serial_key": "k" * 1001}, "serial_key must be from 1 to 1000 bytes"),
        ({"payload": {"text": "x" * 262144}}, "at most 256 KiB"),
        ({"payload": {"a": ["ok", "\x00"]}}, r"payload\.a\[1\]: holds a NUL"),
        ({"payload": {"a": {"b": "\ud800"}}}, r"payload\.a\.b: holds half of a surrogate pair"),
    ],
)
async def test_a_wrong_argument_is_refused_by_name(arguments: dict[str, object], told: str, jobs: Jobs):
    with pytest.raises(ValueError, match=told):
        await jobs.enqueue(**({"type": "greet"} | arguments))  # type: ignore[arg-type]


async def test_a_large_payload_comes_back_whole(jobs: Jobs):
    payload = {"text": "ก" * 80_000}
    await jobs.enqueue(type="greet", payload=payload)

    assert (await claim_one(jobs)).payload == payload


async def test_a_refused_argument_leaves_the_callers_transaction_to_the_caller(sql: asyncpg.Connection):
    async with sql.transaction():
        with pytest.raises(asyncpg.InvalidParameterValueError, match="payload must be a JSON object"):
            async with sql.transaction():
                await sql.fetchrow("SELECT * FROM wakebell.enqueue('greet', '[]')")
        created = await sql.fetchval("SELECT created FROM wakebell.enqueue('greet', NULL, NULL, NULL)")

    assert created


async def test_the_job_is_there_only_if_the_callers_transaction_is(sql: asyncpg.Connection, jobs: Jobs):
    transaction = sql.transaction()
    await transaction.start()
    await sql.fetchval("SELECT id FROM wakebell.enqueue('greet')")
    before = await jobs.claim(own=False, limit=1, leases=LEASES, token=1)
    await transaction.rollback()

    assert before == await jobs.claim(own=False, limit=1, leases=LEASES, token=1) == []


async def test_a_plain_insert_with_any_time_is_a_job_too(sql: asyncpg.Connection, jobs: Jobs):
    await sql.execute("INSERT INTO wakebell.jobs (type, run_after) VALUES ('greet', now() - interval '1 day')")
    await sql.execute("INSERT INTO wakebell.jobs (type, run_after) VALUES ('greet', now() + interval '1 day')")
    await sql.execute("INSERT INTO wakebell.jobs (type, run_after) VALUES ('greet', 'infinity')")

    assert len(await jobs.claim(own=False, limit=10, leases=LEASES, token=1)) == 1


@pytest.mark.parametrize("status", ["done", "cancelled", "failed"])
async def test_an_ended_job_is_not_claimed_again(status: Ending, jobs: Jobs):
    await jobs.enqueue(type="greet")
    job = await claim_one(jobs)

    assert await jobs.finish(job, status, error="why", result={"n": 1})

    stored = await jobs.get(job.id)
    assert stored is not None
    assert (stored.status, stored.attempts, stored.last_error, stored.result) == (status, 1, "why", {"n": 1})
    assert stored.finished_at is not None
    assert await jobs.claim(own=False, limit=1, leases=LEASES, token=2) == []


async def test_a_retry_waits_and_costs_an_attempt(jobs: Jobs):
    await jobs.enqueue(type="greet")
    job = await claim_one(jobs)

    assert await jobs.finish(job, "retry", delay=SNOOZED, error="the other side is down")

    stored = await jobs.get(job.id)
    assert stored is not None
    assert (stored.status, stored.attempts, stored.last_error) == ("pending", 1, "the other side is down")
    assert stored.run_after > datetime.now(UTC) + timedelta(minutes=59)
    assert stored.finished_at is None
    assert await jobs.claim(own=False, limit=1, leases=LEASES, token=2) == []


async def test_a_retry_that_is_due_is_the_second_attempt(jobs: Jobs):
    await jobs.enqueue(type="greet", max_attempts=2)
    first = await claim_one(jobs)
    await jobs.finish(first, "retry", delay=timedelta(), error="no")

    second = await claim_one(jobs, token=2)

    assert (first.attempt, first.last_attempt) == (1, False)
    assert (second.attempt, second.last_attempt) == (2, True)


async def test_a_snooze_costs_no_attempt(jobs: Jobs):
    await jobs.enqueue(type="greet")
    await jobs.finish(await claim_one(jobs), "snooze", delay=timedelta())

    assert (await claim_one(jobs, token=2)).attempt == 1


async def test_a_released_job_is_as_if_never_claimed(jobs: Jobs):
    added = await jobs.enqueue(type="greet", priority=5)
    before = await jobs.get(added.id)

    assert await jobs.release([await claim_one(jobs)]) == 1

    assert await jobs.get(added.id) == before
    assert (await claim_one(jobs, token=2)).attempt == 1


async def test_an_interrupted_run_is_due_at_once_and_not_counted_against_the_tries(jobs: Jobs):
    await jobs.enqueue(type="greet", max_attempts=1)
    await jobs.finish(await claim_one(jobs), "interrupted")

    job = await claim_one(jobs, token=2)

    assert (job.attempt, job.crashes, job.last_attempt) == (2, 1, True)


@pytest.mark.parametrize("ending", ["done", "retry", "release"])
async def test_who_lost_the_lease_changes_nothing(ending: Ending, jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet")
    late = await claim_one(jobs, token=1)
    await sql.execute("UPDATE wakebell.jobs SET lease_until = now() - interval '1 second'")
    await jobs.rescue()
    owner = await claim_one(jobs, token=2)
    before = await jobs.get(owner.id)

    assert not await jobs.finish(late, ending)

    assert await jobs.get(owner.id) == before
    assert await jobs.finish(owner, "done")
    assert not await jobs.finish(owner, "done")


async def test_a_late_run_may_finish_while_nobody_else_has_the_job(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet")
    job = await claim_one(jobs)
    await sql.execute("UPDATE wakebell.jobs SET lease_until = now() - interval '1 second'")

    assert await jobs.finish(job, "done")


async def test_writes_of_a_lost_lease_are_rolled_back(jobs: Jobs, database: Database, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet")
    job = await claim_one(jobs)
    await jobs.finish(job, "snooze", delay=timedelta())

    with pytest.raises(LeaseLost, match=f"job {job.id}"):
        async with database.transaction() as db:
            await lock_in(db, job)
    with pytest.raises(LeaseLost):
        await write_and_finish(database, job)

    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'effect'") == 0


async def write_and_finish(database: Database, job: Job) -> None:
    async with database.transaction() as db:
        await enqueue_own_in(db, type="effect", payload={}, queue="wakebell.effects")
        await finish_in(db, job, "done")


async def test_effects_and_the_end_of_their_job_are_one_transaction(
    jobs: Jobs, database: Database, sql: asyncpg.Connection
):
    await jobs.enqueue(type="greet")
    job = await claim_one(jobs)

    async with database.transaction() as db:
        await lock_in(db, job)
        await enqueue_own_in(db, type="effect", payload={"a": 1}, queue="wakebell.effects")
        await finish_in(db, job, "done", result=3)

    assert await sql.fetch("SELECT type, status FROM wakebell.jobs ORDER BY id") == [
        ("greet", "done"),
        ("effect", "pending"),
    ]


async def test_an_error_text_that_cannot_be_stored_still_ends_the_job(jobs: Jobs):
    await jobs.enqueue(type="greet")
    job = await claim_one(jobs)

    assert await jobs.finish(job, "failed", error="bad \x00 and \ud800 " + "x" * 5000, result={"a": "\x00", "b": job})

    stored = await jobs.get(job.id)
    assert stored is not None
    assert stored.last_error is not None
    assert stored.last_error.startswith("bad  and ? xxx")
    assert len(stored.last_error) == 2000


async def test_a_unique_key_is_free_again_when_its_job_has_ended(jobs: Jobs):
    first = await jobs.enqueue(type="greet", unique_key="k")
    pending = await jobs.enqueue(type="greet", unique_key="k")
    job = await claim_one(jobs)
    running = await jobs.enqueue(type="greet", unique_key="k")
    await jobs.finish(job, "retry", delay=timedelta(), error="no")
    retried = await jobs.enqueue(type="greet", unique_key="k")
    await jobs.finish(await claim_one(jobs, token=2), "done")
    fresh = await jobs.enqueue(type="greet", unique_key="k")

    assert [one.created for one in (first, pending, running, retried, fresh)] == [True, False, False, False, True]
    assert first.id == pending.id == running.id == retried.id != fresh.id


async def test_a_unique_key_is_one_types(jobs: Jobs):
    assert (await jobs.enqueue(type="greet", unique_key="k")).created
    assert (await jobs.enqueue(type="part", unique_key="k")).created


async def test_within_a_queue_the_higher_priority_goes_first(jobs: Jobs):
    low = await jobs.enqueue(type="greet")
    high = await jobs.enqueue(type="greet", priority=10)
    middle = await jobs.enqueue(type="greet", priority=5)

    claimed = await jobs.claim(own=False, limit=3, leases=LEASES, token=1)

    assert [job.id for job in claimed] == [high.id, middle.id, low.id]


async def test_a_job_that_has_waited_long_enough_goes_before_every_priority(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", priority=100)
    old = await jobs.enqueue(type="greet", run_after=datetime.now(UTC) - timedelta(minutes=101))

    assert (await claim_one(jobs)).id == old.id


async def test_a_retry_has_no_boost(jobs: Jobs):
    boosted = await jobs.enqueue(type="greet", priority=100)
    await jobs.finish(await claim_one(jobs), "retry", delay=timedelta(), error="no")
    middle = await jobs.enqueue(type="greet", priority=1)

    claimed = await jobs.claim(own=False, limit=2, leases=LEASES, token=2)

    assert [job.id for job in claimed] == [middle.id, boosted.id]


async def test_pruning_takes_the_oldest_ended_jobs_and_no_others(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, status, finished_at) "
        "SELECT 'greet', 'done', now() - make_interval(days => n) FROM generate_series(1, 20) AS n"
    )
    await jobs.enqueue(type="greet")

    first = await jobs.prune(keep=timedelta(days=14, hours=12), limit=4)
    left = await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE finished_at < now() - interval '16.5 days'")
    second = await jobs.prune(keep=timedelta(days=14, hours=12), limit=4)

    assert (first, left, second) == (4, 0, 2)
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 15


async def test_a_job_that_is_not_there_is_none(jobs: Jobs):
    assert await jobs.get(4711) is None
