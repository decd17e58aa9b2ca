"""Several at once: connections of their own, as replicas have."""

from __future__ import annotations

import asyncio
import itertools
import random
from datetime import timedelta

import asyncpg

from app.domain.jobs import Job
from app.stores.database import connect
from app.stores.jobs import Enqueued, Jobs

LEASES = {"greet": timedelta(seconds=60)}
TOKENS = itertools.count(1)


async def drain(url: str, *, limit: int, log: list[Job]) -> None:
    """What a tick does, until a claim and a rescue find nothing."""
    database = connect(url)
    jobs = Jobs(database)
    try:
        while True:
            claimed = await jobs.claim(own=False, limit=limit, leases=LEASES, token=next(TOKENS))
            for job in claimed:
                log.append(job)
                await jobs.finish(job, "done")
            if not claimed and not (await jobs.rescue()).promoted:
                return
    finally:
        await database.dispose()


async def test_four_claimers_at_once_never_share_a_job(database_url: str, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, queue) SELECT 'greet', 'queue' || n % 3 FROM generate_series(1, 400) AS n"
    )
    log: list[Job] = []

    await asyncio.gather(*(drain(database_url, limit=limit, log=log) for limit in (1, 7, 20, 100)))

    assert len(log) == len({job.id for job in log}) == 400
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'done' AND attempts = 1") == 400


async def test_a_claimer_passes_by_what_another_holds(database_url: str, jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet")
    other = await jobs.enqueue(type="greet")

    async with sql.transaction():
        await sql.execute("SELECT FROM wakebell.claim_jobs(false, 1, '{\"greet\": 60}', 1)")
        claimed = await jobs.claim(own=False, limit=10, leases=LEASES, token=2)

    assert [job.id for job in claimed] == [other.id]


async def test_one_unique_key_put_in_by_many_at_once_is_one_job(database_url: str, sql: asyncpg.Connection):
    databases = [connect(database_url) for _ in range(3)]
    try:
        added = await asyncio.gather(
            *(
                Jobs(database).enqueue(type="greet", unique_key="k", serial_key=serial)
                for database in databases
                for serial in (None, "s", "s", None)
            )
        )
    finally:
        for database in databases:
            await database.dispose()

    assert [one.created for one in added].count(True) == 1
    assert len({one.id for one in added}) == 1
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 1


async def test_a_unique_key_survives_the_rollback_of_who_held_it(
    database_url: str, jobs: Jobs, sql: asyncpg.Connection
):
    transaction = sql.transaction()
    await transaction.start()
    rolled_back = await sql.fetchval("SELECT id FROM wakebell.enqueue('greet', unique_key => 'k')")
    waiting: asyncio.Task[Enqueued] = asyncio.create_task(jobs.enqueue(type="greet", unique_key="k"))
    await until_somebody_waits(database_url)
    await transaction.rollback()

    added = await waiting

    assert added.created
    assert added.id != rolled_back


async def until_somebody_waits(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        while not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"):
            continue
    finally:
        await connection.close()


async def test_jobs_of_one_serial_key_run_one_after_the_other_in_order(jobs: Jobs):
    ids = [(await jobs.enqueue(type="greet", serial_key="k")).id for _ in range(3)]
    free = (await jobs.enqueue(type="greet", serial_key="other")).id

    order = []
    while claimed := await jobs.claim(own=False, limit=10, leases=LEASES, token=1):
        order.append([job.id for job in claimed])
        for job in claimed:
            await jobs.finish(job, "failed" if job.id == ids[1] else "done")

    assert order == [[ids[0], free], [ids[1]], [ids[2]]]


async def test_a_job_that_waits_for_its_retry_holds_its_serial_key(jobs: Jobs):
    await jobs.enqueue(type="greet", serial_key="k")
    await jobs.enqueue(type="greet", serial_key="k")
    [first] = await jobs.claim(own=False, limit=10, leases=LEASES, token=1)

    await jobs.finish(first, "retry", delay=timedelta(hours=1), error="no")

    assert await jobs.claim(own=False, limit=10, leases=LEASES, token=2) == []
    assert (await jobs.rescue()).promoted == 0


async def test_a_serial_key_never_waits_for_another_transaction(database_url: str, jobs: Jobs, sql: asyncpg.Connection):
    transaction = sql.transaction()
    await transaction.start()
    await sql.fetchval("SELECT id FROM wakebell.enqueue('greet', serial_key => 'k')")

    added = await jobs.enqueue(type="greet", serial_key="k")  # would wait for ever

    assert await jobs.claim(own=False, limit=10, leases=LEASES, token=1) == []
    assert (await jobs.rescue()).promoted == 0
    await transaction.rollback()
    assert (await jobs.rescue()).promoted == 1
    [job] = await jobs.claim(own=False, limit=10, leases=LEASES, token=2)
    assert job.id == added.id


async def test_who_missed_the_end_of_the_job_before_is_promoted(jobs: Jobs, sql: asyncpg.Connection):
    await jobs.enqueue(type="greet", serial_key="k")
    [head] = await jobs.claim(own=False, limit=10, leases=LEASES, token=1)
    transaction = sql.transaction()
    await transaction.start()
    late = await sql.fetchval("SELECT id FROM wakebell.enqueue('greet', serial_key => 'k')")
    await jobs.finish(head, "done")  # sees nobody in line
    await transaction.commit()

    before = await jobs.claim(own=False, limit=10, leases=LEASES, token=2)
    rescued = await jobs.rescue()
    [job] = await jobs.claim(own=False, limit=10, leases=LEASES, token=3)

    assert before == []
    assert rescued.promoted == 1
    assert job.id == late


async def test_serial_order_holds_among_putters_that_roll_back_and_several_drains(
    database_url: str, sql: asyncpg.Connection
):
    log: list[Job] = []
    chance = random.Random(7)

    async def put(number: int) -> None:
        connection = await asyncpg.connect(database_url)
        try:
            for turn in range(20):
                transaction = connection.transaction()
                await transaction.start()
                for key in chance.sample(["a", "b", "c"], 2):
                    await connection.execute("SELECT FROM wakebell.enqueue('greet', serial_key => $1)", key)
                await (transaction.rollback() if (turn + number) % 3 == 0 else transaction.commit())
        finally:
            await connection.close()

    async def tick() -> None:
        while not putters.done():
            await drain(database_url, limit=5, log=log)
        await drain(database_url, limit=5, log=log)

    putters = asyncio.gather(*(put(number) for number in range(3)))
    await asyncio.gather(putters, *(tick() for _ in range(3)))
    await drain(database_url, limit=5, log=log)

    assert len(log) == len({job.id for job in log}) == await sql.fetchval("SELECT count(*) FROM wakebell.jobs")
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status <> 'done'") == 0
    overlapping = """
        SELECT count(*)
        FROM wakebell.jobs AS one
        JOIN wakebell.jobs AS two ON two.serial_key = one.serial_key AND two.id > one.id
        WHERE two.started_at < one.finished_at AND two.finished_at > one.started_at
    """
    assert await sql.fetchval(overlapping) == 0


async def test_four_rescues_at_once_bring_each_job_back_once(database_url: str, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, status, attempts, lease_until, lease_token) "
        "SELECT 'greet', 'running', 1, now() - interval '1 second', 1 FROM generate_series(1, 50)"
    )
    databases = [connect(database_url) for _ in range(4)]
    try:
        found = await asyncio.gather(*(Jobs(database).rescue() for database in databases))
    finally:
        for database in databases:
            await database.dispose()

    assert sum(one.pending for one in found) == 50
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'pending' AND crashes = 1") == 50
