"""Judges what a tick leaves behind: opens and closes alerts, and has them told."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from app import plugins
from app.domain import alerts
from app.domain.messages import Digest
from app.settings import INBOX
from app.stores.alerts import Telling

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.alerts import Incident

log = logging.getLogger(__name__)


async def judge(ctx: Context) -> bool:
    """Open what has failed, close what has healed; whether there are messages about it to be sent now.

    Jobs of types that nobody handles are told in each summary, and make no tick `partial`: none of its work failed.
    """

    def compose(opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
        return _tellings(ctx, opened, resolved)

    judged = await ctx.stores.alerts.judge(
        sources=list(ctx.settings.sources),
        recipients=list(ctx.settings.recipients),
        compose=compose,
    )
    ctx.tally.add("alerts.open", judged.open)
    ctx.tally.add("alerts.opened", judged.opened)
    ctx.tally.add("alerts.resolved", judged.resolved)
    if judged.parked is not None and judged.parked.count:
        ctx.tally.note(judged.parked.told)
    return judged.opened + judged.resolved > 0


def _tellings(ctx: Context, opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
    """One message to each who is to be told. Whose channel breaks over it, is told in the inbox."""
    told: list[Telling] = []
    broken = False
    for name in ctx.settings.alerts:
        try:
            told += _telling(ctx, name, opened, resolved)
        except Exception:  # a bug of one channel must keep no alert from the others, nor the next tick
            log.exception("alert not composed", extra={"recipient": name})
            ctx.tally.fail(f"channel {ctx.settings.recipients[name].channel} failed")
            broken = True
    if broken and INBOX not in ctx.settings.alerts:
        told += _telling(ctx, INBOX, opened, resolved)
    return told


def _telling(ctx: Context, name: str, opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
    recipient = ctx.settings.recipients[name]
    channel = ctx.settings.channels[recipient.channel]
    note = alerts.told(opened, resolved, service=ctx.settings.service.name, language=recipient.language)
    digest = Digest(note=note, to=recipient.to, language=recipient.language)
    bodies = plugins.load("app.channels", channel.kind).compose(digest, channel.options)
    return [Telling(recipient=name, channel=channel.name, body=body) for body in bodies]
