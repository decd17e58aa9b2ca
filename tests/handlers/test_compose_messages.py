from __future__ import annotations

import asyncpg

from app.context import Context
from app.domain.messages import Body, Digest
from app.plans import messages as plan
from tests.fakes.batches import seen
from tests.handlers.conftest import Channel, Run


async def owe(sql: asyncpg.Connection, *titles: str, to: str = "me") -> None:
    for title in titles:
        await sql.execute(
            "WITH added AS (INSERT INTO wakebell.items (source, key, title) VALUES ('board', $1, $1) RETURNING id) "
            "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, $2, '[\"all\"]' FROM added",
            title,
            to,
        )


async def test_what_is_owed_is_composed_by_the_channel(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    digests: list[Digest] = []

    def compose(digest: Digest) -> list[Body]:
        digests.append(digest)
        return [Body(body="one", text="1"), Body(body="two", text="2")]

    channel.bodies = compose
    await owe(sql, "a", "b")
    await plan.plan(ctx, await seen(ctx))

    assert (await run("compose_messages"))["status"] == "done"

    [digest] = digests
    assert [item.title for item in digest.items] == ["a", "b"]
    assert (digest.to, digest.language) == ("", "en")
    rows = await sql.fetch("SELECT recipient, channel, status, body FROM wakebell.messages ORDER BY id")
    assert [tuple(row) for row in rows] == [("me", "inbox", "queued", "one"), ("me", "inbox", "queued", "two")]
    assert ctx.tally["messages.composed"] == 2


async def test_nothing_owed_is_nothing_composed(ctx: Context, sql: asyncpg.Connection, run: Run):
    await owe(sql, "a")
    await plan.plan(ctx, await seen(ctx))
    await sql.execute("DELETE FROM wakebell.owed")

    assert (await run("compose_messages"))["status"] == "done"
    assert ctx.tally["messages.composed"] == 0


async def test_a_recipient_who_is_configured_no_longer_is_not_written_to(
    ctx: Context, sql: asyncpg.Connection, run: Run
):
    await owe(sql, "a")
    await plan.plan(ctx, await seen(ctx))
    await sql.execute("""UPDATE wakebell.jobs SET payload = '{"recipient": "gone"}'""")

    row = await run("compose_messages")

    assert row["status"] == "cancelled"
    assert 'no recipient "gone"' in row["last_error"]


async def test_a_channels_bug_is_an_attempt_that_failed_and_keeps_what_is_owed(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    def broken(digest: Digest) -> list[Body]:
        raise KeyError("bug")

    channel.bodies = broken
    await owe(sql, "a")
    await plan.plan(ctx, await seen(ctx))

    row = await run("compose_messages")

    assert (row["status"], row["last_error"]) == ("pending", "KeyError: 'bug'")
    assert await sql.fetchval("SELECT count(*) FROM wakebell.owed WHERE message_id IS NULL") == 1
