from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.jobs import NewJob
from app.domain.schedules import Cron, Known, Schedule
from app.stores.database import Database
from app.stores.schedules import SQL, Move, Schedules, look_params

SLOT = datetime(2026, 11, 30, 9, tzinfo=UTC)
DAY = timedelta(days=1)

NEW = Move(
    name="daily",
    revision=None,
    fingerprint="f",
    anchor_at=SLOT - DAY,
    next_at=SLOT,
    begins=True,
    configured_at=SLOT - 2 * DAY,
)


@pytest.fixture
def schedules(database: Database) -> Schedules:
    return Schedules(database)


def past(known: Known, *slots: datetime, **more: Any) -> Move:
    """With a job for each slot."""
    given: dict[str, Any] = {
        "name": known.name,
        "revision": known.revision,
        "fingerprint": known.fingerprint,
        "anchor_at": known.anchor_at,
        "next_at": max(slots, default=SLOT) + DAY,
        "last_slot": max(slots, default=None),
        "jobs": {slot: NewJob(type="greet", payload={"slot": f"{slot:%d}"}) for slot in slots},
    }
    return Move(**(given | more))


async def known(schedules: Schedules, name: str = "daily") -> Known:
    _, found = await schedules.read()
    return found[name]


async def queued(sql: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await sql.fetch("SELECT payload->>'slot' FROM wakebell.jobs ORDER BY id")]


async def test_nothing_is_known_at_first(schedules: Schedules):
    now, found = await schedules.read()

    assert found == {}
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=5)


async def test_a_new_one_is_kept_and_is_kept_once(schedules: Schedules):
    first = await schedules.move([NEW])
    again = await schedules.move([replace(NEW, next_at=SLOT + DAY)])

    assert (first.fired, list(first.names), first.refused) == (0, ["daily"], {})
    assert (again.fired, list(again.names)) == (0, [])
    assert await known(schedules) == Known(
        name="daily", fingerprint="f", revision=1, anchor_at=SLOT - DAY, next_at=SLOT, configured_at=SLOT - 2 * DAY
    )


async def test_slots_become_jobs_the_oldest_first(schedules: Schedules, sql: asyncpg.Connection):
    await schedules.move([NEW, replace(NEW, name="other")])
    move = past(await known(schedules), SLOT + DAY, SLOT - DAY)
    other = past(await known(schedules, "other"), SLOT)

    moved = await schedules.move([move, other])

    assert (moved.fired, moved.names) == (3, {"daily", "other"})
    assert await queued(sql) == ["29", "30", "01"]
    there = await known(schedules)
    assert (there.revision, there.last_slot, there.fired_slot, there.next_at) == (
        2,
        SLOT + DAY,
        SLOT + DAY,
        SLOT + 2 * DAY,
    )
    assert there.fired_at is not None


async def test_four_at_once_fire_each_slot_once(schedules: Schedules, sql: asyncpg.Connection):
    names = [f"s{n}" for n in range(20)]
    await schedules.move([replace(NEW, name=name) for name in names])
    _, found = await schedules.read()
    moves = [past(found[name], SLOT, SLOT + DAY) for name in names]

    several = await asyncio.gather(*(schedules.move(moves[n:] + moves[:n]) for n in range(0, 20, 5)))

    assert sum(moved.fired for moved in several) == 40
    assert len(await queued(sql)) == 40
    assert {each.revision for each in (await schedules.read())[1].values()} == {2}


async def test_many_rounds_of_four_at_once_lose_and_double_nothing(schedules: Schedules, sql: asyncpg.Connection):
    await schedules.move([NEW])

    async def tick(rounds: int) -> None:
        for _ in range(rounds):
            there = await known(schedules)
            slot = (there.last_slot or SLOT - DAY) + DAY
            await schedules.move([past(there, slot)])

    await asyncio.gather(*(tick(5) for _ in range(4)))

    slots = await queued(sql)
    assert 5 <= len(slots) == len(set(slots))
    assert (await known(schedules)).last_slot == SLOT + (len(slots) - 1) * DAY


async def test_one_that_was_moved_meanwhile_is_left_alone(schedules: Schedules, sql: asyncpg.Connection):
    await schedules.move([NEW])
    there = await known(schedules)
    await schedules.move([past(there, SLOT)])

    late = await schedules.move([past(there, SLOT), replace(NEW, name="new")])

    assert (late.fired, late.names) == (0, {"new"})
    assert await queued(sql) == ["30"]
    assert (await known(schedules, "new")).next_at == SLOT, "the others are not held up"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"payload": {"much": "x" * 262144}}, "jobs[1]: payload must be at most 256 KiB"),
    ({"queue": "wakebell.send"}, "jobs[1]: queues named"),
    ({"priority": 101}, "jobs[1]: priority must be from 0 to 100"),
]


@pytest.mark.parametrize(("fault", "told"), REFUSED)
async def test_one_whose_job_is_refused_stays_alone_where_it_is(
    schedules: Schedules, sql: asyncpg.Connection, fault: dict[str, Any], told: str
):
    await schedules.move([NEW, replace(NEW, name="bad")])
    good, bad = await known(schedules), await known(schedules, "bad")
    jobs = {SLOT: NewJob(type="greet", payload={"slot": "x"}), SLOT + DAY: NewJob(**({"type": "greet"} | fault))}

    moved = await schedules.move([past(bad, SLOT, jobs=jobs), past(good, SLOT)])

    assert (moved.fired, moved.names) == (1, {"daily"})
    assert moved.refused["bad"].startswith(told)
    assert await queued(sql) == ["30"]
    assert await known(schedules, "bad") == bad


async def test_what_was_missed_is_added_up_and_forgotten_by_a_new_line(schedules: Schedules):
    await schedules.move([NEW])
    await schedules.move([past(await known(schedules), missed=2, missed_slot=SLOT)])
    await schedules.move([past(await known(schedules), SLOT + 3 * DAY, missed=1, missed_slot=SLOT + 2 * DAY)])
    await schedules.move([past(await known(schedules), SLOT + 4 * DAY)])
    missed = await known(schedules)

    await schedules.move([replace(NEW, revision=missed.revision, fingerprint="g")])

    assert (missed.missed_count, missed.missed_slot) == (3, SLOT + 2 * DAY)
    assert missed.missed_at is not None
    there = await known(schedules)
    assert (there.missed_count, there.missed_slot, there.missed_at) == (3, None, None)
    assert (there.fingerprint, there.last_slot, there.fired_slot) == ("g", None, SLOT + 4 * DAY)


async def test_one_that_is_removed_is_marked_until_it_is_back(schedules: Schedules):
    await schedules.move([NEW])
    await schedules.move([past(await known(schedules), next_at=SLOT, removed=True)])
    removed = await known(schedules)

    await schedules.move([past(removed)])

    assert removed.removed_at is not None
    assert (await known(schedules)).removed_at is None


async def test_an_objection_stands_until_the_next_tick_of_those_it_is_against_and_holds_none_of_them_up(
    schedules: Schedules, sql: asyncpg.Connection
):
    await schedules.move([NEW])
    seen = await known(schedules)
    objection = past(seen, next_at=SLOT, objects=True)
    await schedules.move([objection])
    objected = await known(schedules)
    await schedules.move([past(seen, SLOT)])
    fired = await known(schedules)
    late = await schedules.move([objection])

    assert replace(objected, objected_at=None) == seen
    assert objected.objected_at is not None
    assert (fired.objected_at, fired.configured_at, await queued(sql)) == (None, SLOT - 2 * DAY, ["30"])
    assert (late.names, await known(schedules)) == (frozenset(), fired)


# ------------------------------------------------------------------------------------------------------------ the look


def configured(*names: str, line: str = "0 9 * * *") -> list[Schedule]:
    timing = Cron(line=line, timezone="UTC", zone=UTC)
    return [
        Schedule(name=name, written=line, timing=timing, job="j", payload={}, grace=timedelta(minutes=1))
        for name in names
    ]


@pytest.mark.parametrize(
    ("stored", "names", "seen"),
    [
        ([], [], False),
        ([], ["daily"], True),
        (["now() + interval '1 h', NULL, NULL"], ["daily"], False),
        (["now() - interval '1 s', NULL, NULL"], ["daily"], True),
        (["NULL, NULL, NULL"], ["daily"], False),
        (["now() + interval '1 h', now(), NULL"], ["daily"], True),
        (["now() + interval '1 h', now(), NULL"], [], False),
        (["now() + interval '1 h', NULL, NULL"], [], True),
        (["now() + interval '9 y', NULL, now() + interval '8 y'"], ["daily"], True),
        (["now() + interval '2 h', NULL, now() + interval '1 h'"], ["daily"], False),
    ],
    ids=[
        "nothing at all",
        "a new one",
        "one that waits",
        "one that is due",
        "one that has no further slot",
        "one that is back",
        "one that is gone for long",
        "one that is gone",
        "one of a clock that was wrong",
        "one of a clock that was a little wrong",
    ],
)
async def test_a_look_sees_whether_there_is_something_to_plan(
    database: Database, sql: asyncpg.Connection, stored: list[str], names: list[str], *, seen: bool
):
    for values in stored:
        await sql.execute(
            "INSERT INTO wakebell.schedules (name, fingerprint, anchor_at, next_at, removed_at, last_slot) "
            f"VALUES ('daily', '0 9 * * * UTC', now() - interval '1 day', {values})"
        )

    [found] = await database.fetch(SQL["look"], look_params(configured(*names)))

    assert found["schedulable"] is seen


OTHER_LINE = """
    INSERT INTO wakebell.schedules (name, fingerprint, anchor_at, configured_at, objected_at)
    VALUES ('daily', $1, now() - interval '1 day', now() - make_interval(mins => $2), now() - make_interval(mins => $3))
"""


@pytest.mark.parametrize(
    ("line", "configured_ago", "objected_ago", "seen"),
    [
        ("1 9 * * *", 120, None, True),
        ("1 9 * * *", 30, None, True),
        ("1 9 * * *", 30, 59, False),
        ("1 9 * * *", 30, 61, True),
        ("1 9 * * *", -2880, 59, True),
        ("0 9 * * *", 30, None, False),
        ("0 9 * * *", 30, 59, True),
    ],
    ids=[
        "this process is the later one",
        "it is the earlier one, and is to object",
        "it has objected",
        "nobody has dismissed that",
        "a clock was wrong",
        "its own line",
        "its own line, and an objection to dismiss",
    ],
)
async def test_a_look_sees_what_is_to_be_done_beside_another_release(
    database: Database,
    sql: asyncpg.Connection,
    line: str,
    configured_ago: int,
    objected_ago: int | None,
    *,
    seen: bool,
):
    await sql.execute(OTHER_LINE, f"{line} UTC", configured_ago, objected_ago)

    [found] = await database.fetch(SQL["look"], look_params(configured("daily"), age=timedelta(hours=1)))

    assert found["schedulable"] is seen


async def test_a_look_sees_another_line_and_when_the_first_slot_is(schedules: Schedules, database: Database):
    await schedules.move([replace(NEW, name=name, fingerprint="0 9 * * * UTC") for name in ("a", "b")])
    await schedules.move([replace(NEW, name="c", fingerprint="0 9 * * * UTC", next_at=SLOT - DAY)])

    assert await schedules.next_at(configured("a", "b")) == SLOT
    assert await schedules.next_at(configured("a", "c")) == SLOT - DAY
    assert await schedules.next_at([]) is None
    [found] = await database.fetch(SQL["look"], look_params(configured("a", "b", "c", line="1 9 * * *")))
    assert found["schedulable"] is True
