"""Hands one frozen message to its channel."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from app import plugins, ways
from app.domain import quota, reach, watches
from app.domain.errors import (
    Blocked,
    DatabaseUnavailable,
    Moved,
    PermanentFailure,
    QuotaSpent,
    RateLimited,
    TemporaryFailure,
    Unanswered,
)
from app.domain.jobs import Discard, Settled, Snooze, retry_delay
from app.settings import address_of
from app.settings.watched import names_at
from app.stores.messages import Obstacle
from app.stores.reminders import TIME_PASSED

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.jobs import Outcome
    from app.domain.messages import Message, Receipt
    from app.settings import ChannelSettings
    from app.stores.messages import Try

log = logging.getLogger(__name__)

TIMEOUT = timedelta(seconds=20)

LEAST = timedelta(seconds=10)
"""A send that is cut in the middle of its request may have arrived: on channels without an idempotency key its repeat
would be a second message."""

TRIED_FOR = timedelta(hours=23)
"""After its first try. LINE forgets an idempotency key after 24 hours: a later repeat could arrive twice."""

LAST_SHARE = 0.5
"""Of the time that is left to a message which is of no use later: what its next try waits at most."""

LEAST_DELAY = timedelta(minutes=1)

SHORT = timedelta(seconds=5)
"""A wait that is waited out in the job's own slot, while other channels go on; for a longer one the job goes back."""


class Payload(BaseModel):
    """Which message, by its id."""

    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """One try."""

    trying: Try
    channel: ChannelSettings
    module: Any
    ctx: Context

    @property
    def address(self) -> str | None:
        """Fingerprint of where it goes. Of a message whose release kept none, where its recipient is by now."""
        if self.trying.address is not None:
            return self.trying.address
        recipient = self.ctx.settings.recipients.get(self.trying.message.recipient)
        return None if recipient is None else address_of(self.ctx.settings, recipient)

    @property
    def frozen(self) -> Message:
        """As it was composed, but for an address that has moved since."""
        message, to = self.trying.message, self.trying.moved_to
        return message if to is None else self.readdressed(to)

    def readdressed(self, to: str) -> Message:
        message = self.trying.message
        readdressed = getattr(self.module, "readdressed", None)
        return message if readdressed is None else dataclasses.replace(message, body=readdressed(message.body, to))


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """Commit that it is being sent; send; commit what came of it together with the end of the job."""
    trying = await ctx.stores.messages.start(ctx.current_job, payload.message)
    if isinstance(trying, Obstacle) and not (trying.blocked or trying.expired) and await _reopened(trying, ctx):
        trying = await ctx.stores.messages.start(ctx.current_job, payload.message)
    match trying:
        case None:
            return Discard("the message is over already")
        case Obstacle():
            return await _not_begun(trying, ctx)
    channel = ctx.settings.channels.get(trying.message.channel)
    if channel is None:  # or not yet: another replica may have a newer configuration
        unknown = TemporaryFailure(f'the configuration has no channel "{trying.message.channel}"')
        return await _postpone(trying, unknown, ctx)
    module = plugins.load("app.channels", channel.kind)
    if (reason := _too_late(trying, module.REPEATABLE_FOR, channel)) is not None:
        return await _give_up(trying, reason, ctx)
    sending = _Sending(trying=trying, channel=channel, module=module, ctx=ctx)
    if (wait := await _turn(sending)) > SHORT:
        await ctx.stores.messages.set_back(ctx.current_job, trying.message.id, "its turn has not come", delay=wait)
        return Settled()
    return await _send(sending, after=wait)


async def _send(sending: _Sending, *, after: timedelta) -> Outcome:
    trying, ctx = sending.trying, sending.ctx
    await asyncio.sleep(after.total_seconds())
    try:
        receipt = await _handed_over(sending)
    except DatabaseUnavailable:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends as a failure does, and is told where it is none
        return await _failed(sending, error)
    await ctx.stores.messages.finish_sent(ctx.current_job, trying.message.id, receipt)
    ctx.tally.add("messages.sent")
    return Settled()


async def _handed_over(sending: _Sending) -> Receipt:
    """The receipt. An address that turns out to have moved is followed at once, and from then on."""
    ctx, options = sending.ctx, sending.channel.options
    try:
        receipt: Receipt = await sending.module.send(sending.frozen, options, ctx.http)
    except Moved as moved:
        if sending.address is not None:
            await ctx.stores.reach.move(
                address=sending.address,
                name=sending.trying.message.recipient,
                channel=sending.channel.name,
                to=moved.to,
            )
        log.info("recipient moved", extra=_about(sending.trying))
        receipt = await sending.module.send(sending.readdressed(moved.to), options, ctx.http)
    return receipt


async def _turn(sending: _Sending) -> timedelta:
    """How long to wait for the gaps that the channel wants kept; the turn is taken with it."""
    gaps = getattr(sending.module, "GAPS", None)
    if gaps is None:
        return reach.NO_GAP
    waits = [reach.NO_GAP]
    stored, name = sending.ctx.stores.reach, sending.channel.name
    if gaps.recipient and sending.address is not None:
        recipient = sending.trying.message.recipient
        waits += [
            await stored.turn_of_recipient(
                address=sending.address, name=recipient, channel=name, gap=gaps.recipient, most=SHORT
            )
        ]
    if gaps.channel and max(waits) <= SHORT:
        waits += [await stored.turn_of_channel(name, gap=gaps.channel, most=SHORT)]
    return max(waits)


# ---------------------------------------------------------------------------------------------------- what came of it


def _too_late(trying: Try, repeatable_for: timedelta | None, channel: ChannelSettings) -> str | None:
    """Why a message that may have arrived is not sent again; None: it has not, or that is harmless or wanted."""
    if not trying.unanswered:
        return None
    if _dropped(channel, repeatable_for):
        return "no answer came, and the channel is not to send twice"
    if repeatable_for is not None and trying.age >= repeatable_for:
        return "no answer came for so long that another try could arrive twice"
    return None


def _dropped(channel: ChannelSettings, repeatable_for: timedelta | None) -> bool:
    """Whether a message that may have arrived is let be. Where its provider knows its key, repeating it is harmless."""
    return repeatable_for is None and channel.on_uncertain == "drop"


async def _failed(sending: _Sending, error: Exception) -> Outcome:
    trying, ctx = sending.trying, sending.ctx
    match error:
        case RateLimited() | QuotaSpent():
            return await _refused(sending, error)
        case Blocked():
            return await _block(sending, str(error))
        case PermanentFailure():
            return await _give_up(trying, str(error), ctx)
        case TemporaryFailure():
            return await _not_now(sending, error)
    # The channel's bug: it is told after 23 hours, and not tried for weeks.
    log.error("channel crashed", extra=_about(trying), exc_info=error)
    return await _not_now(sending, Unanswered(f"the channel has a bug ({type(error).__name__})"))


async def _not_now(sending: _Sending, failure: TemporaryFailure) -> Outcome:
    trying, ctx = sending.trying, sending.ctx
    if isinstance(failure, Unanswered) and _dropped(sending.channel, sending.module.REPEATABLE_FOR):
        return await _give_up(trying, str(failure), ctx, unanswered=True)
    if failure.retry_after is not None:  # it asks that of everybody
        await ctx.stores.reach.pause(sending.channel.name, str(failure), wait=reach.pause(failure.retry_after))
    return await _postpone(trying, failure, ctx)


async def _refused(sending: _Sending, failure: TemporaryFailure) -> Outcome:
    """Nothing goes by this channel for a while, whichever replica has it. The try does not count."""
    trying, ctx, reason = sending.trying, sending.ctx, str(failure)
    wait = reach.pause(failure.retry_after)
    if isinstance(failure, QuotaSpent):
        wait = await _park(sending, reason)
    await ctx.stores.reach.pause(sending.channel.name, reason, wait=wait)
    log.warning("channel pauses", extra={**_about(trying), "reason": reason, "seconds": wait.total_seconds()})
    ctx.tally.add("messages.retrying")
    ctx.tally.fail(f"channel {trying.message.channel} failed")
    if isinstance(failure, QuotaSpent) and not trying.unanswered and _has_fallback(trying.message.recipient, ctx):
        await ctx.stores.messages.take_back(ctx.current_job, trying.message.id, reason)
        return Settled()
    if wait <= min(SHORT, ctx.deadline.left - LEAST):  # in its slot, so that the tick goes on with the others after it
        await asyncio.sleep(wait.total_seconds())
        wait = reach.NO_GAP
    await ctx.stores.messages.set_back(ctx.current_job, trying.message.id, reason, delay=wait)
    return Settled()


async def _park(sending: _Sending, reason: str) -> timedelta:
    """Until the month is over, unless there is room before: how long until it is looked for."""
    stored, name = sending.ctx.stores.reach, sending.channel.name
    standing = await stored.standing(channel=name, address="", recipient="")
    _, ends = quota.month_of(standing.now)
    await stored.park(name, reason, until=ends)
    return min(reach.LOOK_AGAIN, ends - standing.now)


async def _reopened(obstacle: Obstacle, ctx: Context) -> bool:
    channel = ctx.settings.channels.get(obstacle.channel)
    return channel is not None and await ways.reopened(channel, ctx)


async def _not_begun(obstacle: Obstacle, ctx: Context) -> Outcome:
    """Nothing was tried: nobody is at its address, or its channel takes nothing."""
    messages, job, reason = ctx.stores.messages, ctx.current_job, obstacle.blocked or str(obstacle.parked)
    if obstacle.expired or (obstacle.blocked and _unnamed(obstacle.kind, obstacle.recipient, ctx)):
        return await _end(obstacle, (obstacle.called_off or TIME_PASSED) if obstacle.expired else reason, ctx)
    fallback = obstacle.kind != "alert" and _has_fallback(obstacle.recipient, ctx)
    if obstacle.blocked is None and (obstacle.unanswered or not fallback):
        await ctx.stores.reach.pause(obstacle.channel, reason, wait=reach.LOOK_AGAIN)
        return Snooze(reach.LOOK_AGAIN)
    ctx.tally.add("messages.failed" if obstacle.blocked else "messages.held")
    if obstacle.unanswered:
        await messages.give_up(job, obstacle.message_id, reason, uncertain=True)
    else:
        await messages.take_back(job, obstacle.message_id, reason)
    if obstacle.blocked and (conversation := watches.conversation_of(obstacle.recipient)) is not None:
        await ctx.stores.watches.leave(obstacle.recipient, conversation)
    return Settled()


async def _end(obstacle: Obstacle, reason: str, ctx: Context) -> Outcome:
    """It is of no use any more, or nobody will ever get it: given up, and told as any message that failed."""
    await ctx.stores.messages.give_up(ctx.current_job, obstacle.message_id, reason, uncertain=obstacle.unanswered)
    ctx.tally.add("messages.failed")
    ctx.tally.fail(f"channel {obstacle.channel} failed")
    return Settled()


def _unnamed(kind: str, name: str, ctx: Context) -> bool:
    """Whether a booking alone names whom it is for, by an address: nobody stands in for them."""
    return kind == "reminder" and name not in ctx.settings.recipients


def _has_fallback(name: str, ctx: Context) -> bool:
    recipient = ctx.settings.recipients.get(name)
    return recipient is not None and recipient.fallback is not None


async def _block(sending: _Sending, reason: str) -> Outcome:
    """That recipient alone is stopped, and what it was to hear is owed to it again."""
    trying, ctx = sending.trying, sending.ctx
    if _unnamed(trying.kind, trying.message.recipient, ctx):
        return await _give_up(trying, reason, ctx)
    if (conversation := watches.conversation_of(trying.message.recipient)) is not None:
        return await _gone(sending, reason, conversation)
    if sending.address is not None:
        await ctx.stores.reach.block(
            address=sending.address, name=trying.message.recipient, channel=sending.channel.name, reason=reason
        )
    if trying.unanswered or sending.address is None:
        return await _give_up(trying, reason, ctx)
    log.error("recipient blocked", extra={**_about(trying), "reason": reason})
    await ctx.stores.messages.take_back(ctx.current_job, trying.message.id, reason)
    ctx.tally.add("messages.failed")
    ctx.tally.fail(f"channel {trying.message.channel} failed")
    return Settled()


async def _gone(sending: _Sending, reason: str, conversation: int) -> Outcome:
    """Whoever watched by a command in a chat has blocked the bot, which is no fault: nothing waits for them."""
    trying, ctx, name = sending.trying, sending.ctx, sending.trying.message.recipient
    if sending.address is not None:
        known = names_at(ctx.settings, sending.address)
        await ctx.stores.reach.block(
            address=sending.address,
            name=known[0] if known else name,
            channel=sending.channel.name,
            reason=reason,
            alert=bool(known),
        )
    await ctx.stores.messages.take_back(ctx.current_job, trying.message.id, reason)
    await ctx.stores.watches.leave(name, conversation)
    log.info("watcher gone", extra={**_about(trying), "reason": reason})
    return Settled()


async def _postpone(trying: Try, failure: TemporaryFailure, ctx: Context) -> Outcome:
    job = ctx.current_job
    usual = retry_delay(job.attempt - job.crashes, jitter=ctx.random.random())
    delay = max(usual, failure.retry_after or usual)
    if trying.left is not None:
        delay = max(min(delay, trying.left * LAST_SHARE), LEAST_DELAY)
    if trying.age + delay > TRIED_FOR:
        return await _give_up(trying, str(failure), ctx, unanswered=isinstance(failure, Unanswered))
    log.warning("message postponed", extra={**_about(trying), "reason": str(failure)})
    waits = await ctx.stores.messages.postpone(
        job,
        trying.message.id,
        str(failure),
        delay=delay,
        unanswered=isinstance(failure, Unanswered),
    )
    ctx.tally.add("messages.retrying", int(waits))
    ctx.tally.fail(f"channel {trying.message.channel} failed")
    return Settled()


async def _give_up(trying: Try, reason: str, ctx: Context, *, unanswered: bool = False) -> Outcome:
    log.error("message given up", extra={**_about(trying), "reason": reason})
    uncertain = trying.unanswered or unanswered
    await ctx.stores.messages.give_up(ctx.current_job, trying.message.id, reason, uncertain=uncertain)
    ctx.tally.add("messages.failed")
    ctx.tally.fail(f"channel {trying.message.channel} failed")
    return Settled()


def _about(trying: Try) -> dict[str, Any]:
    return {"message_id": trying.message.id, "recipient": trying.message.recipient, "channel": trying.message.channel}
