"""Turns what one recipient is owed into frozen messages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel

from app import plugins, ways
from app.domain.jobs import Discard, Settled, Snooze
from app.domain.messages import Digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.context import Context
    from app.domain.jobs import Outcome
    from app.domain.messages import Body, DigestItem
    from app.settings import Recipient, Settings

TIMEOUT = timedelta(seconds=10)

AFTER = frozenset({"fetch_source"})
"""Waits for the round's fetches, so that one tick's news is one message; but not for a source that hangs."""


class Payload(BaseModel):
    """Whom, by the name in the configuration."""

    recipient: str


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """One transaction: the rows, the messages with their bodies and keys, the send jobs, the end of this job.

    Not now, where nothing may go to the recipient or its fallback: then the job waits, and what is owed with it.
    """
    recipient = ctx.settings.recipients.get(payload.recipient)
    if recipient is None:
        return Discard(f'the configuration has no recipient "{payload.recipient}"')
    way = await ways.find(recipient, ctx)
    if way.wait is not None:
        ctx.tally.add("messages.held")
        return Snooze(way.wait)
    composed = await ctx.stores.messages.compose(
        ctx.current_job,
        recipient=recipient.name,
        told=way.recipient.name,
        channel=way.recipient.channel,
        address=way.address,
        compose=composer(ctx.settings, way.recipient),
    )
    ctx.tally.add("messages.composed", composed)
    return Settled()


def composer(settings: Settings, recipient: Recipient) -> Callable[[tuple[DigestItem, ...]], list[Body]]:
    """What makes messages for the recipient out of what they are owed."""
    channel = settings.channels[recipient.channel]
    module = plugins.load("app.channels", channel.kind)

    def compose(items: tuple[DigestItem, ...]) -> list[Body]:
        digest = Digest(items=items, to=recipient.to, language=recipient.language)
        bodies: list[Body] = module.compose(digest, channel.options)
        return bodies

    return compose
