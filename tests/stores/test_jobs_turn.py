"""Finishing many at once, and claiming in the same call."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg

from app.domain.jobs import Finished, Job, NewJob
from app.stores.jobs import Ending, Jobs

LEASES = {"greet": timedelta(seconds=60), "after": timedelta(seconds=60)}
EXPIRE = "UPDATE wakebell.jobs SET lease_until = now() - interval '1 second' WHERE status = 'running'"
AFTER = "SELECT count(*) FROM wakebell.jobs WHERE type = 'after'"


async def claim(jobs: Jobs, token: int = 1, limit: int = 100) -> list[Job]:
    return await jobs.claim(own=False, limit=limit, leases=LEASES, token=token)


def finished(claimed: list[Job], result: Any = None) -> list[Finished]:
    return [Finished(job=job, result=result) for job in claimed]


async def put(jobs: Jobs, count: int, **more: Any) -> list[int]:
    return [one.id for one in await jobs.enqueue_many([NewJob(type="greet", **more) for _ in range(count)])]


async def status_of(jobs: Jobs, job_id: int) -> str:
    stored = await jobs.get(job_id)
    assert stored is not None
    return stored.status


async def ended(jobs: Jobs, done: list[Finished]) -> list[int]:
    """What had lost its lease."""
    return (await jobs.turn(done=done, own=False, limit=0, leases={}, token=1)).lost


async def test_a_turn_finishes_one_batch_and_claims_the_next(jobs: Jobs):
    ids = await put(jobs, 5)

    first = await jobs.turn(done=[], own=False, limit=3, leases=LEASES, token=1)
    second = await jobs.turn(done=finished(first.claimed), own=False, limit=3, leases=LEASES, token=2)
    last = await jobs.turn(done=finished(second.claimed), own=False, limit=0, leases=LEASES, token=3)

    assert [job.id for job in first.claimed] == ids[:3]
    assert [job.id for job in second.claimed] == ids[3:]
    assert {job.token for job in second.claimed} == {2}
    assert last.claimed == []
    assert first.lost == second.lost == last.lost == []
    assert {await status_of(jobs, job_id) for job_id in ids} == {"done"}


async def test_a_turn_claims_as_a_claim_does(jobs: Jobs, sql: asyncpg.Connection):
    await put(jobs, 1, payload={"a": "ก"}, queue="people", max_attempts=7)
    [job] = await claim(jobs)
    await jobs.release([job])

    turned = await jobs.turn(done=[], own=False, limit=1, leases=LEASES, token=1)

    [again] = turned.claimed
    assert again == Job(
        **{name: getattr(job, name) for name in Job.__slots__ if name != "lease_until"}, lease_until=again.lease_until
    )


async def test_a_turn_claims_what_its_finishing_set_free(jobs: Jobs, sql: asyncpg.Connection):
    ids = await put(jobs, 3, serial_key="k")
    await sql.execute("INSERT INTO wakebell.queues (name, max_running) VALUES ('default', 1)")

    order = []
    turned = await jobs.turn(done=[], own=False, limit=10, leases=LEASES, token=1)
    while turned.claimed:
        order.append([job.id for job in turned.claimed])
        turned = await jobs.turn(done=finished(turned.claimed), own=False, limit=10, leases=LEASES, token=1)

    assert order == [[job_id] for job_id in ids]


async def test_who_lost_a_lease_is_told_and_the_others_are_finished(jobs: Jobs, sql: asyncpg.Connection):
    await put(jobs, 3)
    late = await claim(jobs, token=1)
    await sql.execute(EXPIRE + " AND id = $1", late[1].id)
    await jobs.rescue()
    [owner] = await claim(jobs, token=2)

    lost = await ended(jobs, finished(late, result="late"))

    assert lost == [owner.id] == [late[1].id]
    stored = await jobs.get(owner.id)
    assert stored is not None
    assert (stored.status, stored.result) == ("running", None)
    assert await ended(jobs, finished([owner])) == []
    assert [await status_of(jobs, job.id) for job in late] == ["done"] * 3


async def test_done_jobs_of_several_claims_each_have_their_own_fence(jobs: Jobs):
    await put(jobs, 4)
    one, two = await claim(jobs, token=1, limit=2), await claim(jobs, token=2, limit=2)
    swapped = [Finished(job=job) for job in (one[0], two[0])]
    wrong = [
        Finished(job=Job(**{n: getattr(job, n) for n in Job.__slots__ if n != "token"}, token=token))
        for job, token in ((one[1], 2), (two[1], 1))
    ]

    turned = await jobs.turn(done=swapped + wrong, own=False, limit=0, leases=LEASES, token=3)

    assert turned.lost == [one[1].id, two[1].id]
    assert [await status_of(jobs, job.id) for job in one + two] == ["done", "running", "done", "running"]


async def test_finishing_twice_changes_nothing(jobs: Jobs):
    await put(jobs, 2)
    claimed = await claim(jobs)
    assert await ended(jobs, finished(claimed, result=1)) == []

    assert await ended(jobs, finished(claimed, result=2)) == [job.id for job in claimed]

    stored = await jobs.get(claimed[0].id)
    assert stored is not None
    assert stored.result == 1


async def test_nothing_to_finish_costs_nothing(jobs: Jobs):
    assert await ended(jobs, []) == []


async def test_each_result_is_kept_with_its_job(jobs: Jobs):
    await put(jobs, 4)
    results = [{"a": "x\x00\ud800"}, None, 3, [1]]
    done = [Finished(job=job, result=result) for job, result in zip(await claim(jobs), results, strict=True)]

    await ended(jobs, done)

    stored = [await jobs.get(one.job.id) for one in done]
    assert [one and one.result for one in stored] == [{"a": "x?"}, None, 3, [1]]


async def test_what_follows_is_put_in_when_its_job_is_done(jobs: Jobs):
    last = NewJob(type="after", payload={"n": 2})
    then = NewJob(type="after", payload={"n": 1}, queue="other", priority=3, max_attempts=9, then=(last,))
    first = await jobs.enqueue(type="greet", then=[then])
    before = await jobs.get(first.id)

    one = await jobs.turn(done=[], own=False, limit=10, leases=LEASES, token=1)
    two = await jobs.turn(done=finished(one.claimed), own=False, limit=10, leases=LEASES, token=2)
    three = await jobs.turn(done=finished(two.claimed), own=False, limit=10, leases=LEASES, token=3)

    assert before is not None
    assert before.then is not None
    assert [following["type"] for following in before.then] == ["after"]
    assert [job.id for job in one.claimed] == [first.id]
    assert [(job.payload, job.queue, job.max_attempts) for job in two.claimed] == [({"n": 1}, "other", 9)]
    assert [(job.payload, job.queue) for job in three.claimed] == [({"n": 2}, "default")]


async def test_what_follows_may_wait(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", then=[NewJob(type="after", delay=timedelta(hours=1))])

    [job] = await claim(jobs)
    await jobs.finish(job, "done")

    waits = await sql.fetchval("SELECT run_after - created_at FROM wakebell.jobs WHERE type = 'after'")
    assert timedelta(minutes=59) < waits <= timedelta(hours=1)


async def test_what_follows_comes_after_done_alone(jobs: Jobs, sql: asyncpg.Connection):
    endings: list[Ending] = ["failed", "cancelled", "retry", "snooze", "release", "interrupted"]
    for _ in endings:
        await jobs.enqueue(type="greet", then=[NewJob(type="after")])
    for job, ending in zip(await claim(jobs), endings, strict=True):
        await jobs.finish(job, ending, error="no")

    assert await sql.fetchval(AFTER) == 0


async def test_what_follows_a_retried_job_comes_once(jobs: Jobs, sql: asyncpg.Connection):
    added = await jobs.enqueue(type="greet", then=[NewJob(type="after")])
    [job] = await claim(jobs)
    await jobs.finish(job, "failed", error="no")
    await jobs.retry(added.id)

    [job] = await claim(jobs, token=2)
    await jobs.finish(job, "done")
    await jobs.finish(job, "done")
    await ended(jobs, finished([job]))

    assert await sql.fetchval(AFTER) == 1


async def test_what_follows_comes_once_when_a_late_run_meets_a_rescue(jobs: Jobs, sql: asyncpg.Connection):
    for _ in range(20):
        await jobs.enqueue(type="greet", then=[NewJob(type="after")])
        late = await claim(jobs, token=1)
        await sql.execute(EXPIRE)
        await asyncio.gather(ended(jobs, finished(late)), jobs.rescue())
        await ended(jobs, finished(await claim(jobs, token=2)))

        assert await sql.fetchval(AFTER) == 1
        await sql.execute("DELETE FROM wakebell.jobs")


async def test_one_that_follows_and_is_there_already_is_left_out(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="after", unique_key="u", run_after=None)
    await jobs.enqueue(type="greet", then=[NewJob(type="after", unique_key="u")])

    claimed = [job for job in await claim(jobs) if job.type == "greet"]
    await ended(jobs, finished(claimed))

    assert await sql.fetchval(AFTER) == 1
    assert await status_of(jobs, claimed[0].id) == "done"


async def test_a_job_may_be_followed_by_one_of_its_own_unique_and_serial_key(jobs: Jobs):
    me: dict[str, Any] = {"type": "greet", "unique_key": "u", "serial_key": "s"}
    other = await jobs.enqueue(type="greet", unique_key="v")
    await jobs.enqueue(**me, then=[NewJob(**me, payload={"again": True}), NewJob(type="greet", unique_key="v")])

    done = await claim(jobs)
    turned = await jobs.turn(done=finished(done), own=False, limit=10, leases=LEASES, token=2)

    assert len(done) == 2
    assert sorted(job.payload.get("again", False) for job in turned.claimed) == [False, True]
    assert other.id not in {job.id for job in turned.claimed}


async def test_what_cannot_follow_does_not_keep_its_job_from_ending(jobs: Jobs, sql: asyncpg.Connection):
    await put(jobs, 3)
    await sql.execute('UPDATE wakebell.jobs SET then_jobs = \'[{"type": "after", "priority": "high"}]\'')
    claimed = await claim(jobs)

    assert await ended(jobs, finished(claimed[1:])) == []
    assert await jobs.finish(claimed[0], "done")

    for job in claimed:
        stored = await jobs.get(job.id)
        assert stored is not None
        assert stored.status == "done"
        assert str(stored.last_error).startswith("what should follow was not put in: then[0]: invalid input syntax")
    assert await sql.fetchval(AFTER) == 0


async def test_the_next_of_every_finished_serial_key_may_start(jobs: Jobs):
    keys = [f"k{number}" for number in range(30)]
    ids = {key: [(await jobs.enqueue(type="greet", serial_key=key)).id for _ in range(3)] for key in keys}

    order: dict[str, list[int]] = {key: [] for key in keys}
    of = {job_id: key for key, members in ids.items() for job_id in members}
    turned = await jobs.turn(done=[], own=False, limit=100, leases=LEASES, token=1)
    batches = 0
    while turned.claimed:
        batches += 1
        for job in turned.claimed:
            order[of[job.id]].append(job.id)
        turned = await jobs.turn(done=finished(turned.claimed), own=False, limit=100, leases=LEASES, token=batches + 1)

    assert batches == 3
    assert order == ids
