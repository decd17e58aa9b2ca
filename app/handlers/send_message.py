"""Hands one frozen message to its channel."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from app import plugins
from app.domain.errors import PermanentFailure, TemporaryFailure, Unanswered
from app.domain.jobs import Discard, Settled, retry_delay

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.jobs import Outcome
    from app.stores.messages import Try

log = logging.getLogger(__name__)

TIMEOUT = timedelta(seconds=20)

LEAST = timedelta(seconds=10)
"""A send that is cut in the middle of its request may have arrived: on channels without an idempotency key its repeat
would be a second message."""

TRIED_FOR = timedelta(hours=23)
"""After its first try. LINE forgets an idempotency key after 24 hours: a later repeat could arrive twice."""


class Payload(BaseModel):
    """Which message, by its id."""

    message: int


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """Commit that it is being sent; send; commit what came of it together with the end of the job."""
    trying = await ctx.stores.messages.start(ctx.current_job, payload.message)
    if trying is None:
        return Discard("the message is over already")
    channel = ctx.settings.channels.get(trying.message.channel)
    if channel is None:  # or not yet: another replica may have a newer configuration
        unknown = TemporaryFailure(f'the configuration has no channel "{trying.message.channel}"')
        return await _postpone(trying, unknown, ctx)
    module = plugins.load("app.channels", channel.kind)
    if _too_late(trying, module.REPEATABLE_FOR):
        return await _give_up(trying, "no answer came for so long that another try could arrive twice", ctx)
    return await _send(trying, module, channel.options, ctx)


async def _send(trying: Try, module: Any, options: Any, ctx: Context) -> Outcome:
    try:
        receipt = await module.send(trying.message, options, ctx.http)
    except TemporaryFailure as failure:
        return await _postpone(trying, failure, ctx)
    except PermanentFailure as failure:
        return await _give_up(trying, str(failure), ctx)
    except Exception as bug:  # the channel's: it ends as any failure does, told after 23 hours and not tried for weeks
        log.exception("channel crashed", extra=_about(trying))
        return await _postpone(trying, Unanswered(f"the channel has a bug ({type(bug).__name__})"), ctx)
    await ctx.stores.messages.finish_sent(ctx.current_job, trying.message.id, receipt)
    ctx.tally.add("messages.sent")
    return Settled()


def _too_late(trying: Try, repeatable_for: timedelta | None) -> bool:
    """Whether the provider may have the message and no longer knows its key."""
    return trying.unanswered and repeatable_for is not None and trying.age >= repeatable_for


async def _postpone(trying: Try, failure: TemporaryFailure, ctx: Context) -> Outcome:
    job = ctx.current_job
    usual = retry_delay(job.attempt - job.crashes, jitter=ctx.random.random())
    delay = max(usual, failure.retry_after or usual)
    if trying.age + delay > TRIED_FOR:
        return await _give_up(trying, str(failure), ctx, unanswered=isinstance(failure, Unanswered))
    log.warning("message postponed", extra={**_about(trying), "reason": str(failure)})
    await ctx.stores.messages.postpone(
        job,
        trying.message.id,
        str(failure),
        delay=delay,
        unanswered=isinstance(failure, Unanswered),
    )
    ctx.tally.add("messages.retrying")
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
