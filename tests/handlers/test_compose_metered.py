"""Composing for a channel whose provider sells so many messages a month."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app import attempt, handlers
from app.context import Context
from app.domain import quota
from app.domain.errors import TemporaryFailure
from app.domain.quota import Allowance
from app.plans import messages as plan
from tests.fakes.batches import LEASE, a_batch, a_service, seen
from tests.handlers.conftest import Channel, Run

TICK = timedelta(hours=1)
MONTH = timedelta(days=3)

CONFIGURATION = """
[channels.line]
kind = "line"
token = "a-token-of-line"
base_url = "https://line.test"
{more}

[recipients.me]
channel = "line"
to = "U1"

[recipients.group]
channel = "line"
to = "C1"
"""


class Line:
    """What the provider says of the month, and how often it was asked."""

    def __init__(self, channel: Channel) -> None:
        self.limit: int | None = 200
        self.used = 0
        self.asked = 0
        self.counted: list[str] = []
        self.fails = False
        channel.allowance = self.allowance  # type: ignore[attr-defined]
        channel.members = self.members  # type: ignore[attr-defined]

    async def allowance(self, options: Any, http: httpx.AsyncClient) -> Allowance:
        self.asked += 1
        await asyncio.sleep(0.3)
        if self.fails:
            raise TemporaryFailure("503")
        return Allowance(limit=self.limit, used=self.used)

    async def members(self, to: str, options: Any, http: httpx.AsyncClient) -> int:
        self.counted.append(to)
        return 1 if to == "U1" else 40


@pytest.fixture
def more() -> str:
    return ""


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path, more: str) -> AsyncIterator[Context]:
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION.format(more=more))) as ctx:
        yield ctx


@pytest.fixture
def line(channel: Channel) -> Line:
    return Line(channel)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """When the month began: a month of three days, by a clock that a test puts forward."""
    bounds: list[datetime] = [datetime.now(UTC)]
    monkeypatch.setattr(quota, "month_of", lambda now: (bounds[0], bounds[0] + MONTH))
    return bounds


async def owe(sql: asyncpg.Connection, *titles: str, to: str = "me") -> None:
    for title in titles:
        await sql.execute(
            "WITH added AS (INSERT INTO wakebell.items (source, key, title) VALUES ('board', $1, $1) RETURNING id) "
            "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, $2, '[]' FROM added",
            *(title, to),
        )


async def compose(ctx: Context, run: Run) -> dict[str, Any]:
    await plan.plan(ctx, await seen(ctx))
    row: dict[str, Any] = await run("compose_messages")
    return row


async def status(ctx: Context, run: Run) -> str:
    return str((await compose(ctx, run))["status"])


async def test_the_provider_is_asked_once_an_hour_whoever_composes(
    ctx: Context, sql: asyncpg.Connection, run: Run, line: Line
):
    for title in ("a", "b", "c"):
        await owe(sql, title)
        assert await status(ctx, run) == "done"
    assert line.asked == 1
    await sql.execute("UPDATE wakebell.channels SET quota_tried_at = now() - interval '1 hour'")
    await owe(sql, "d")
    await compose(ctx, run)
    assert line.asked == 2


async def test_of_a_hundred_at_once_one_asks(ctx: Context, line: Line):
    claims = [ctx.stores.reach.claim_reading("line") for _ in range(12)]

    assert sum(await asyncio.gather(*claims)) == 1


async def test_what_was_composed_since_the_provider_was_asked_is_spent(
    ctx: Context, sql: asyncpg.Connection, run: Run, line: Line
):
    line.limit, line.used = 200, 189
    await owe(sql, "a")
    assert await status(ctx, run) == "done"

    await owe(sql, "b")

    assert await status(ctx, run) == "pending", "the reserve is for alerts"
    assert line.asked == 1
    told = await sql.fetchrow("SELECT low_reason, low_until > now() AS low FROM wakebell.channels")
    assert told["low"]
    assert told["low_reason"].startswith("190 of 200 messages are used")
    assert (await seen(ctx)).held == 1


async def test_a_held_digest_is_asked_for_again_within_the_hour_and_the_tick_tells_when(
    ctx: Context, sql: asyncpg.Connection, run: Run, line: Line
):
    line.used = 195
    await owe(sql, "a")

    row = await compose(ctx, run)

    assert timedelta(minutes=59) < row["wait"] <= timedelta(hours=1)
    assert (await seen(ctx)).next_due_at == row["run_after"]


async def test_a_group_costs_its_members_which_are_counted_once_a_day(
    ctx: Context, sql: asyncpg.Connection, run: Run, line: Line
):
    line.used = 160
    await owe(sql, "a", to="group")

    assert await status(ctx, run) == "pending", "there are thirty left, and it has forty members"

    line.used = 0
    await sql.execute("UPDATE wakebell.channels SET quota_tried_at = now() - interval '1 hour'")
    assert (await run("compose_messages"))["status"] == "done"
    assert line.counted == ["C1"]
    standing = await ctx.stores.reach.standing(channel="line", address="", recipient="me", counted=True)
    assert (standing.allowance.used, standing.further_members) == (40, 39)


async def test_as_many_as_one_likes_are_not_spread(ctx: Context, sql: asyncpg.Connection, run: Run, line: Line):
    line.limit, line.used = None, 10_000
    await owe(sql, "a")

    assert await status(ctx, run) == "done"


async def test_without_an_answer_digests_go_as_before(ctx: Context, sql: asyncpg.Connection, run: Run, line: Line):
    line.fails = True
    await owe(sql, "a")

    assert await status(ctx, run) == "done"

    await owe(sql, "b")
    await sql.execute("UPDATE wakebell.channels SET quota_tried_at = quota_tried_at - interval '1 minute'")
    assert await status(ctx, run) == "done"
    assert line.asked == 1


@pytest.mark.parametrize("more", ["monthly_limit = 1"])
async def test_ones_own_limit_counts_without_any_answer(
    ctx: Context, sql: asyncpg.Connection, run: Run, line: Line, more: str
):
    line.fails = True
    await owe(sql, "a")

    assert await status(ctx, run) == "pending"


async def test_two_who_ask_for_the_first_time_wait_for_one_answer(ctx: Context, sql: asyncpg.Connection, line: Line):
    line.used = 200
    await owe(sql, "a")
    await owe(sql, "b", to="group")
    await plan.plan(ctx, await seen(ctx))

    await drain(ctx)

    assert line.asked == 1
    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages") == 0


async def drain(ctx: Context) -> None:
    """What is due, all that there is at once."""
    own = handlers.own()
    while True:
        jobs = await ctx.stores.jobs.claim(
            own=True, limit=24, leases=dict.fromkeys(own, LEASE), token=ctx.random.getrandbits(62)
        )
        if not jobs:
            return
        cut = attempt.Cut()
        await asyncio.gather(*(attempt.run(ctx, job, own[job.type], own[job.type].timeout, cut) for job in jobs))


async def put_forward(sql: asyncpg.Connection, begun: list[datetime]) -> None:
    """An hour later: everything that has happened is an hour longer ago."""
    begun[0] -= TICK
    await sql.execute(
        "UPDATE wakebell.messages SET created_at = created_at - $1::interval, "
        "sent_at = sent_at - $1::interval, finished_at = finished_at - $1::interval",
        TICK,
    )
    await sql.execute(
        "UPDATE wakebell.channels SET quota_tried_at = quota_tried_at - $1::interval, "
        "quota_read_at = quota_read_at - $1::interval",
        TICK,
    )
    await sql.execute("UPDATE wakebell.jobs SET run_after = run_after - $1::interval WHERE status = 'pending'", TICK)
    await sql.execute("UPDATE wakebell.owed SET created_at = created_at - $1::interval", TICK)


async def test_a_short_month_with_news_in_each_tick_is_told_whole_for_what_it_has(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, line: Line, begun: list[datetime]
):
    ticks = MONTH // TICK
    line.limit = 20
    for number in range(ticks):
        await owe(sql, f"item {number}")
        await plan.plan(ctx, await seen(ctx))
        await drain(ctx)
        line.used = len(channel.sent)
        await put_forward(sql, begun)
    spent = len(channel.sent)
    begun[0] += MONTH  # the next one has just begun
    line.used = 0
    await sql.execute("UPDATE wakebell.jobs SET run_after = now() WHERE status = 'pending'")
    await sql.execute("UPDATE wakebell.channels SET quota_tried_at = quota_tried_at - interval '1 hour'")
    await plan.plan(ctx, await seen(ctx))
    await drain(ctx)

    told = [title for message in channel.sent for title in message.body.split("|")]
    assert told == [f"item {number}" for number in range(ticks)]
    assert 18 <= spent <= 19
    waits = await sql.fetchval(
        "SELECT max(m.created_at - o.created_at) FROM wakebell.owed AS o "
        "JOIN wakebell.messages AS m ON m.id = o.message_id"
    )
    assert waits <= timedelta(hours=8)
    assert line.asked <= ticks + 1
