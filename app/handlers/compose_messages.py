"""Turns what one recipient is owed into frozen messages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel

from app import ways
from app.composing import Composer, most_items
from app.domain import watches
from app.domain.jobs import Discard, Settled, Snooze
from app.domain.reach import LOOK_AGAIN
from app.settings import watched

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.jobs import Outcome

TIMEOUT = timedelta(seconds=10)

AFTER = frozenset({"fetch_source"})
"""Waits for the round's fetches, so that one tick's news is one message; but not for a source that hangs."""


KEPT = timedelta(days=1)
"""What is owed to somebody who may not be told, by this configuration: another replica may have a newer one."""


class Payload(BaseModel):
    """Whom, by the name in the configuration, or of a conversation."""

    recipient: str


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """One transaction: the rows, the messages with their bodies and keys, the send jobs, the end of this job.

    Not now, where nothing may go to the recipient or its fallback: then the job waits, and what is owed with it. In
    quiet hours, or on a day that has had its messages, the job is done without one, and a later tick plans another.
    """
    recipient = ctx.settings.recipients.get(payload.recipient)
    if recipient is None and (conversation := watches.conversation_of(payload.recipient)) is not None:
        recipient = watched.listener(ctx.settings, await ctx.stores.watches.listener(conversation))
        if recipient is None:
            return await _nobody_watches(payload.recipient, ctx)
    if recipient is None:
        return Discard(f'the configuration has no recipient "{payload.recipient}"')
    way = await ways.find(recipient, ctx)
    if way.wait is not None:
        return Snooze(way.wait)
    composed = await ctx.stores.messages.compose(
        ctx.current_job,
        recipient=recipient.name,
        told=way.recipient.name,
        channel=way.recipient.channel,
        address=way.address,
        compose=Composer(ctx.settings, recipient, reader=way.recipient, note=ctx.tally.note),
        most=most_items(ctx.settings, way.recipient),
        most_a_day=recipient.max_messages_per_day,
    )
    ctx.tally.add("messages.composed", composed)
    return Settled()


async def _nobody_watches(recipient: str, ctx: Context) -> Outcome:
    """Nobody in that conversation may be told."""
    left = await ctx.stores.watches.drop(recipient, keep=KEPT)
    return Snooze(LOOK_AGAIN) if left else Discard("nobody there watches anything, or may be told")
