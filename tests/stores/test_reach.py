from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.domain.quota import Allowance
from app.domain.reach import Standing
from app.stores.database import Database
from app.stores.reach import LAG, Reach

SOON = timedelta(hours=2)


@pytest.fixture
def reach(database: Database) -> Reach:
    return Reach(database)


async def standing(reach: Reach, *, counted: bool = True) -> Standing:
    return await reach.standing(channel="line", address="a1", recipient="me", counted=counted)


async def message(sql: asyncpg.Connection, status: str, *, address: str = "a1", ago: timedelta = timedelta(0)) -> None:
    await sql.execute(
        "INSERT INTO wakebell.messages (recipient, channel, address, status, body, text, created_at, finished_at) "
        "VALUES ('me', 'line', $2, $1, '', '', now() - $3::interval, "
        "CASE WHEN $1 IN ('sent', 'failed', 'uncertain') THEN now() - $3::interval END)",
        *(status, address, ago),
    )


async def read(reach: Reach, limit: int | None, used: int) -> None:
    await reach.claim_reading("line")
    await reach.keep_reading("line", Allowance(limit=limit, used=used))


async def test_nothing_is_known_of_what_nobody_has_met(reach: Reach):
    found = await standing(reach)

    assert (found.closed, found.moved_to, found.allowance) == (None, None, Allowance(limit=None, used=0))
    assert (found.asked_at, found.read_at, found.last_at, found.members) == (None, None, None, None)
    assert abs(datetime.now(UTC) - found.now) < timedelta(minutes=1)


async def test_what_is_under_way_or_was_sent_since_the_reading_is_spent(reach: Reach, sql: asyncpg.Connection):
    await read(reach, 200, 50)
    for status in ("queued", "sending", "retrying", "sent", "uncertain", "failed"):
        await message(sql, status)
    await message(sql, "sent", ago=LAG * 2)

    assert (await standing(reach)).allowance == Allowance(limit=200, used=55)
    assert (await standing(reach, counted=False)).allowance.used == 50


async def test_a_group_counts_for_its_members(reach: Reach, sql: asyncpg.Connection):
    await read(reach, 200, 0)
    await reach.keep_members(address="a1", name="me", channel="line", members=8)
    await reach.keep_members(address="a1", name="me", channel="line", members=None)
    await message(sql, "queued")
    await message(sql, "queued", address="a2")

    found = await standing(reach)

    assert (found.members, found.further_members, found.allowance.used) == (8, 7, 9)


async def test_what_was_used_last_month_is_over_with_it(reach: Reach, sql: asyncpg.Connection):
    await read(reach, 200, 190)
    await sql.execute("UPDATE wakebell.channels SET quota_read_at = now() - interval '32 days'")

    assert (await standing(reach)).allowance == Allowance(limit=200, used=0)


async def test_four_who_want_to_ask_are_one_who_does(reach: Reach, sql: asyncpg.Connection):
    for asked in (1, 2):
        claims = await asyncio.gather(*(reach.claim_reading("line") for _ in range(4)))
        assert sum(claims) == 1, asked
        await sql.execute("UPDATE wakebell.channels SET quota_tried_at = now() - interval '1 hour'")


async def test_turns_taken_at_once_are_a_gap_apart(reach: Reach):
    turns = [reach.turn_of_channel("line", gap=timedelta(seconds=1), most=timedelta(seconds=9)) for _ in range(4)]

    waits = sorted(await asyncio.gather(*turns))

    assert [round(wait.total_seconds()) for wait in waits] == [0, 1, 2, 3]


async def test_a_channel_is_parked_for_the_longer_time_and_freed_by_a_later_reading_that_shows_room(
    reach: Reach, sql: asyncpg.Connection
):
    now = (await standing(reach)).now
    await reach.claim_reading("line")
    await reach.park("line", "spent", until=now + SOON * 2)
    await reach.park("line", "spent again", until=now + SOON)
    await reach.pause("line", "spent", wait=SOON)
    assert (await standing(reach)).parked == "spent again"
    assert await sql.fetchval("SELECT parked_until FROM wakebell.channels") == now + SOON * 2

    await reach.keep_reading("line", Allowance(limit=200, used=100))  # asked before it was parked
    assert (await standing(reach)).parked is not None
    await sql.execute("UPDATE wakebell.channels SET quota_tried_at = clock_timestamp() + interval '1 minute'")
    await reach.keep_reading("line", Allowance(limit=200, used=200))
    assert (await standing(reach)).parked is not None

    await reach.keep_reading("line", Allowance(limit=200, used=199))

    assert (await standing(reach)).parked is None
    assert await sql.fetchval("SELECT paused_until FROM wakebell.queues") is None


async def test_of_each_address_it_is_known_whether_it_is_closed(reach: Reach):
    await reach.block(address="a1", name="me", channel="line", reason="gone")
    await reach.move(address="a2", name="you", channel="line", to="elsewhere")
    await reach.park("sms", "spent", until=(await standing(reach)).now + SOON)

    assert await reach.closed([("line", "a1"), ("line", "a2"), ("sms", "a3"), ("line", "a4")]) == [
        True,
        False,
        True,
        False,
    ]
    assert await reach.closed([]) == []
    assert (await standing(reach)).blocked == "gone"
