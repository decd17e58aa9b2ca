"""Judges what a tick leaves behind: opens and closes alerts, and has them told."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from app import plugins
from app.domain import alerts, quiet
from app.domain.messages import Digest
from app.settings import INBOX, address_of
from app.stores.alerts import Telling

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.alerts import Incident

log = logging.getLogger(__name__)


async def judge(ctx: Context) -> bool:
    """Open what has failed, close what has healed; whether there are messages about it to be sent now.

    Jobs of types that nobody handles are told in each summary, and make no tick `partial`: none of its work failed.
    """
    names = await _reachable(ctx)

    def compose(opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
        return _tellings(ctx, names, opened, resolved)

    configured = ctx.settings
    judged = await ctx.stores.alerts.judge(
        sources=list(configured.sources),
        recipients=list(configured.recipients),
        channels=list(configured.channels),
        addresses=[address_of(configured, recipient) for recipient in configured.recipients.values()],
        compose=compose,
    )
    ctx.tally.add("alerts.open", judged.open)
    ctx.tally.add("alerts.opened", judged.opened)
    ctx.tally.add("alerts.resolved", judged.resolved)
    if judged.parked is not None and judged.parked.count:
        ctx.tally.note(judged.parked.told)
    return judged.opened + judged.resolved > 0


async def _reachable(ctx: Context) -> list[str]:
    """Who is told: in the place of one whose channel takes nothing or who is not there, the fallback, or the inbox."""
    configured = ctx.settings
    wanted = [configured.recipients[name] for name in configured.alerts]
    behind = [configured.recipients[recipient.fallback or INBOX] for recipient in wanted]
    asked = [(recipient.channel, address_of(configured, recipient)) for recipient in (*wanted, *behind)]
    closed = await ctx.stores.reach.closed(asked)
    names: dict[str, None] = {}
    for place, (recipient, other) in enumerate(zip(wanted, behind, strict=True)):
        if not closed[place]:
            names[recipient.name] = None
        else:
            names[INBOX if closed[len(wanted) + place] else other.name] = None
    return list(names)


def _tellings(ctx: Context, names: list[str], opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
    """One message to each who is to be told. Whose channel breaks over it, is told in the inbox."""
    told: list[Telling] = []
    broken = False
    for name in names:
        try:
            told += _telling(ctx, name, opened, resolved)
        except Exception:  # a bug of one channel must keep no alert from the others, nor the next tick
            log.exception("alert not composed", extra={"recipient": name})
            ctx.tally.fail(f"channel {ctx.settings.recipients[name].channel} failed")
            broken = True
    if broken and INBOX not in names:
        told += _telling(ctx, INBOX, opened, resolved)
    return told


def _telling(ctx: Context, name: str, opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
    recipient = ctx.settings.recipients[name]
    channel = ctx.settings.channels[recipient.channel]
    note = alerts.told(opened, resolved, service=ctx.settings.service.name, language=recipient.language)
    digest = Digest(note=note, to=recipient.to, language=recipient.language)
    bodies = plugins.load("app.channels", channel.kind).compose(digest, channel.options)
    address = address_of(ctx.settings, recipient)
    hours = recipient.quiet_hours if recipient.quiet_alerts else None
    return [
        Telling(
            recipient=name,
            channel=channel.name,
            body=body,
            address=address,
            held_until=partial(quiet.held_until, zone=recipient.zone, hours=hours),
        )
        for body in bodies
    ]
