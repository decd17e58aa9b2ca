"""A booking's reminder, from the job that tells it to the message that is sent or is not."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.context import Context
from app.domain.bookings import Booking, Start
from app.domain.errors import Blocked, PermanentFailure, QuotaSpent, RateLimited, TemporaryFailure, Unanswered
from app.domain.messages import Body, Digest, Message, Receipt
from app.domain.phrasing import WordingError
from app.domain.quiet import QuietHours
from app.domain.quota import Allowance
from app.plans import reminders as plan
from app.settings import address_of
from tests.fakes.batches import a_batch, a_service, seen
from tests.handlers.conftest import Channel, Run

CONFIGURATION = """
[service]
timezone = "Asia/Bangkok"

[channels.line]
kind = "inbox"

[recipients.me]
channel = "line"
to = "U-me"
language = "th"
fallback = "other"

[recipients.other]
channel = "inbox"
to = "U-other"

[recipients.alone]
channel = "line"
to = "U-alone"

[reminders.day_before]
before = "24h"

[reminders.hour_before]
before = "1h"
"""

STORY = "SELECT recipient, channel, kind, status, text, last_error FROM wakebell.messages ORDER BY id"


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path) -> AsyncIterator[Context]:
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION)) as ctx:
        yield ctx


@pytest.fixture(autouse=True)
def told(channel: Channel) -> list[Digest]:
    digests: list[Digest] = []

    def compose(digest: Digest) -> list[Body]:
        digests.append(digest)
        return [Body(body=f"{digest.to}|{digest.note}", text=str(digest.note))]

    channel.bodies = compose
    return digests


async def book(ctx: Context, ref: str = "b-1", *, hours: float = 12, **more: Any) -> Booking:
    given = {"recipient": "alone", "timezone": "UTC"} | more
    start = Start(at=datetime.now(UTC) + timedelta(hours=hours), zone=UTC)
    booking = Booking(ref=ref, title="Haircut", start=start, **given)
    await ctx.stores.bookings.put(booking)
    return booking


async def tick(ctx: Context) -> int:
    """How many it has queued."""
    before = ctx.tally["reminders.queued"]
    await plan.plan(ctx, await seen(ctx))
    return ctx.tally["reminders.queued"] - before


async def story(sql: asyncpg.Connection) -> list[tuple[str, ...]]:
    return [(row["recipient"], row["status"], row["text"]) for row in await sql.fetch(STORY)]


def with_recipient(ctx: Context, name: str, **changes: Any) -> None:
    recipients = dict(ctx.settings.recipients)
    recipients[name] = dataclasses.replace(recipients[name], **changes)
    object.__setattr__(ctx.settings, "recipients", recipients)


def quiet_for(hours: float) -> QuietHours:
    now = datetime.now(UTC)
    return QuietHours((now - timedelta(hours=1)).time(), (now + timedelta(hours=hours)).time())


async def test_a_booking_is_told_in_the_persons_words_and_sent(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run, told: list[Digest]
):
    booking = await book(ctx, recipient="me", timezone="Asia/Bangkok")

    assert await tick(ctx) == 1
    assert (await run("send_reminder"))["status"] == "done"
    assert (await run("send_message"))["status"] == "done"

    [digest] = told
    assert digest.language == "th"
    assert digest.note is not None
    assert digest.note.startswith("แจ้งเตือน: Haircut ")
    assert await story(sql) == [("me", "sent", digest.note)]
    assert len(channel.sent) == 1
    assert await sql.fetchval("SELECT expires_at FROM wakebell.messages") == booking.start.at
    assert (ctx.tally["reminders.queued"], ctx.tally["messages.composed"], ctx.tally["messages.sent"]) == (1, 1, 1)
    assert await tick(ctx) == 0


async def test_the_bookings_own_language_comes_before_the_recipients(ctx: Context, run: Run, told: list[Digest]):
    await book(ctx, recipient="me", language="vi")
    await tick(ctx)

    await run("send_reminder")

    assert told[0].language == "vi"
    assert str(told[0].note).startswith("Nhắc lịch: ")


async def test_of_two_that_are_past_due_the_nearest_alone_is_told(ctx: Context, sql: asyncpg.Connection, run: Run):
    await book(ctx, hours=0.5)
    await tick(ctx)
    await run("send_reminder")
    await sql.execute("UPDATE wakebell.bookings SET next_at = now()")

    assert await tick(ctx) == 0
    assert len(await story(sql)) == 1


async def test_an_address_on_a_channel_is_written_to_and_named_nowhere(
    ctx: Context, sql: asyncpg.Connection, run: Run, told: list[Digest]
):
    with_inbox_address(ctx)
    await book(ctx, recipient=None, channel="line", address="U-secret", language="th")
    await tick(ctx)

    await run("send_reminder")

    assert told[0].to == "U-secret"
    assert told[0].language == "th"
    assert (await story(sql))[0][0] == "bookings/line"


@pytest.mark.parametrize("change", ["moved", "deleted"])
async def test_a_booking_that_was_moved_or_deleted_is_told_of_no_more(
    ctx: Context, sql: asyncpg.Connection, run: Run, change: str
):
    booking = await book(ctx)
    await tick(ctx)
    if change == "moved":
        await ctx.stores.bookings.put(
            dataclasses.replace(
                booking, start=dataclasses.replace(booking.start, at=booking.start.at + timedelta(days=9))
            )
        )
    else:
        await ctx.stores.bookings.delete(booking.ref)

    row = await run("send_reminder")

    assert (row["status"], row["last_error"]) == ("cancelled", "the booking was moved or deleted")
    assert await story(sql) == []


async def test_a_message_that_waits_is_withdrawn_with_its_booking(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    booking = await book(ctx)
    await tick(ctx)
    await run("send_reminder")
    await ctx.stores.bookings.delete(booking.ref)

    row = await run("send_message")

    assert (row["status"], row["last_error"]) == ("cancelled", "the message is over already")
    assert channel.sent == []


async def test_one_that_was_on_its_way_when_its_booking_moved_is_not_tried_again(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    booking = await book(ctx)
    await tick(ctx)
    await run("send_reminder")
    await sql.execute("UPDATE wakebell.messages SET status = 'sending'")  # by a process that died
    await ctx.stores.bookings.delete(booking.ref)

    await run("send_message")

    assert channel.sent == []
    assert (await story(sql))[0][1] == "uncertain"


async def put_other_words(ctx: Context, booking: Booking) -> None:
    await ctx.stores.bookings.put(dataclasses.replace(booking, title="Haircut with Anna"))


async def put_somebody_else(ctx: Context, booking: Booking) -> None:
    await ctx.stores.bookings.put(dataclasses.replace(booking, recipient="other"))


async def delete_and_put(ctx: Context, booking: Booking) -> None:
    await ctx.stores.bookings.delete(booking.ref)
    await ctx.stores.bookings.put(booking)


def meanwhile(channel: Channel, change: Callable[[], Awaitable[None]], failure: Exception) -> None:
    """The next try fails, after this has happened."""

    async def send(message: Message, options: Any, http: Any) -> Receipt:
        await change()
        raise failure

    channel.send = send  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "changed",
    [
        (put_other_words, TemporaryFailure("500")),
        (put_other_words, PermanentFailure("400")),
        (put_other_words, RateLimited("429")),
        (put_somebody_else, TemporaryFailure("500")),
        (delete_and_put, TemporaryFailure("500")),
    ],
)
async def test_a_booking_that_changes_while_its_reminder_fails_is_told_as_it_is_now(
    ctx: Context,
    sql: asyncpg.Connection,
    channel: Channel,
    run: Run,
    changed: tuple[Callable[[Context, Booking], Awaitable[None]], Exception],
):
    change, failure = changed
    booking = await book(ctx)
    await tick(ctx)
    await run("send_reminder")
    meanwhile(channel, lambda: change(ctx, booking), failure)
    await run("send_message")

    told_again = await run("send_reminder")

    assert told_again["status"] == "done"
    assert [row[1] for row in await story(sql)] == ["failed", "queued"]
    recipient, _, text = (await story(sql))[1]
    assert (recipient, "with Anna" in text) == (
        "other" if change is put_somebody_else else "alone",
        change is put_other_words,
    )
    unjudged = "SELECT count(*) FROM wakebell.messages WHERE judged_finish IS DISTINCT FROM finished_at"
    assert await sql.fetchval(unjudged) == 0
    assert await sql.fetchval("SELECT last_error LIKE '%since%' OR last_error LIKE '%deleted%' FROM wakebell.messages")
    assert await tick(ctx) == 0


async def test_one_that_may_have_arrived_is_not_told_again_though_its_booking_has_changed(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    booking = await book(ctx)
    await tick(ctx)
    await run("send_reminder")
    meanwhile(channel, lambda: put_other_words(ctx, booking), Unanswered("no answer"))

    await run("send_message")

    assert await tick(ctx) == 0
    [message] = await sql.fetch(STORY)
    assert message["status"] == "uncertain"
    assert message["last_error"] == "the booking has changed since; before that: no answer"


async def test_quiet_hours_that_end_in_time_hold_it(ctx: Context, sql: asyncpg.Connection, run: Run):
    with_recipient(ctx, "alone", quiet_hours=quiet_for(2), timezone="UTC")
    await book(ctx, hours=3)
    await tick(ctx)

    row = await run("send_reminder")

    assert row["status"] == "pending"
    assert timedelta(hours=1.9) < row["wait"] <= timedelta(hours=2)
    assert await story(sql) == []


async def test_quiet_hours_that_end_too_late_do_not(ctx: Context, sql: asyncpg.Connection, run: Run):
    with_recipient(ctx, "alone", quiet_hours=quiet_for(3), timezone="UTC")
    await book(ctx, hours=3.1)  # a quarter of an hour between two rings
    await tick(ctx)

    assert (await run("send_reminder"))["status"] == "done"
    assert [told[1] for told in await story(sql)] == ["queued"]


async def test_who_is_not_reached_is_told_by_the_fallback(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    await book(ctx, recipient="me")
    await tick(ctx)
    await run("send_reminder")
    channel.answer = Blocked("nobody is there")
    await run("send_message")

    assert [told[:2] for told in await story(sql)] == [("me", "failed")]
    channel.answer = TemporaryFailure("down")
    assert (await run("send_reminder"))["status"] == "done"

    assert [told[:2] for told in await story(sql)] == [("me", "failed"), ("other", "queued")]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages WHERE judged_finish IS NULL") == 1


async def test_who_is_not_reached_and_has_no_fallback_is_waited_for_until_the_start_and_that_is_told(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    await book(ctx)
    await tick(ctx)
    channel.answer = Blocked("nobody is there")
    await run("send_reminder")
    await run("send_message")
    held = await run("send_reminder")
    await sql.execute("UPDATE wakebell.bookings SET starts_at = now() - interval '1 second'")
    await sql.execute(
        "UPDATE wakebell.jobs SET payload = payload || jsonb_build_object('starts_at', b.starts_at) "
        "FROM wakebell.bookings AS b WHERE type = 'send_reminder' AND status = 'pending'"
    )

    over = await run("send_reminder")

    assert (held["status"], over["status"]) == ("pending", "done")
    [_, last] = await sql.fetch(STORY)
    assert (last["recipient"], last["status"]) == ("alone", "failed")
    assert last["last_error"] == "its time has passed before it could be sent: nobody is there"
    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages WHERE judged_finish IS NULL") == 1


async def test_a_blocked_address_that_only_a_booking_names_is_a_message_that_failed(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    with_inbox_address(ctx)
    await book(ctx, recipient=None, channel="line", address="U-secret")
    await tick(ctx)
    await run("send_reminder")
    channel.answer = Blocked("nobody is there")

    row = await run("send_message")

    assert row["status"] == "failed"
    assert (await story(sql))[0][:2] == ("bookings/line", "failed")
    assert await sql.fetchval("SELECT count(*) FROM wakebell.recipients") == 0


async def test_a_month_that_runs_low_keeps_no_reminder_apart(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    metered(channel, limit=100, used=99)  # digests wait for the next month, and the reserve is for alerts
    await book(ctx)
    await tick(ctx)

    assert (await run("send_reminder"))["status"] == "done"
    assert [told[1] for told in await story(sql)] == ["queued"]


async def test_a_month_that_is_spent_holds_it_or_takes_the_fallback(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    metered(channel, limit=100, used=100)
    with_recipient(ctx, "me", fallback=None)
    await book(ctx, recipient="me")
    await tick(ctx)
    held = await run("send_reminder")

    assert held["status"] == "pending"
    assert held["wait"] <= timedelta(hours=1)
    assert await story(sql) == []


async def test_a_provider_that_refuses_for_the_month_has_it_told_by_the_fallback(
    ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run
):
    await book(ctx, recipient="me")
    await tick(ctx)
    await run("send_reminder")
    channel.answer = QuotaSpent("spent")
    await run("send_message")

    await run("send_reminder")

    assert [told[:2] for told in await story(sql)] == [("me", "failed"), ("other", "queued")]


async def test_a_try_does_not_begin_after_the_start(ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run):
    await book(ctx)
    await tick(ctx)
    await run("send_reminder")
    channel.answer = TemporaryFailure("down")
    await run("send_message")
    await sql.execute("UPDATE wakebell.messages SET expires_at = now()")

    row = await run("send_message")

    assert len(channel.sent) == 1
    assert (row["status"], row["last_error"]) == ("failed", "its time has passed before it could be sent")
    assert [told[1] for told in await story(sql)] == ["failed"]


async def test_what_waits_too_long_in_a_paused_queue_is_ended_by_the_next_tick(
    ctx: Context, sql: asyncpg.Connection, run: Run
):
    await book(ctx)
    await tick(ctx)
    await run("send_reminder")
    await sql.execute("UPDATE wakebell.messages SET expires_at = now()")

    await tick(ctx)

    assert [told[1] for told in await story(sql)] == ["failed"]
    assert ctx.tally["messages.failed"] == 1


async def test_a_next_try_comes_before_the_start(ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run):
    await book(ctx, hours=0.05)
    await tick(ctx)
    await run("send_reminder")
    channel.answer = Unanswered("no answer")
    for _ in range(2):
        row = await run("send_message")

    assert row["wait"] < timedelta(minutes=2)  # and not five


@pytest.mark.parametrize(
    ("visit", "told"),
    [
        ("'gone', 'Asia/Bangkok'", 'there is no recipient "gone"'),
        ("NULL, 'Asia/Bangkok'", "it names neither a recipient nor a channel"),
        ("'me', 'Asia/Bankok'", "its timezone is no time zone that this system knows"),
    ],
)
async def test_a_row_of_a_users_table_that_cannot_be_told_fails_once_and_alone(
    ctx: Context, sql: asyncpg.Connection, run: Run, visit: str, told: str
):
    await sql.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.visits AS SELECT 7 AS ref, 'Massage' AS title, "
        f"now() + interval '3 hours' AS starts_at, who AS \"to\", zone AS timezone "
        f"FROM (VALUES ({visit})) AS v (who, zone)"
    )
    reminder = dataclasses.replace(ctx.settings.reminders["day_before"], query="SELECT * FROM shop.visits")
    object.__setattr__(ctx.settings, "reminders", {"day_before": reminder})
    await tick(ctx)

    row = await run("send_reminder")

    assert row["status"] == "failed"
    assert row["last_error"].startswith("its booking cannot be told: ")
    assert told in row["last_error"]
    assert await tick(ctx) == 0


async def test_a_recipient_who_is_configured_no_longer_fails_the_job_once(
    ctx: Context, sql: asyncpg.Connection, run: Run
):
    await book(ctx, recipient="gone")
    await tick(ctx)

    row = await run("send_reminder")
    await sql.execute("UPDATE wakebell.bookings SET next_at = now()")

    assert row["status"] == "failed"
    assert 'there is no recipient "gone"' in row["last_error"]
    assert ctx.tally.errors == ["reminder day_before failed"]
    assert await tick(ctx) == 0


async def test_a_reminder_that_is_configured_no_longer_is_not_told(ctx: Context, sql: asyncpg.Connection, run: Run):
    await book(ctx)
    await tick(ctx)
    object.__setattr__(ctx.settings, "reminders", {})

    assert (await run("send_reminder"))["status"] == "cancelled"


async def test_a_template_that_fails_is_noted_and_the_services_words_are_told(
    ctx: Context, run: Run, told: list[Digest]
):
    class Broken:
        def text(self, *_: Any, **__: Any) -> str:
            raise WordingError(1, "fails")

    reminders = {
        name: dataclasses.replace(one, wording=Broken())  # type: ignore[arg-type]
        for name, one in ctx.settings.reminders.items()
    }
    object.__setattr__(ctx.settings, "reminders", reminders)
    await book(ctx)
    await tick(ctx)

    await run("send_reminder")

    assert str(told[0].note).startswith("Reminder: Haircut")
    assert ctx.tally.errors == ["text of reminder day_before failed: it is told in the service's own words"]


async def test_a_channel_with_a_bug_costs_an_attempt(ctx: Context, sql: asyncpg.Connection, channel: Channel, run: Run):
    def broken(_: Digest) -> list[Body]:
        raise KeyError("bug")

    channel.bodies = broken
    await book(ctx)
    await tick(ctx)

    row = await run("send_reminder")

    assert (row["status"], row["last_error"]) == ("pending", "KeyError: 'bug'")


async def test_a_fallback_in_its_quiet_hours_is_woken_where_it_would_be_too_late_afterwards(
    ctx: Context, sql: asyncpg.Connection, run: Run
):
    with_recipient(ctx, "other", quiet_hours=quiet_for(5), timezone="UTC")
    await ctx.stores.reach.block(
        address=address_of(ctx.settings, ctx.settings.recipients["me"]), name="me", channel="line", reason="gone"
    )
    await book(ctx, recipient="me", hours=4)
    await tick(ctx)

    assert (await run("send_reminder"))["status"] == "done"


def with_inbox_address(ctx: Context) -> None:
    """The channel `line`, whose kind is made up, takes addresses."""
    channel = ctx.settings.channels["line"]
    object.__setattr__(channel, "kind", "line")


def metered(channel: Channel, *, limit: int, used: int) -> None:
    async def allowance(options: Any, http: Any) -> Allowance:
        return Allowance(limit=limit, used=used)

    channel.allowance = allowance  # type: ignore[attr-defined]
