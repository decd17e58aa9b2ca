from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from app.settings import Retention
from app.stores.database import Database
from app.stores.housekeeping import Housekeeping
from app.stores.looks import About, Looks

KEPT = Retention(items=timedelta(days=45), jobs=timedelta(days=14), messages=timedelta(days=90))
ABOUT = About(users=[], own=[], sources=[], recipients=[], kept=KEPT)

QUEUED = "SELECT count(*) FROM wakebell.jobs WHERE type = 'prune_rows'"
SOURCE = (
    "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, last_round_at) "
    "VALUES ('board', 'f', 60, now(), now())"
)
ITEM = "INSERT INTO wakebell.items (source, key, title, seen_at) VALUES ('board', 'k', 't', now() - interval '{}')"
OWED = "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, 'me', '[]' FROM wakebell.items"
MESSAGE = (
    "INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at) "
    "VALUES ('me', 'line', 'sent', '', '', now() - interval '{}')"
)
OPEN_MESSAGE = (
    "INSERT INTO wakebell.messages (recipient, channel, body, text, created_at) "
    "VALUES ('me', 'line', '', '', now() - interval '99 days')"
)

OLD = {
    "job": ["INSERT INTO wakebell.jobs (type, status, finished_at) VALUES ('a', 'done', now() - interval '15 days')"],
    "message": [MESSAGE.format("91 days")],
    "tick": ["INSERT INTO wakebell.ticks (trigger, started_at) VALUES ('http', now() - interval '31 days')"],
    "item": [SOURCE, ITEM.format("46 days")],
}

YOUNG = {
    "job": ["INSERT INTO wakebell.jobs (type, status, finished_at) VALUES ('a', 'done', now() - interval '13 days')"],
    "open job": ["INSERT INTO wakebell.jobs (type, created_at) VALUES ('a', now() - interval '99 days')"],
    "message": [MESSAGE.format("89 days")],
    "open message": [OPEN_MESSAGE],
    "tick": ["INSERT INTO wakebell.ticks (trigger, started_at) VALUES ('http', now() - interval '29 days')"],
    "item": [SOURCE, ITEM.format("44 days")],
    "item that is owed": [SOURCE, ITEM.format("46 days"), OWED],
    "item without a round": [SOURCE, "UPDATE wakebell.sources SET last_round_at = NULL", ITEM.format("46 days")],
    "item of a source that is gone": [ITEM.format("46 days")],
    "nothing": [],
}


@pytest.fixture
def housekeeping(database: Database) -> Housekeeping:
    return Housekeeping(database)


@pytest.fixture
def looks(database: Database) -> Looks:
    return Looks(database)


async def tick(looks: Looks, housekeeping: Housekeeping) -> None:
    if (await looks.look(ABOUT)).prunable:
        await housekeeping.plan()


@pytest.mark.parametrize("old", OLD)
async def test_a_row_past_its_time_queues_one_pruning(
    looks: Looks, housekeeping: Housekeeping, sql: asyncpg.Connection, old: str
):
    for statement in OLD[old]:
        await sql.execute(statement)

    await asyncio.gather(*(tick(looks, housekeeping) for _ in range(4)))

    assert await sql.fetchval(QUEUED) == 1
    job = await sql.fetchrow("SELECT queue, status FROM wakebell.jobs WHERE type = 'prune_rows'")
    assert tuple(job) == ("wakebell.housekeeping", "pending")
    assert not (await looks.look(ABOUT)).prunable, "somebody is told already"


@pytest.mark.parametrize("young", YOUNG)
async def test_what_is_to_be_kept_queues_no_pruning(looks: Looks, sql: asyncpg.Connection, young: str):
    for statement in YOUNG[young]:
        await sql.execute(statement)

    assert not (await looks.look(ABOUT)).prunable


async def test_a_pruning_that_has_ended_is_not_in_the_way_of_the_next(
    looks: Looks, housekeeping: Housekeeping, sql: asyncpg.Connection
):
    for statement in OLD["tick"]:
        await sql.execute(statement)
    await tick(looks, housekeeping)
    await sql.execute("UPDATE wakebell.jobs SET status = 'done', finished_at = now()")

    await tick(looks, housekeeping)

    assert await sql.fetchval(QUEUED) == 2
