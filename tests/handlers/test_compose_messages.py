from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from app.context import Context
from app.domain.messages import Body, Digest
from app.domain.quiet import QuietHours
from app.domain.wording import Wording
from app.handlers import compose_messages
from app.plans import messages as plan
from tests.fakes.batches import claim, seen
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


async def test_a_tick_asks_for_no_composing_in_quiet_hours_and_tells_when_they_are_over(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    await owe(sql, "a", "b")
    quiet = with_recipient(ctx, quiet_hours=this_hour())

    held = await seen(quiet)
    await plan.plan(quiet, held)

    assert (held.owed, held.held) == (False, 2)
    assert held.next_due_at is not None
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 0

    over = await seen(ctx)
    await plan.plan(ctx, over)
    await run("compose_messages")

    assert (over.owed, over.held, over.tellable) == (True, 0, ("me",))
    assert await sql.fetchval("SELECT body FROM wakebell.messages") == "a|b"


async def test_a_composing_that_was_asked_for_just_before_composes_nothing_in_quiet_hours(
    ctx: Context, sql: asyncpg.Connection, run: Run
):
    await owe(sql, "a")
    await plan.plan(ctx, await seen(ctx))
    quiet = with_recipient(ctx, quiet_hours=this_hour())
    job = await claim(quiet, "compose_messages", own=True)

    await compose_messages.handle(compose_messages.Payload(recipient="me"), quiet.of(job))

    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == "done"
    assert await sql.fetchval("SELECT count(*) FROM wakebell.owed WHERE message_id IS NULL") == 1
    assert (await seen(quiet)).owed is False


async def test_a_day_that_has_had_its_messages_holds_the_rest(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    once = with_recipient(ctx, max_messages_per_day=1)
    await owe(sql, "a")
    await plan.plan(once, await seen(once))
    await run("compose_messages")
    await owe(sql, "b")
    await owe(sql, "c")

    today = await seen(once)
    await sql.execute("UPDATE wakebell.messages SET created_at = created_at - interval '1 day'")
    tomorrow = await seen(once)

    assert (today.owed, today.held) == (False, 2)
    assert (tomorrow.owed, tomorrow.held) == (True, 0)


async def test_a_template_that_fails_is_noted_in_the_summary(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    wording = Wording("{{ item.fields.pay + 1 }}")
    subscriptions = tuple(dataclasses.replace(one, template=wording) for one in ctx.settings.subscriptions)
    templated = with_settings(ctx, subscriptions=subscriptions)
    await owe(sql, "a")
    await sql.execute("""UPDATE wakebell.items SET fields = '{"pay": "much"}'""")
    await plan.plan(templated, await seen(templated))
    job = await claim(templated, "compose_messages", own=True)

    await compose_messages.handle(compose_messages.Payload(recipient="me"), templated.of(job))

    assert await sql.fetchval("SELECT body FROM wakebell.messages") == "a"
    assert templated.tally.errors == ["template of subscription all failed: items are told in the service's own words"]


def this_hour() -> QuietHours:
    """An hour around this instant, in UTC."""
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    return QuietHours((now - hour).time(), (now + hour).time())


def with_recipient(ctx: Context, **changes: Any) -> Context:
    """The same, with this said of "me"."""
    recipients = dict(ctx.settings.recipients)
    recipients["me"] = dataclasses.replace(recipients["me"], **changes)
    return with_settings(ctx, recipients=recipients)


def with_settings(ctx: Context, **changes: Any) -> Context:
    settings = dataclasses.replace(ctx.settings, **changes)
    return dataclasses.replace(ctx, service=dataclasses.replace(ctx.service, settings=settings))
