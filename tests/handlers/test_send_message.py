from __future__ import annotations

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from app.context import Context
from app.domain.errors import PermanentFailure, TemporaryFailure, Unanswered
from app.domain.messages import Receipt
from tests.handlers.conftest import Channel, Run

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
async def message(sql: asyncpg.Connection) -> int:
    """One that is waiting to be sent."""
    found = await sql.fetchval(
        "WITH added AS (INSERT INTO wakebell.messages (recipient, channel, body, text) "
        "VALUES ('me', 'inbox', 'frozen', 'text') RETURNING id), job AS (INSERT INTO wakebell.jobs "
        "(type, payload, queue, unique_key, max_attempts) SELECT 'send_message', "
        "jsonb_build_object('message', id), 'wakebell.send', id::text, 1000 FROM added) SELECT id FROM added",
    )
    return int(found)


async def stored(sql: asyncpg.Connection) -> dict[str, Any]:
    return dict(await sql.fetchrow("SELECT * FROM wakebell.messages"))


async def tried(sql: asyncpg.Connection, *, ago: timedelta, unanswered: bool = False) -> None:
    """An earlier try."""
    await sql.execute(
        "UPDATE wakebell.messages SET status = 'retrying', attempts = 1, first_tried_at = now() - $1::interval, "
        "unanswered = $2",
        ago,
        unanswered,
    )


async def test_the_frozen_bytes_are_sent_once(ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run):
    channel.answer = Receipt(provider_id="r-9", repeated=True)

    assert (await run("send_message"))["status"] == "done"

    [sent] = channel.sent
    row = await stored(sql)
    assert (sent.body, sent.retry_key, sent.recipient) == ("frozen", row["retry_key"], "me")
    assert (row["status"], row["provider_id"], row["repeated"], row["attempts"]) == ("sent", "r-9", True, 1)
    assert (ctx.tally["messages.sent"], ctx.tally.status) == (1, "ok")


async def test_what_may_pass_is_tried_again_with_the_same_bytes_and_key(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    channel.answer = TemporaryFailure("503")
    row = await run("send_message")
    assert (row["status"], row["last_error"]) == ("pending", "503")
    assert timedelta(seconds=50) < row["wait"] <= MINUTE
    assert (await stored(sql))["status"] == "retrying"
    assert ctx.tally["messages.retrying"] == 1
    assert ctx.tally.errors == ["channel inbox failed"]

    channel.answer = Receipt()
    await run("send_message")

    first, second = channel.sent
    assert first == second
    assert (await stored(sql))["status"] == "sent"


@pytest.mark.parametrize(("asked", "minutes"), [(timedelta(hours=2), 120), (timedelta(seconds=1), 1)])
async def test_the_longer_of_two_waits_is_waited(channel: Channel, run: Run, asked: timedelta, minutes: int):
    channel.answer = TemporaryFailure("429", retry_after=asked)

    assert round((await run("send_message"))["wait"] / MINUTE) == minutes


async def test_what_cannot_help_is_given_up(ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run):
    channel.answer = PermanentFailure("blocked by the user")

    row = await run("send_message")

    assert (row["status"], row["last_error"]) == ("failed", "blocked by the user")
    assert ((await stored(sql))["status"], (await stored(sql))["last_error"]) == ("failed", "blocked by the user")
    assert ctx.tally["messages.failed"] == 1


async def test_after_twenty_three_hours_it_is_given_up(sql: asyncpg.Connection, channel: Channel, run: Run):
    channel.answer = TemporaryFailure("503")
    await tried(sql, ago=timedelta(hours=22, minutes=58, seconds=30))
    assert (await run("send_message"))["status"] == "pending"

    await tried(sql, ago=timedelta(hours=22, minutes=59, seconds=30))
    assert (await run("send_message"))["status"] == "failed"
    assert (await stored(sql))["status"] == "failed"


@pytest.mark.parametrize("earlier", [True, False])
async def test_a_message_that_may_have_arrived_is_not_called_failed(
    sql: asyncpg.Connection,
    channel: Channel,
    run: Run,
    earlier: bool,  # noqa: FBT001
):
    channel.answer = TemporaryFailure("503") if earlier else Unanswered("no answer")
    await tried(sql, ago=timedelta(hours=23), unanswered=earlier)

    await run("send_message")

    assert (await stored(sql))["status"] == "uncertain"


async def test_no_answer_is_remembered(sql: asyncpg.Connection, channel: Channel, run: Run):
    channel.answer = Unanswered("no answer")

    await run("send_message")

    assert (await stored(sql))["unanswered"]


async def test_a_key_that_the_provider_has_forgotten_is_not_used_again(
    sql: asyncpg.Connection, channel: Channel, run: Run
):
    channel.REPEATABLE_FOR = timedelta(hours=1)
    await tried(sql, ago=timedelta(hours=1), unanswered=True)

    row = await run("send_message")

    assert channel.sent == []
    assert row["status"] == "failed"
    assert (await stored(sql))["status"] == "uncertain"


@pytest.mark.parametrize(
    ("repeatable", "unanswered"),
    [(timedelta(hours=1), False), (timedelta(hours=3), True), (None, True)],
)
async def test_it_is_sent_again_where_that_is_harmless_or_the_only_way(
    sql: asyncpg.Connection,
    channel: Channel,
    run: Run,
    repeatable: timedelta | None,
    unanswered: bool,  # noqa: FBT001
):
    channel.REPEATABLE_FOR = repeatable
    await tried(sql, ago=timedelta(hours=2), unanswered=unanswered)

    await run("send_message")

    assert len(channel.sent) == 1
    assert (await stored(sql))["status"] == "sent"


async def test_a_message_that_is_over_is_not_sent_again(sql: asyncpg.Connection, channel: Channel, run: Run):
    await sql.execute("UPDATE wakebell.messages SET status = 'sent'")

    row = await run("send_message")

    assert channel.sent == []
    assert row["status"] == "cancelled"


async def test_a_channel_that_is_not_configured_may_be_elsewhere(sql: asyncpg.Connection, channel: Channel, run: Run):
    await sql.execute("UPDATE wakebell.messages SET channel = 'gone'")

    row = await run("send_message")

    assert channel.sent == []
    assert row["status"] == "pending"
    assert 'no channel "gone"' in row["last_error"]
    await tried(sql, ago=timedelta(hours=23))
    assert (await run("send_message"))["status"] == "failed"


async def test_a_channels_bug_is_a_try_that_may_have_arrived(sql: asyncpg.Connection, channel: Channel, run: Run):
    channel.answer = KeyError("hush")

    assert (await run("send_message"))["status"] == "pending"
    row = await stored(sql)
    assert (row["status"], row["last_error"]) == ("retrying", "the channel has a bug (KeyError)")

    channel.answer = Receipt()
    await run("send_message")
    row = await stored(sql)
    assert (row["status"], row["unanswered"]) == ("sent", True)


async def test_a_machine_that_was_suspended_loses_no_message(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    await sql.execute(
        "CREATE FUNCTION public.late() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.lease_until := now() - interval '1 second'; RETURN NEW; END $$",
    )
    await sql.execute(
        "CREATE TRIGGER late BEFORE UPDATE ON wakebell.jobs FOR EACH ROW WHEN (NEW.status = 'running') "
        "EXECUTE FUNCTION public.late()",
    )

    row = await run("send_message")

    assert channel.sent == []
    assert row["status"] == "running"
    assert (await ctx.stores.jobs.rescue()).pending == 1
    assert (await stored(sql))["status"] == "queued"
