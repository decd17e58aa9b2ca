"""A channel that takes nothing now, and an address where nobody is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app.context import Context
from app.domain.errors import Blocked, Moved, QuotaSpent, RateLimited, TemporaryFailure, Unanswered
from app.domain.messages import Body, Message, Receipt
from app.domain.quota import Allowance
from app.domain.reach import Gaps
from app.plans import messages as plan
from app.settings import address_of
from tests.fakes.batches import a_batch, a_service, seen
from tests.handlers.conftest import Channel, Run

HOOK = """
[channels.hook]
kind = "webhook"
url = "https://hooks.test/in"
secret = "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg="
on_uncertain = "{on_uncertain}"

[channels.other]
kind = "webhook"
url = "https://hooks.test/other"
secret = "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg="

[recipients.me]
channel = "hook"

[recipients.you]
channel = "hook"
to = "you"
fallback = "spare"

[recipients.spare]
channel = "other"
language = "th"
"""


@pytest.fixture
def on_uncertain() -> str:
    return "resend"


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path, on_uncertain: str) -> AsyncIterator[Context]:
    async with a_batch(a_service(database_url, tmp_path, HOOK.format(on_uncertain=on_uncertain))) as ctx:
        yield ctx


class Desk:
    """Where messages are composed of one item each."""

    def __init__(self, ctx: Context, sql: asyncpg.Connection, run: Run) -> None:
        self.ctx = ctx
        self.sql = sql
        self.run = run

    async def owe(self, name: str, title: str) -> None:
        await self.sql.execute(
            "WITH added AS (INSERT INTO wakebell.items (source, key, title) VALUES ('board', $1, $1) RETURNING id) "
            "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, $2, '[]' FROM added",
            *(title, name),
        )

    async def compose(self) -> dict[str, Any]:
        await plan.plan(self.ctx, await seen(self.ctx))
        row: dict[str, Any] = await self.run("compose_messages")
        return row

    async def send(self) -> dict[str, Any]:
        """What became of the message's job; its queue's pause is over."""
        await self.sql.execute("UPDATE wakebell.queues SET paused_until = NULL")
        row: dict[str, Any] = await self.run("send_message")
        return row

    async def message(self) -> dict[str, Any]:
        return dict(await self.sql.fetchrow("SELECT * FROM wakebell.messages ORDER BY id DESC LIMIT 1"))

    async def open(self) -> list[str]:
        """Whom something is owed that no message holds."""
        rows = await self.sql.fetch("SELECT recipient FROM wakebell.owed WHERE message_id IS NULL ORDER BY id")
        return [row["recipient"] for row in rows]

    async def pause(self, channel: str = "hook") -> timedelta | None:
        paused: timedelta | None = await self.sql.fetchval(
            "SELECT paused_until - now() FROM wakebell.queues WHERE name = $1", f"wakebell.send.{channel}"
        )
        return paused


@pytest.fixture
def desk(ctx: Context, sql: asyncpg.Connection, run: Run) -> Desk:
    return Desk(ctx, sql, run)


async def test_each_channel_has_a_queue_of_its_own(desk: Desk):
    await desk.owe("me", "a")

    await desk.compose()

    assert (
        await desk.sql.fetchval("SELECT queue FROM wakebell.jobs WHERE type = 'send_message'") == "wakebell.send.hook"
    )


@pytest.mark.parametrize(("asked", "seconds"), [(timedelta(seconds=90), 90), (None, 10), (timedelta(days=30), 86400)])
async def test_a_rate_limit_pauses_the_channel_for_all_and_costs_no_try(
    desk: Desk, channel: Channel, asked: timedelta | None, seconds: int
):
    channel.answer = RateLimited("429", retry_after=asked)
    await desk.owe("me", "a")
    await desk.compose()

    row = await desk.send()

    message = await desk.message()
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert (message["status"], message["attempts"], message["first_tried_at"]) == ("queued", 0, None)
    assert round((await desk.pause() or timedelta()).total_seconds()) == round(row["wait"].total_seconds()) == seconds
    assert await desk.pause("other") is None

    channel.answer = Receipt()
    await desk.send()
    assert (await desk.message())["status"] == "sent"
    assert len({(sent.body, sent.retry_key) for sent in channel.sent}) == 1


async def test_a_short_wait_is_waited_out_in_its_slot_so_that_the_tick_goes_on(desk: Desk, channel: Channel):
    channel.answer = RateLimited("429", retry_after=timedelta(seconds=1))
    await desk.owe("me", "a")
    await desk.compose()

    row = await desk.send()

    assert row["wait"] <= timedelta(0)
    assert (await desk.pause() or timedelta()) <= timedelta(0)


async def test_a_longer_pause_is_not_shortened(desk: Desk):
    reach = desk.ctx.stores.reach

    for seconds in (60, 3600, 10):
        await reach.pause("hook", f"{seconds}", wait=timedelta(seconds=seconds))

    assert round((await desk.pause() or timedelta()).total_seconds()) == 3600
    assert await desk.sql.fetchval("SELECT pause_reason FROM wakebell.queues") == "3600"


async def test_whoever_asks_to_be_left_alone_by_another_status_is_too(desk: Desk, channel: Channel):
    channel.answer = TemporaryFailure("503", retry_after=timedelta(minutes=2))
    await desk.owe("me", "a")
    await desk.compose()

    row = await desk.send()

    assert (row["attempts"], round((await desk.pause() or timedelta()).total_seconds())) == (1, 120)


async def test_a_spent_month_parks_the_channel_and_its_messages_wait_as_new(desk: Desk, channel: Channel):
    channel.answer = QuotaSpent("no more this month")
    for title in ("a", "b"):
        await desk.owe("me", title)
        await desk.compose()
    await desk.send()

    for _ in range(2):  # both are in line
        row = await desk.send()
        assert (row["status"], row["attempts"]) == ("pending", 0)
        assert timedelta(0) < row["wait"] <= timedelta(hours=1)

    assert len(channel.sent) == 1, "nobody is called while it is parked"
    parked = await desk.sql.fetchrow("SELECT * FROM wakebell.channels")
    assert (parked["name"], parked["parked_reason"]) == ("hook", "no more this month")
    assert {row["status"] for row in await desk.sql.fetch("SELECT status FROM wakebell.messages")} == {"queued"}
    await desk.owe("me", "c")
    held = await desk.compose()
    assert (held["status"], held["attempts"]) == ("pending", 0)
    assert await desk.open() == ["me"]

    await desk.sql.execute("UPDATE wakebell.channels SET parked_until = now()")  # the month is over
    channel.answer = Receipt()
    await desk.send()
    assert (await desk.sql.fetchval("SELECT count(*) FROM wakebell.messages WHERE status = 'sent'")) == 1


async def test_room_that_the_provider_shows_opens_the_channel_before_the_month_is_over(desk: Desk, channel: Channel):
    told = [Allowance(limit=200, used=200), Allowance(limit=500, used=200)]

    async def allowance(options: Any, http: httpx.AsyncClient) -> Allowance:
        return told[0]

    channel.answer = QuotaSpent("no more this month")
    await desk.owe("me", "a")
    await desk.compose()
    await desk.send()
    channel.allowance = allowance  # type: ignore[attr-defined]
    channel.answer = Receipt()

    await desk.send()
    assert (await desk.message())["status"] == "queued"
    told.pop(0)
    await desk.send()
    assert (await desk.message())["status"] == "queued", "asked within the hour"
    await desk.sql.execute(
        "UPDATE wakebell.channels SET quota_tried_at = now() - interval '1 hour', "
        "parked_at = parked_at - interval '2 hours'"
    )
    await desk.send()

    assert (await desk.message())["status"] == "sent"
    assert await desk.sql.fetchval("SELECT parked_until FROM wakebell.channels") is None
    assert await desk.pause() is None


async def test_a_parked_channel_sends_its_digests_to_the_fallback_in_the_fallbacks_language(
    desk: Desk, channel: Channel
):
    digests = []

    def compose(digest: Any) -> list[Body]:
        digests.append(digest)
        return [Body(body=digest.language, text="told")]

    channel.bodies = compose
    await desk.owe("you", "a")
    await desk.compose()
    channel.answer = QuotaSpent("no more this month")
    await desk.send()
    assert ((await desk.message())["status"], await desk.open()) == ("failed", ["you"]), "taken back"
    channel.answer = Receipt()

    await desk.compose()
    await desk.send()

    message = await desk.message()
    assert (message["recipient"], message["channel"], message["status"]) == ("spare", "other", "sent")
    assert [digest.language for digest in digests] == ["en", "th"]
    assert await desk.open() == []


async def test_nobody_there_stops_that_recipient_alone_and_what_is_owed_stays_owed(desk: Desk, channel: Channel):
    channel.answer = Blocked("bot was blocked by the user")
    await desk.owe("me", "a")
    await desk.compose()

    row = await desk.send()

    message = await desk.message()
    assert (row["status"], row["last_error"]) == ("cancelled", "bot was blocked by the user")
    assert (message["status"], message["judged_finish"]) == ("failed", message["finished_at"])
    assert desk.ctx.tally["messages.failed"] == 1
    assert await desk.open() == ["me"]

    held = await desk.compose()
    assert (held["status"], round(held["wait"] / timedelta(minutes=1))) == ("pending", 60)
    channel.answer = Receipt()
    await desk.sql.execute("DELETE FROM wakebell.jobs WHERE type = 'compose_messages' AND status = 'pending'")
    await desk.sql.execute("DELETE FROM wakebell.owed")
    await desk.owe("spare", "b")
    await desk.compose()
    await desk.send()
    assert [sent.recipient for sent in channel.sent] == ["me", "spare"]


async def test_a_message_that_was_ready_for_a_blocked_address_is_never_sent(desk: Desk, channel: Channel):
    await desk.owe("me", "a")
    await desk.compose()
    await desk.owe("me", "b")
    await desk.compose()
    channel.answer = Blocked("404")
    await desk.send()

    await desk.send()

    assert len(channel.sent) == 1
    assert await desk.open() == ["me", "me"]
    assert {row["status"] for row in await desk.sql.fetch("SELECT status FROM wakebell.jobs")} == {"done", "cancelled"}


async def test_a_blocked_recipient_is_told_by_its_fallback(desk: Desk, channel: Channel):
    channel.answer = Blocked("404")
    await desk.owe("you", "a")
    await desk.compose()
    await desk.send()
    channel.answer = Receipt()

    await desk.compose()
    await desk.send()

    assert [sent.recipient for sent in channel.sent] == ["you", "spare"]
    assert await desk.open() == []


class TestTheFallbacksOwnQuietHours:
    """Whoever stands in is not woken for it."""

    @pytest.fixture
    async def ctx(self, database_url: str, tmp_path: Path, on_uncertain: str) -> AsyncIterator[Context]:
        now = datetime.now(UTC)
        hours = f"{now - timedelta(hours=2):%H:%M}-{now + timedelta(hours=2):%H:%M}"
        written = HOOK.format(on_uncertain=on_uncertain) + f'quiet_hours = "{hours}"\n'
        async with a_batch(a_service(database_url, tmp_path, written)) as ctx:
            yield ctx

    async def test_hold_what_is_told_in_anothers_place(self, desk: Desk, channel: Channel):
        configured = desk.ctx.settings
        you = configured.recipients["you"]
        await desk.ctx.stores.reach.block(
            address=address_of(configured, you), name="you", channel=you.channel, reason="gone"
        )
        await desk.owe("you", "a")

        assert (await desk.compose())["status"] == "pending"

        assert await desk.open() == ["you"]
        assert channel.sent == []


async def test_with_the_fallback_blocked_as_well_it_is_held(desk: Desk, channel: Channel):
    configured = desk.ctx.settings
    for name in ("you", "spare"):
        recipient = configured.recipients[name]
        await desk.ctx.stores.reach.block(
            address=address_of(configured, recipient), name=name, channel=recipient.channel, reason="gone"
        )
    await desk.owe("you", "a")

    assert (await desk.compose())["status"] == "pending"

    assert await desk.open() == ["you"]


async def test_a_person_can_say_that_somebody_is_there_again(desk: Desk, channel: Channel):
    channel.answer = Blocked("404")
    await desk.owe("me", "a")
    await desk.compose()
    await desk.send()
    await desk.compose()
    me = desk.ctx.settings.recipients["me"]

    assert await desk.ctx.stores.reach.unblock(address=address_of(desk.ctx.settings, me), name="me") is True
    assert await desk.ctx.stores.reach.unblock(address=address_of(desk.ctx.settings, me), name="me") is False

    due = "SELECT run_after <= now() FROM wakebell.jobs WHERE type = 'compose_messages' AND status = 'pending'"
    assert await desk.sql.fetchval(due) is True


async def test_a_message_that_may_have_arrived_is_not_owed_again(desk: Desk, channel: Channel):
    channel.answer = Unanswered("no answer")
    await desk.owe("me", "a")
    await desk.compose()
    await desk.send()
    channel.answer = Blocked("404")

    await desk.send()

    assert (await desk.message())["status"] == "uncertain"
    assert await desk.open() == []


async def test_an_address_that_has_moved_is_followed_at_once_and_from_then_on(
    desk: Desk, channel: Channel, monkeypatch: pytest.MonkeyPatch
):
    async def send(message: Message, options: Any, http: Any) -> Receipt:
        channel.sent.append(message)
        if message.body == "a":
            raise Moved("it has moved", to="new")
        return Receipt()

    def compose(digest: Any) -> list[Body]:
        return [Body(body=f"{digest.to}{digest.items[0].title}", text="told")]

    channel.bodies = compose
    monkeypatch.setattr(channel, "send", send)
    channel.readdressed = lambda body, to: f"{to}:{body}"  # type: ignore[attr-defined]
    for title in ("a", "b"):
        await desk.owe("me", title)
        await desk.compose()

    await desk.send()
    await desk.send()
    await desk.owe("me", "c")
    await desk.compose()

    assert [sent.body for sent in channel.sent] == ["a", "new:a", "new:b"]
    assert (await desk.message())["body"] == "newc"
    assert await desk.sql.fetchval("SELECT count(*) FROM wakebell.messages WHERE status = 'sent'") == 2


@pytest.mark.parametrize("on_uncertain", ["drop"])
async def test_where_no_message_may_come_twice_one_without_an_answer_is_let_be(
    desk: Desk, channel: Channel, on_uncertain: str
):
    channel.REPEATABLE_FOR = None
    channel.answer = Unanswered("no answer")
    await desk.owe("me", "a")
    await desk.compose()

    await desk.send()

    assert (await desk.message())["status"] == "uncertain"
    assert await desk.sql.fetchval("SELECT status FROM wakebell.jobs WHERE type = 'send_message'") == "failed"


@pytest.mark.parametrize("on_uncertain", ["drop"])
async def test_one_that_a_dead_process_had_begun_is_let_be_too(desk: Desk, channel: Channel, on_uncertain: str):
    channel.REPEATABLE_FOR = None
    await desk.owe("me", "a")
    await desk.compose()
    await desk.sql.execute("UPDATE wakebell.messages SET status = 'sending', first_tried_at = now()")

    await desk.send()

    assert channel.sent == []
    assert (await desk.message())["status"] == "uncertain"


@pytest.mark.parametrize("on_uncertain", ["drop", "resend"])
async def test_a_provider_that_knows_the_key_is_asked_again_either_way(desk: Desk, channel: Channel, on_uncertain: str):
    channel.answer = Unanswered("no answer")
    await desk.owe("me", "a")
    await desk.compose()
    await desk.send()
    channel.answer = Receipt(repeated=True)

    await desk.send()

    assert (await desk.message())["status"] == "sent"


async def test_gaps_are_kept_by_turns_that_the_database_gives(desk: Desk):
    reach = desk.ctx.stores.reach
    most = timedelta(seconds=5)

    waits = [await reach.turn_of_channel("hook", gap=timedelta(seconds=2), most=most) for _ in range(6)]

    assert [round(wait.total_seconds()) for wait in waits] == [0, 2, 4, 6, 6, 6], "who would wait too long takes none"


async def test_a_send_whose_turn_is_far_away_goes_back_as_if_it_had_not_been_tried(desk: Desk, channel: Channel):
    channel.GAPS = Gaps(recipient=timedelta(minutes=1))  # type: ignore[attr-defined]
    for title in ("a", "b"):
        await desk.owe("me", title)
        await desk.compose()

    await desk.send()
    row = await desk.send()

    assert len(channel.sent) == 1
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert timedelta(seconds=50) < row["wait"] <= timedelta(minutes=1)
    assert ((await desk.message())["status"], (await desk.message())["first_tried_at"]) == ("queued", None)
