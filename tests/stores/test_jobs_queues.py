"""Queues take turns, are limited and paused; types that nobody knows stand aside."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.stores.database import connect
from app.stores.jobs import Jobs

LEASES = {"greet": timedelta(seconds=60)}
BACKLOG = (
    "INSERT INTO wakebell.jobs (type, queue, run_after) "
    "SELECT 'greet', 'backlog', now() - interval '1 day' FROM generate_series(1, 500)"
)


async def queues_of_a_claim(jobs: Jobs, limit: int, token: int = 1) -> Counter[str]:
    return Counter(job.queue for job in await jobs.claim(own=False, limit=limit, leases=LEASES, token=token))


async def test_a_backlog_does_not_hold_up_other_queues(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute(BACKLOG)
    for _ in range(20):
        await jobs.enqueue(type="greet", queue="b")
    for _ in range(2):
        await jobs.enqueue(type="greet", queue="c")

    assert await queues_of_a_claim(jobs, 30) == {"backlog": 14, "b": 14, "c": 2}


async def test_one_free_place_goes_to_the_queue_that_runs_least(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute(BACKLOG)
    await queues_of_a_claim(jobs, 5)
    await jobs.enqueue(type="greet", queue="b")

    assert await queues_of_a_claim(jobs, 1, token=2) == {"b": 1}
    assert await queues_of_a_claim(jobs, 1, token=3) == {"backlog": 1}


async def test_claiming_one_by_one_serves_every_queue(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute(BACKLOG)
    for _ in range(5):
        await jobs.enqueue(type="greet", queue="b")

    served = []
    for token in range(60):  # by chance alone, missing `b` so often is one in 10**18
        [job] = await jobs.claim(own=False, limit=1, leases=LEASES, token=token)
        await jobs.finish(job, "done")
        served.append(job.queue)

    assert "b" in served


async def test_a_paused_queue_is_left_alone_until_its_instant(jobs: Jobs, sql: asyncpg.Connection):
    for queue in ("paused", "over", "free"):
        await jobs.enqueue(type="greet", queue=queue)
    await sql.execute(
        "INSERT INTO wakebell.queues (name, paused_until, pause_reason) "
        "VALUES ('paused', 'infinity', 'the provider is down'), ('over', now() - interval '1 second', NULL)"
    )

    assert await jobs.count_startable(["greet"]) == 2
    assert await queues_of_a_claim(jobs, 10) == {"over": 1, "free": 1}
    assert await jobs.count_startable(["greet"]) == 0


async def test_a_limit_holds_over_claims_and_counts_no_expired_lease(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute(BACKLOG)
    await sql.execute("INSERT INTO wakebell.queues (name, max_running) VALUES ('backlog', 3)")

    assert await jobs.count_startable(["greet"]) == 3
    assert await queues_of_a_claim(jobs, 2, token=1) == {"backlog": 2}
    assert await queues_of_a_claim(jobs, 10, token=2) == {"backlog": 1}
    assert await queues_of_a_claim(jobs, 10, token=3) == {}
    assert await jobs.count_startable(["greet"]) == 0
    await sql.execute("UPDATE wakebell.jobs SET lease_until = now() - interval '1 second' WHERE lease_token = 1")
    assert await jobs.count_startable(["greet"]) == 2
    assert await queues_of_a_claim(jobs, 10, token=4) == {"backlog": 2}


async def test_a_limit_holds_among_claimers_at_once(database_url: str, sql: asyncpg.Connection):
    await sql.execute(BACKLOG)
    await sql.execute("INSERT INTO wakebell.queues (name, max_running) VALUES ('backlog', 3)")
    seen: list[int] = []

    async def tick(number: int) -> None:
        database = connect(database_url)
        jobs = Jobs(database)
        try:
            for turn in range(25):
                claimed = await jobs.claim(own=False, limit=2, leases=LEASES, token=1 + number * 1000 + turn)
                seen.append(await sql_running(database_url) if claimed else 0)
                for job in claimed:
                    await jobs.finish(job, "done")
        finally:
            await database.dispose()

    await asyncio.gather(*(tick(number) for number in range(4)))

    assert 0 < max(seen) <= 3
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'done'") > 0


async def sql_running(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        running: int = await connection.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'running'")
        return running
    finally:
        await connection.close()


async def test_who_waits_for_no_limited_queue_takes_the_others(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", queue="limited")
    await jobs.enqueue(type="greet", queue="free")
    await sql.execute("INSERT INTO wakebell.queues (name, max_running) VALUES ('limited', 3)")

    async with sql.transaction():
        await sql.execute("SELECT FROM wakebell.queues FOR UPDATE")
        assert await queues_of_a_claim(jobs, 10) == {"free": 1}
    assert await queues_of_a_claim(jobs, 10) == {"limited": 1}


async def test_starts_in_any_period_are_limited(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute(BACKLOG)
    await sql.execute("INSERT INTO wakebell.queues (name, max_starts, period_seconds) VALUES ('backlog', 5, 60)")

    for job in await jobs.claim(own=False, limit=3, leases=LEASES, token=1):
        await jobs.finish(job, "done")
    assert await jobs.count_startable(["greet"]) == 2
    assert await queues_of_a_claim(jobs, 10, token=2) == {"backlog": 2}
    assert await queues_of_a_claim(jobs, 10, token=3) == {}
    await sql.execute(
        "UPDATE wakebell.queues SET recent_starts = recent_starts[1:2] || "
        "ARRAY(SELECT s - interval '61 seconds' FROM unnest(recent_starts[3:5]) AS s)"
    )
    assert await queues_of_a_claim(jobs, 10, token=4) == {"backlog": 3}
    assert await sql.fetchval("SELECT cardinality(recent_starts) FROM wakebell.queues") == 5


async def test_a_type_that_nobody_knows_is_parked_and_costs_no_attempt(jobs: Jobs):
    strange = await jobs.enqueue(type="strange")
    await jobs.enqueue(type="greet")
    later = await jobs.enqueue(type="strange", run_after=datetime.now(UTC) + timedelta(hours=1))

    parked = await jobs.park(["greet"])

    assert parked == 1
    assert await jobs.park(["greet"]) == 0
    stored = await jobs.get(strange.id)
    assert stored is not None
    assert (stored.status, stored.held, stored.attempts) == ("pending", True, 0)
    stored = await jobs.get(later.id)
    assert stored is not None
    assert not stored.held
    assert await jobs.count_startable(["greet", "strange"]) == 1


async def test_a_parked_job_is_due_again_for_a_release_that_knows_it(jobs: Jobs):
    strange = await jobs.enqueue(type="strange")
    await jobs.park(["greet"])

    assert await jobs.park(["greet", "strange"]) == 0

    claimed = await jobs.claim(own=False, limit=1, leases={"strange": timedelta(seconds=5)}, token=1)
    assert [(job.id, job.attempt) for job in claimed] == [(strange.id, 1)]


async def test_own_queues_are_never_parked(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send')")

    assert await jobs.park(["greet"]) == 0


async def test_many_unknown_jobs_in_front_are_parked_at_once(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO wakebell.jobs (type) SELECT 'strange' FROM generate_series(1, 3500)")
    await jobs.enqueue(type="greet")

    assert await jobs.park(["greet"]) == 3500
    assert await queues_of_a_claim(jobs, 10) == {"default": 1}


@pytest.mark.parametrize("limit", [3, 1000])
async def test_startable_jobs_are_counted_to_the_limit(limit: int, jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", serial_key="k")
    await jobs.enqueue(type="greet", serial_key="k")
    await jobs.enqueue(type="greet", run_after=datetime.now(UTC) + timedelta(hours=1))
    await jobs.enqueue(type="strange")
    await jobs.enqueue(type="greet", queue="other")
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, queue) SELECT 'send_message', 'wakebell.send' FROM generate_series(1, 5)"
    )

    assert await jobs.count_startable(["greet", "send_message"], limit=limit) == min(7, limit)


async def test_one_queue_is_claimed_from_and_counted_alone(jobs: Jobs, sql: asyncpg.Connection):
    await sql.execute(BACKLOG)
    for queue in ("b", "b", "c"):
        await jobs.enqueue(type="greet", queue=queue)

    assert await jobs.count_startable(["greet"], queue="b") == 2
    assert await jobs.count_startable(["greet"], queue="backlog", limit=1000) == 500
    claimed = await jobs.claim(own=False, limit=10, leases=LEASES, token=1, queue="b")
    assert Counter(job.queue for job in claimed) == {"b": 2}
    assert await jobs.count_startable(["greet"], queue="b") == 0
    assert await jobs.count_startable(["greet"]) == 501


@pytest.mark.parametrize("queue", ["a", "bb", "z", "wakebell.replies"])
async def test_a_queue_with_nothing_in_it_gives_nothing_of_its_neighbours(queue: str, jobs: Jobs):
    for neighbour in ("b", "c", "y"):
        await jobs.enqueue(type="greet", queue=neighbour)

    assert await jobs.count_startable(["greet"], queue=queue) == 0
    for own in (False, True):
        assert await jobs.claim(own=own, limit=10, leases=LEASES, token=1, queue=queue) == []


@pytest.mark.parametrize(("queue", "own"), [("b", False), ("wakebell.replies", True)])
async def test_a_queue_is_claimed_from_by_its_own_kind_alone(
    queue: str,
    jobs: Jobs,
    sql: asyncpg.Connection,
    *,
    own: bool,
):
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) VALUES ('greet', $1)", queue)

    assert await jobs.claim(own=not own, limit=10, leases=LEASES, token=1, queue=queue) == []
    assert len(await jobs.claim(own=own, limit=10, leases=LEASES, token=2, queue=queue)) == 1


async def test_one_queue_is_paused_and_limited_as_ever(jobs: Jobs, sql: asyncpg.Connection):
    for queue in ("paused", "paused", "narrow", "narrow", "free"):
        await jobs.enqueue(type="greet", queue=queue)
    await sql.execute(
        "INSERT INTO wakebell.queues (name, paused_until, max_running) "
        "VALUES ('paused', 'infinity', NULL), ('narrow', NULL, 1)"
    )

    claimed = {
        queue: len(await jobs.claim(own=False, limit=10, leases=LEASES, token=token, queue=queue))
        for token, queue in enumerate(("paused", "narrow", "free"))
    }

    assert claimed == {"paused": 0, "narrow": 1, "free": 1}


async def test_a_turn_claims_from_the_one_queue(jobs: Jobs):
    for queue in ("a", "b", "c"):
        await jobs.enqueue(type="greet", queue=queue)

    turned = await jobs.turn(done=[], own=False, limit=10, leases=LEASES, token=1, queue="b")

    assert [job.queue for job in turned.claimed] == ["b"]


async def test_the_release_before_claims_turns_and_counts_as_ever(jobs: Jobs, sql: asyncpg.Connection):
    for queue in ("a", "b", "c"):
        await jobs.enqueue(type="greet", queue=queue)
    claim = """own => false, max_count => 1, leases => '{"greet": 60}'"""

    claimed = await sql.fetchval(f"SELECT id FROM wakebell.claim_jobs({claim}, token => 1::bigint)")
    done = f"done_ids => '{{{claimed}}}', done_tokens => '{{1}}', results => NULL"
    turned = await sql.fetch(f"SELECT what FROM wakebell.turn_jobs({done}, {claim}, token => 2::bigint)")

    assert [row["what"] for row in turned] == ["finished", "claimed"]
    assert await sql.fetchval("SELECT wakebell.count_startable('[\"greet\"]', 1000)") == 1
