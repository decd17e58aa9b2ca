"""What is kept of a conversation: by whoever keeps, answers, pauses and forgets, at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.domain.chats import Kind, Said
from app.domain.conversations import Inbound, Turn
from app.domain.jobs import Job
from app.settings import Retention
from app.stores.conversations import Conversations, queue_of
from app.stores.database import Database, connect
from app.stores.jobs import Jobs
from app.stores.looks import About, Looks
from app.stores.talks import Talks

WEEK = timedelta(days=7)
LEASE = {"answer_message": timedelta(seconds=60)}
TOKENS = itertools.count(1)
ABOUT = About(users=[], own=[], sources=[], recipients=[], kept=Retention(), chats=["line"])


@pytest.fixture
def conversations(database: Database) -> Conversations:
    return Conversations(database)


def said(number: int, key: str = "bot:U1", *, kind: Kind = "message", token: str | None = None) -> Said:
    at = datetime(2026, 12, 1, tzinfo=UTC) + timedelta(seconds=number)
    return Said(
        id=f"e{number}",
        kind=kind,
        conversation=key,
        address="U1",
        person="U1",
        text="hello",
        at=at,
        reply_token=token,
    )


async def claimed(database: Database) -> list[Job]:
    return await Jobs(database).claim(own=True, limit=10, leases=LEASE, token=next(TOKENS), queue=queue_of("line"))


async def read(conversations: Conversations, job: Job) -> Inbound:
    inbound = await conversations.read(job.payload["said"], most=12)
    assert inbound is not None
    return inbound


async def test_a_token_that_comes_later_counts_as_long_as_nothing_was_sent(
    conversations: Conversations, database: Database, sql: asyncpg.Connection
):
    await conversations.keep("line", [said(1, token="first")])
    await sql.execute("UPDATE wakebell.said SET received_at = now() - interval '1 hour'")
    await conversations.keep("line", [said(1, token="second")])
    [job] = await claimed(database)
    inbound = await read(conversations, job)
    assert (inbound.reply_token, inbound.now - inbound.token_at < timedelta(minutes=5)) == ("second", True)

    await conversations.keep("line", [said(1, token="third")])
    frozen = await conversations.freeze(job, inbound, ["hello"])
    assert frozen.reply_token == "third", "it came while the reply was made"

    await conversations.keep("line", [said(1, token="fourth")])
    assert (await read(conversations, job)).reply_token == "third", "of which the provider can tell whether it was used"

    await conversations.answer(job, inbound, "replied", most=12)
    await conversations.keep("line", [said(1, token="fifth")])
    assert await sql.fetchval("SELECT reply_token FROM wakebell.said") is None


async def test_what_nobody_answers_any_more_is_forgotten_and_what_waits_is_not(
    conversations: Conversations, database: Database, sql: asyncpg.Connection
):
    await conversations.keep("line", [said(1), said(2, "bot:U2")])
    await sql.execute("UPDATE wakebell.said SET received_at = now() - interval '8 days'")
    await sql.execute("UPDATE wakebell.conversations SET last_at = now() - interval '8 days'")
    assert await conversations.prune(keep=WEEK, most=10) == 2
    assert await sql.fetchval("SELECT count(*) FROM wakebell.said") == 2, "it waits for its reply"
    assert not (await Looks(database).look(ABOUT)).prunable

    [given_up] = [job for job in await claimed(database) if job.payload["said"] == 1]
    await Jobs(database).finish(given_up, "failed", error="for good")
    assert (await Looks(database).look(ABOUT)).prunable
    assert await conversations.prune(keep=WEEK, most=10) == 1

    assert await sql.fetchval("SELECT array_agg(event_id) FROM wakebell.said") == ["e2"]
    assert not (await Looks(database).look(ABOUT)).prunable


async def test_only_what_is_said_keeps_a_conversation(conversations: Conversations, sql: asyncpg.Connection):
    await conversations.keep("line", [said(1)])
    old = "SELECT last_at < now() - interval '1 day' FROM wakebell.conversations"
    await sql.execute("UPDATE wakebell.conversations SET last_at = now() - interval '2 days'")

    await conversations.keep("line", [said(2, kind="other")])
    assert await sql.fetchval(old)

    await conversations.keep("line", [said(3, kind="staff")])
    assert not await sql.fetchval(old)


async def test_a_conversation_that_is_forgotten_while_it_is_answered_stays_forgotten(
    conversations: Conversations, database: Database, sql: asyncpg.Connection
):
    await conversations.keep("line", [said(1)])
    [job] = await claimed(database)
    inbound = await read(conversations, job)
    assert await Talks(database).forget(inbound.conversation_id, kind="line")

    frozen = await conversations.freeze(job, inbound, ["hello"])
    turn = Turn(mark="m", side="person", text="hello", at=inbound.now)
    assert frozen == inbound
    assert not await conversations.answer(job, inbound, "replied", turns=[turn], most=12)

    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "done"
    assert await sql.fetchval("SELECT count(*) FROM wakebell.turns") == 0


@asynccontextmanager
async def several(url: str, count: int) -> AsyncIterator[list[Database]]:
    databases = [connect(url) for _ in range(count)]
    try:
        yield databases
    finally:
        for database in databases:
            await database.dispose()


KEYS = [f"bot:U{number}" for number in range(4)]
NUMBERS = itertools.count(1000)
ROUNDS = 6


async def deliver(database: Database, order: int) -> None:
    for _ in range(ROUNDS):
        given = [said(next(NUMBERS), key, token="t") for key in KEYS[::order]]
        await Conversations(database).keep("line", given)
        await Conversations(database).keep("line", given[::-1])


async def reply(database: Database) -> None:
    own = Conversations(database)
    for _ in range(ROUNDS):
        for job in await claimed(database):
            inbound = await own.read(job.payload["said"], most=12)
            if inbound is None:
                await Jobs(database).finish(job, "cancelled")
                continue
            await own.freeze(job, inbound, ["hello"])
            turn = Turn(mark=inbound.event_id, side="person", text="hello", at=inbound.now)
            await own.answer(job, inbound, "replied", turns=[turn], most=2, pause=timedelta(seconds=1))


async def pause(database: Database, order: int) -> None:
    own = Conversations(database)
    for _ in range(ROUNDS):
        now = await own.pause("line", KEYS[::order], wait=timedelta(seconds=1))
        if now is not None:
            turn = Turn(mark=f"s{next(NUMBERS)}", side="staff", text="a", at=now)
            await own.remember("line", KEYS[0], [turn], most=2)
        await own.prune(keep=timedelta(0), most=1)


async def forget(database: Database) -> None:
    for _ in range(ROUNDS):
        for row in (await Talks(database).list(limit=2)).rows:
            await Talks(database).forget(row.id, kind="line")


async def test_keeping_answering_pausing_and_forgetting_at_once_never_deadlock(
    database_url: str, sql: asyncpg.Connection
):
    async with several(database_url, 7) as (a, b, c, d, e, f, g):
        await asyncio.gather(deliver(a, 1), deliver(b, -1), reply(c), reply(d), pause(e, 1), pause(f, -1), forget(g))

    await sql.execute("SELECT pg_stat_force_next_flush()")
    assert await sql.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0


async def waiting(sql: asyncpg.Connection, count: int) -> None:
    """Until so many stand behind somebody's lock."""
    held_up = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(30):
        while await sql.fetchval(held_up) < count:
            pass


async def test_a_message_that_comes_while_the_one_before_is_claimed_and_answered_is_kept(
    conversations: Conversations, database: Database, database_url: str, sql: asyncpg.Connection
):
    await conversations.keep("line", [said(1)])
    await sql.execute("UPDATE wakebell.jobs SET run_after = now() + interval '1 hour'")
    other = await asyncpg.connect(database_url)
    held = other.transaction()
    await held.start()
    await other.execute("SELECT FROM wakebell.conversations FOR UPDATE")
    kept = asyncio.create_task(conversations.keep("line", [said(2)]))  # it has seen a job that waits for its next try
    await waiting(sql, 1)
    await sql.execute("UPDATE wakebell.jobs SET run_after = now()")
    [job] = await claimed(database)
    inbound = await read(conversations, job)
    answered = asyncio.create_task(conversations.answer(job, inbound, "replied", most=12))
    await waiting(sql, 2)

    await held.rollback()
    await asyncio.gather(kept, answered)

    assert await sql.fetchval("SELECT array_agg(outcome ORDER BY id) FROM wakebell.said") == ["replied", None]
    await other.close()
