from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.errors import LeaseLost
from app.domain.jobs import Job
from app.domain.manners import Visited
from app.stores.database import Database
from app.stores.jobs import Jobs
from app.stores.sources import Sources, SourceState, Wanted

EVERY = timedelta(minutes=30)
GAP = timedelta(seconds=1)
LEASES = {"fetch_source": timedelta(seconds=30)}


@pytest.fixture
def sources(database: Database) -> Sources:
    return Sources(database)


def wanted(
    name: str = "board", *, fingerprint: str = "feed:1", every: timedelta = EVERY, host: str | None = None
) -> Wanted:
    return Wanted(name=name, fingerprint=fingerprint, every=every, host=host or f"{name}.example")


def visited(**what: Any) -> Visited:
    given: dict[str, Any] = {"host": "board.example", "gap": GAP} | what
    return Visited(**given)


async def fail(sources: Sources, job: Job, reason: str = "down") -> int:
    return await sources.fail(job, "board", "feed:1", reason, host="board.example", gap=GAP, answered=True, jitter=0.5)


async def the_state(sources: Sources, name: str = "board") -> SourceState:
    state = await sources.get(name)
    assert state is not None
    return state


async def fetched(sql: asyncpg.Connection) -> None:
    """Every fetch has ended."""
    await sql.execute("UPDATE wakebell.jobs SET status = 'done', finished_at = now()")


async def passed(sql: asyncpg.Connection, **time: float) -> None:
    """So much time has gone by since the source was planned."""
    for column in ("due_at", "grid_from", "retry_at", "fresh_until", "moved_since", "last_round_at", "last_success_at"):
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
    state = await the_state(sources)
    assert (state.fingerprint, state.host, state.etag, state.primed_at) == ("feed:1", "board.example", None, None)
    job = await sql.fetchrow(
        "SELECT queue, unique_key, serial_key, max_attempts, payload FROM wakebell.jobs ORDER BY unique_key"
    )
    assert tuple(job)[:4] == ("wakebell.fetch", "board", "wakebell.host:board.example", 1000)
    assert json.loads(job["payload"]) == {"source": "board", "host": "board.example"}


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
    state = await the_state(sources)
    assert (state.fingerprint, state.etag, state.last_modified, state.primed_at) == ("feed:2", None, None, None)
    assert (await row(sql))["failures"] == 0
    assert await minutes_to_slot(sql) == 25


async def test_a_changed_interval_begins_a_new_grid_and_keeps_what_is_known(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await fetched(sql)
    await sql.execute("UPDATE wakebell.sources SET primed_at = now(), etag = 'e'")
    await passed(sql, minutes=5)

    assert await sources.plan([wanted(every=timedelta(hours=1))]) == 1

    state = await the_state(sources)
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

    await sources.keep_unchanged(job, "board", "feed:1", visited())

    state = await row(sql)
    assert (state["failures"], state["last_error"], state["last_round_at"], state["etag"]) == (0, None, None, "e")
    assert state["last_success_at"] is not None
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "done"


async def test_a_failed_round_is_tried_again_after_the_usual_delay(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([wanted()])
    job = await claimed(jobs)

    assert await fail(sources, job, "answered\x00 500") == 1

    state = await row(sql)
    assert (state["failures"], state["last_error"]) == (1, "answered 500")
    assert (state["last_round_at"], state["last_success_at"]) == (None, None)
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "cancelled", "the next in line has its turn"
    assert 50 < await sql.fetchval("SELECT extract(epoch FROM retry_at - now()) FROM wakebell.sources") <= 60
    assert await sources.plan([wanted()]) == 0
    await passed(sql, minutes=1)
    assert await sources.next_due_at(["board"]) == (await row(sql))["retry_at"]
    assert await sources.plan([wanted()]) == 1
    assert await minutes_to_slot(sql) == 29, "the grid stays where it is"


async def test_a_failed_round_is_left_to_its_next_slot_when_that_is_nearer(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    every_half_minute = wanted(every=timedelta(seconds=30))
    await sources.plan([every_half_minute])

    assert await fail(sources, await claimed(jobs)) == 1
    assert (await row(sql))["retry_at"] is None

    await passed(sql, seconds=31)
    await sources.plan([every_half_minute])
    assert await fail(sources, await claimed(jobs)) == 2


async def still_to_be_read(sources: Sources, sql: asyncpg.Connection) -> None:
    """The new address has its first round to come, in a minute."""
    assert await queued(sql) == []
    await passed(sql, minutes=1)
    assert await sources.plan([wanted(fingerprint="feed:2")]) == 1


async def test_a_failure_of_the_former_address_is_not_told_of_the_new_one(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([wanted()])
    job = await claimed(jobs)
    await sources.plan([wanted(fingerprint="feed:2")])

    await fail(sources, job, "gone")

    state = await row(sql)
    assert (state["failures"], state["last_error"]) == (0, None)
    await still_to_be_read(sources, sql)


async def test_an_unchanged_former_address_says_nothing_of_the_new_one(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([wanted()])
    job = await claimed(jobs)
    await sources.plan([wanted(fingerprint="feed:2")])

    await sources.keep_unchanged(job, "board", "feed:1", visited())

    await still_to_be_read(sources, sql)


@pytest.mark.parametrize("ending", ["unchanged", "failed", "refused", "gone", "left", "lined up"])
async def test_a_lost_lease_writes_nothing(sources: Sources, jobs: Jobs, sql: asyncpg.Connection, ending: str):
    await sources.plan([wanted()])
    job = await claimed(jobs)
    await sql.execute("UPDATE wakebell.jobs SET lease_token = 2")
    before = await row(sql)

    endings: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "failed": lambda: fail(sources, job),
        "unchanged": lambda: sources.keep_unchanged(job, "board", "feed:1", visited()),
        "refused": lambda: sources.refuse(job, "board", "feed:1", "x", host="board.example", asked=None, jitter=0.5),
        "gone": lambda: sources.stop(job, "board", "feed:1", "x", host="board.example", gap=GAP),
        "left": lambda: sources.leave(job, "board"),
        "lined up": lambda: sources.line_up(job, "board"),
    }
    with pytest.raises(LeaseLost):
        await endings[ending]()

    assert await row(sql) == before
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "running"


# ------------------------------------------------------------------------------------------------------------- turns


async def test_fetches_of_one_host_run_one_after_another_and_of_others_beside_them(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([*(wanted(name, host="same.example") for name in "abc"), wanted("d")])

    first = await jobs.claim(own=True, limit=9, leases=LEASES, token=1)
    again = await jobs.claim(own=True, limit=9, leases=LEASES, token=2)
    assert [(job.payload["source"], job.payload["host"]) for job in first] == [
        ("a", "same.example"),
        ("d", "d.example"),
    ]
    assert again == []

    await sources.keep_unchanged(first[0], "a", "feed:1", visited(host="same.example"))
    [second] = await jobs.claim(own=True, limit=9, leases=LEASES, token=3)
    assert second.payload["source"] == "b"
    assert timedelta(0) < (await the_state(sources, "b")).wait <= GAP, "the gap is not over"
    await sources.fail(second, "b", "feed:1", "down", host="same.example", gap=GAP, answered=True, jitter=0.5)
    [third] = await jobs.claim(own=True, limit=9, leases=LEASES, token=4)
    assert third.payload["source"] == "c", "a failed one keeps nobody waiting"


async def test_a_refused_fetch_leaves_the_next_turn_to_another_source(
    sources: Sources, jobs: Jobs, sql: asyncpg.Connection
):
    await sources.plan([wanted("a", host="same.example"), wanted("b", host="same.example")])
    job = await claimed(jobs)

    lasting = await sources.refuse(
        job, "a", "feed:1", "answered 429", host="same.example", asked=timedelta(minutes=9), jitter=0.5
    )

    assert not lasting
    assert (await claimed(jobs, 2)).payload["source"] == "b"
    state = await the_state(sources, "b")
    assert (state.host_waits, state.host_reason) == (True, "answered 429")
    assert timedelta(minutes=8) < state.wait <= timedelta(minutes=9)


async def test_a_believed_move_takes_the_turn_of_the_new_host(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await fetched(sql)
    await sql.execute("UPDATE wakebell.sources SET moved_to = 'https://new/', moved_host = 'new', moved_at = now()")
    await passed(sql, minutes=30)

    await sources.plan([wanted()])

    assert (await the_state(sources)).moved_to == "https://new/"
    assert await sql.fetchval("SELECT serial_key FROM wakebell.jobs WHERE status = 'pending'") == "wakebell.host:new"


async def test_four_ticks_at_once_plan_one_line_for_each_host(sources: Sources, jobs: Jobs, sql: asyncpg.Connection):
    all_of_them = [wanted(f"source{number}", host=f"host{number % 4}") for number in range(40)]

    await asyncio.gather(*(sources.plan(all_of_them[::step]) for step in (1, -1, 1, -1)))
    claims = await asyncio.gather(
        *(jobs.claim(own=True, limit=20, leases=LEASES, token=token) for token in range(1, 5))
    )

    assert sorted(job.payload["host"] for claim in claims for job in claim) == ["host0", "host1", "host2", "host3"]


async def test_a_source_is_watched_while_somebody_plans_it(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    assert (await the_state(sources)).watched

    await passed(sql, minutes=89)
    assert (await the_state(sources)).watched
    await passed(sql, minutes=2)
    assert not (await the_state(sources)).watched


async def test_a_source_that_is_gone_stays_watched(sources: Sources, sql: asyncpg.Connection):
    await sources.plan([wanted()])
    await fetched(sql)
    await sql.execute("UPDATE wakebell.sources SET gone_at = now(), failures = 1")
    await passed(sql, hours=5)

    assert await sources.plan([wanted()]) == 0

    assert (await the_state(sources)).watched
    assert await queued(sql) == []
