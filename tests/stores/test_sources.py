from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.errors import LeaseLost
from app.domain.jobs import Job
from app.stores.database import Database
from app.stores.jobs import Jobs
from app.stores.sources import Sources, SourceState, Wanted

EVERY = timedelta(minutes=30)
LEASES = {"fetch_source": timedelta(seconds=30)}


@pytest.fixture
def sources(database: Database) -> Sources:
    return Sources(database)


def wanted(name: str = "board", *, fingerprint: str = "feed:1", every: timedelta = EVERY) -> Wanted:
    return Wanted(name=name, fingerprint=fingerprint, every=every)


async def fetched(sql: asyncpg.Connection) -> None:
    """Every fetch has ended."""
    await sql.execute("UPDATE wakebell.jobs SET status = 'done', finished_at = now()")


async def passed(sql: asyncpg.Connection, **time: float) -> None:
    """So much time has gone by since the source was planned."""
    for column in ("due_at", "grid_from"):
        await sql.execute(f"UPDATE wakebell.sources SET {column} = {column} - $1::interval", timedelta(**time))


async def queued(sql: asyncpg.Connection) -> list[str]:
    query = "SELECT payload->>'source' FROM wakebell.jobs WHERE status = 'pending' ORDER BY 1"
    return [row[0] for row in await sql.fetch(query)]


async def minutes_to_slot(sql: asyncpg.Connection) -> float:
    found = await sql.fetchval("SELECT extract(epoch FROM due_at - now()) / 60 FROM wakebell.sources")
    return round(float(found), 1)


async def row(sql: asyncpg.Connection) -> dict[str, Any]:
    return dict(await sql.fetchrow("SELECT * FROM wakebell.sources"))


async def claimed(jobs: Jobs, token: int = 1) -> Job:
    [job] = await jobs.claim(own=True, limit=1, leases=LEASES, token=token)
    return job


async def test_a_source_is_due_at_once_when_it_is_first_seen(sources: Sources, sql: asyncpg.Connection):
    assert await sources.plan([wanted(), wanted("feed")]) == 2

    assert await queued(sql) == ["board", "feed"]
    assert await sources.get("board") == SourceState(
        fingerprint="feed:1", etag=None, last_modified=None, primed_at=None
    )
    job = await sql.fetchrow("SELECT queue, unique_key, max_attempts FROM wakebell.jobs ORDER BY unique_key")
    assert tuple(job) == ("wakebell.fetch", "board", 1000)


async def test_it_is_not_due_again_before_its_next_slot(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await fetched(sql)
    await passed(sql, minutes=26)

    assert await sources.plan([wanted()]) == 0
    assert await queued(sql) == []


@pytest.mark.parametrize(
    ("minutes", "to_slot"),
    [
        (27.5, 32.5),  # a tenth of the interval early: takes the slot, and the next one stays where it is
        (30, 30),
        (44, 16),  # late: the next one does not drift
        (58, 32),  # so late that it is early for the slot after: one fetch for both
        (605, 25),  # hours late: one slot, not all it missed
        (60 * 24 * 40, 30),
    ],
)
async def test_slots_lie_on_a_grid(sources: Sources, sql: asyncpg.Connection, minutes: float, to_slot: float):
    await sources.plan([wanted()])
    await fetched(sql)
    await passed(sql, minutes=minutes)

    assert await sources.plan([wanted()]) == 1
    assert await sources.plan([wanted()]) == 0

    assert await queued(sql) == ["board"]
    assert await minutes_to_slot(sql) == to_slot


async def test_a_tick_is_at_most_five_minutes_early(sources: Sources, sql: asyncpg.Connection):
    day = wanted(every=timedelta(days=1))
    await sources.plan([day])
    await fetched(sql)

    await passed(sql, minutes=24 * 60 - 6)
    assert await sources.plan([day]) == 0
    await passed(sql, minutes=2)
    assert await sources.plan([day]) == 1


async def test_a_source_may_be_due_every_second(sources: Sources, sql: asyncpg.Connection):
    quick = wanted(every=timedelta(seconds=1))
    await sources.plan([quick])
    await fetched(sql)
    await passed(sql, seconds=3600.5)

    assert await sources.plan([quick]) == 1


async def test_two_ticks_at_once_share_what_is_due(sources: Sources, sql: asyncpg.Connection):
    all_of_them = [wanted(f"source{number}") for number in range(20)]

    due = await asyncio.gather(*(sources.plan(all_of_them[::step]) for step in (1, -1, 1, -1)))
    assert sum(due) == len(await queued(sql)) == 20

    await fetched(sql)
    await passed(sql, minutes=31)
    due = await asyncio.gather(*(sources.plan(all_of_them[::step]) for step in (1, -1, 1, -1)))
    assert sum(due) == len(await queued(sql)) == 20


async def test_a_fetch_that_has_not_ended_serves_the_next_slot_too(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await passed(sql, minutes=31)

    assert await sources.plan([wanted()]) == 1
    assert await queued(sql) == ["board"]


async def test_a_changed_address_primes_again_and_at_once(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await fetched(sql)
    await sql.execute("UPDATE wakebell.sources SET primed_at = now(), etag = 'e', last_modified = 'm', failures = 3")
    await passed(sql, minutes=5)

    assert await sources.plan([wanted(fingerprint="feed:2")]) == 1

    assert await queued(sql) == ["board"]
    assert await sources.get("board") == SourceState(
        fingerprint="feed:2", etag=None, last_modified=None, primed_at=None
    )
    assert (await row(sql))["failures"] == 0
    assert await minutes_to_slot(sql) == 25


async def test_a_changed_interval_begins_a_new_grid_and_keeps_what_is_known(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await fetched(sql)
    await sql.execute("UPDATE wakebell.sources SET primed_at = now(), etag = 'e'")
    await passed(sql, minutes=5)

    assert await sources.plan([wanted(every=timedelta(hours=1))]) == 1

    state = await sources.get("board")
    assert state is not None
    assert state.primed_at is not None
    assert state.etag == "e"
    assert await minutes_to_slot(sql) == 60


async def test_no_source_is_nothing_to_do(sources: Sources):
    assert await sources.plan([]) == 0
    assert await sources.next_due_at([]) is None
    assert await sources.get("nobody") is None


async def test_the_next_one_due_is_told_of_those_that_are_configured(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted("gone", every=timedelta(minutes=1)), wanted("board")])

    due = await sources.next_due_at(["board", "with-hyphen", "unknown"])

    assert due == await sql.fetchval("SELECT due_at FROM wakebell.sources WHERE name = 'board'")


async def test_an_unchanged_round_heals_and_ages_nothing(sources: Sources, jobs: Jobs, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await sql.execute("UPDATE wakebell.sources SET failures = 2, last_error = 'x', etag = 'e'")
    job = await claimed(jobs)

    await sources.keep_unchanged(job, "board", "feed:1")

    state = await row(sql)
    assert (state["failures"], state["last_error"], state["last_round_at"], state["etag"]) == (0, None, None, "e")
    assert state["last_success_at"] is not None
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "done"


async def test_a_failed_round_is_tried_again_after_the_usual_delay(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([wanted()])
    job = await claimed(jobs)

    assert await sources.fail(job, "board", "feed:1", "answered\x00 503", jitter=0.5) == 1

    state = await row(sql)
    assert (state["failures"], state["last_error"]) == (1, "answered 503")
    assert (state["last_round_at"], state["last_success_at"]) == (None, None)
    wait = await sql.fetchval(
        "SELECT extract(epoch FROM run_after - now()) FROM wakebell.jobs WHERE status = 'pending'"
    )
    assert 50 < wait <= 60


async def test_a_failed_round_is_left_to_its_next_slot_when_that_is_nearer(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    every_half_minute = wanted(every=timedelta(seconds=30))
    await sources.plan([every_half_minute])

    assert await sources.fail(await claimed(jobs), "board", "feed:1", "down", jitter=0.5) == 1
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "cancelled"

    await passed(sql, seconds=31)
    await sources.plan([every_half_minute])
    assert await sources.fail(await claimed(jobs), "board", "feed:1", "down", jitter=0.5) == 2


async def test_a_failure_of_the_former_address_is_not_told_of_the_new_one(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([wanted()])
    job = await claimed(jobs)
    await sources.plan([wanted(fingerprint="feed:2")])

    await sources.fail(job, "board", "feed:1", "gone", jitter=0.5)

    state = await row(sql)
    assert (state["failures"], state["last_error"]) == (0, None)
    assert await queued(sql) == ["board"], "the new address still has its first round to come"


async def test_an_unchanged_former_address_says_nothing_of_the_new_one(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([wanted()])
    job = await claimed(jobs)
    await sources.plan([wanted(fingerprint="feed:2")])

    await sources.keep_unchanged(job, "board", "feed:1")

    assert await queued(sql) == ["board"], "the new address still has its first round to come"


@pytest.mark.parametrize("ending", ["unchanged", "failed"])
async def test_a_lost_lease_writes_nothing(sources: Sources, jobs: Jobs, sql: asyncpg.Connection, ending: str):
    await sources.plan([wanted()])
    job = await claimed(jobs)
    await sql.execute("UPDATE wakebell.jobs SET lease_token = 2")
    before = await row(sql)

    writing: Coroutine[Any, Any, object]
    if ending == "failed":
        writing = sources.fail(job, "board", "feed:1", "down", jitter=0.5)
    else:
        writing = sources.keep_unchanged(job, "board", "feed:1")
    with pytest.raises(LeaseLost):
        await writing

    assert await row(sql) == before
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "running"
