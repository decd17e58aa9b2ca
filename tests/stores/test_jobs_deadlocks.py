"""Everything at once, over the same keys: PostgreSQL must never have to break a deadlock."""

from __future__ import annotations

import asyncio
import itertools
import random
from datetime import timedelta

import asyncpg

from app.domain.jobs import Finished, NewJob
from app.stores.database import connect
from app.stores.jobs import Jobs

LEASES = {"greet": timedelta(seconds=60), "after": timedelta(seconds=60)}
TOKENS = itertools.count(1)
ROUNDS = 12
KEYS = [f"u{number}" for number in range(400)]
LINES = [f"s{number}" for number in range(20)]


def some_jobs(chance: random.Random) -> list[NewJob]:
    """Of a few keys, in any order, some of them followed by others."""
    return [
        NewJob(
            type=chance.choice(["greet", "after"]),
            unique_key=key,
            serial_key=chance.choice([None, None, *LINES]),
            then=tuple(
                NewJob(type=chance.choice(["greet", "after"]), unique_key=following, serial_key=chance.choice(LINES))
                for following in chance.sample(KEYS, chance.choice([0, 0, 0, 0, 5]))
            ),
        )
        for key in chance.sample(KEYS, 250)
    ]


async def put(jobs: Jobs, chance: random.Random) -> None:
    for _ in range(ROUNDS):
        await jobs.enqueue_many(some_jobs(chance))


async def work(jobs: Jobs, chance: random.Random) -> None:
    done: list[Finished] = []
    for _ in range(ROUNDS):
        turned = await jobs.turn(done=done, own=False, limit=200, leases=LEASES, token=next(TOKENS))
        assert turned.lost == []
        for job in turned.claimed[::4]:
            await jobs.finish(job, chance.choice(["failed", "cancelled", "done"]))
        done = [Finished(job=job) for index, job in enumerate(turned.claimed) if index % 4]
    assert (await jobs.turn(done=done, own=False, limit=0, leases={}, token=1)).lost == []


async def keep(jobs: Jobs, sql: asyncpg.Connection, chance: random.Random) -> None:
    for _ in range(ROUNDS):
        await jobs.retry_all(chance.choice(["greet", "after"]), limit=200)
        chosen = await sql.fetch("SELECT id FROM wakebell.jobs WHERE status <> 'running' ORDER BY random() LIMIT 20")
        for row in chosen[:10]:
            await jobs.cancel(row["id"])
        for row in chosen[10:]:
            await jobs.retry(row["id"])
        await jobs.rescue()


async def test_putting_in_finishing_and_retrying_at_once_never_deadlock(database_url: str, sql: asyncpg.Connection):
    databases = [connect(database_url) for _ in range(7)]
    putters, workers, keeper = databases[:3], databases[3:6], databases[6]
    try:
        await asyncio.gather(
            *(put(Jobs(database), random.Random(seed)) for seed, database in enumerate(putters)),
            *(work(Jobs(database), random.Random(seed)) for seed, database in enumerate(workers)),
            keep(Jobs(keeper), sql, random.Random(7)),
        )
        await drain(Jobs(keeper))
    finally:
        for database in databases:
            await database.dispose()

    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status IN ('pending', 'running')") == 0
    await sql.execute("SELECT pg_stat_force_next_flush()")
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await sql.fetchval(deadlocks) == 0


async def drain(jobs: Jobs) -> None:
    """To the end: what follows on what, and lines without a head too."""
    done: list[Finished] = []
    while True:
        turned = await jobs.turn(done=done, own=False, limit=100, leases=LEASES, token=next(TOKENS))
        done = [Finished(job=job) for job in turned.claimed]
        if not done and not (await jobs.rescue()).promoted:
            return
