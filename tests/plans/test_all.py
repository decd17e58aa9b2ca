from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from app import plugins
from app.context import Context
from tests.fakes.batches import a_batch, a_service, seen

CONFIGURATION = """
[sources.board]
kind = "feed"
url = "https://board.example/feed.xml"
every_minutes = 30

[sources.other]
kind = "feed"
url = "https://other.example/feed.xml"
every_minutes = 60
"""

QUEUED = "SELECT type || ' ' || unique_key FROM wakebell.jobs ORDER BY 1"


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path) -> AsyncIterator[Context]:
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION)) as ctx:
        yield ctx


async def plan(name: str, ctx: Context) -> None:
    await plugins.load("app.plans", name).plan(ctx, await seen(ctx))


async def queued(sql: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await sql.fetch(QUEUED)]


@pytest.mark.parametrize("name", plugins.kinds("app.plans"))
async def test_a_plan_has_one_door_and_twice_is_once(name: str, ctx: Context, sql: asyncpg.Connection):
    module = plugins.load("app.plans", name)
    assert inspect.iscoroutinefunction(module.plan)
    assert list(inspect.signature(module.plan).parameters) == ["ctx", "look"]

    await plan(name, ctx)
    once = await queued(sql)
    await plan(name, ctx)

    assert await queued(sql) == once


async def test_every_due_source_is_fetched(ctx: Context, sql: asyncpg.Connection):
    await plan("sources", ctx)

    assert await queued(sql) == ["fetch_source board", "fetch_source other"]
    assert ctx.tally["sources.due"] == 2


async def test_no_source_is_nothing_to_plan(database_url: str, tmp_path: Path, sql: asyncpg.Connection):
    async with a_batch(a_service(database_url, tmp_path)) as ctx:
        await plan("sources", ctx)

    assert await queued(sql) == []


async def test_whoever_is_owed_something_is_written_to(ctx: Context, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO wakebell.items (source, key, title) VALUES ('board', 'a', 'a')")
    await sql.execute(
        "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) "
        "SELECT id, recipient, '[]' FROM wakebell.items, unnest(ARRAY['inbox', 'nobody any more']) AS recipient",
    )

    await plan("messages", ctx)

    assert await queued(sql) == ["compose_messages inbox"]


async def test_a_message_that_kills_every_process_is_counted_as_failed(ctx: Context, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.messages (recipient, channel, status, body, text) VALUES ('me', 'x', 'sending', '', '')",
    )

    await plan("messages", ctx)

    assert ctx.tally["messages.failed"] == 1
    assert ctx.tally.status == "partial"


async def test_pruning_is_planned_when_there_is_something_to_prune(ctx: Context, sql: asyncpg.Connection):
    await plan("housekeeping", ctx)
    assert await queued(sql) == []

    await sql.execute("INSERT INTO wakebell.ticks (trigger, started_at) VALUES ('old', now() - interval '31 days')")
    await plan("housekeeping", ctx)
    assert await queued(sql) == ["prune_rows prune"]
