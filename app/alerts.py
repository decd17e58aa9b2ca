"""Judges what a tick leaves behind: opens and closes alerts, and has them told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import plugins
from app.domain import alerts
from app.domain.messages import Digest
from app.stores.alerts import Telling

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.alerts import Incident


async def judge(ctx: Context) -> bool:
    """Open what has failed, close what has healed; whether there are messages about it to be sent now."""

    def compose(opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
        return [telling for name in ctx.settings.alerts for telling in _tellings(ctx, name, opened, resolved)]

    judged = await ctx.stores.alerts.judge(sources=list(ctx.settings.sources), compose=compose)
    ctx.tally.add("alerts.open", judged.open)
    ctx.tally.add("alerts.opened", judged.opened)
    ctx.tally.add("alerts.resolved", judged.resolved)
    return judged.opened + judged.resolved > 0


def _tellings(ctx: Context, name: str, opened: list[Incident], resolved: list[Incident]) -> list[Telling]:
    recipient = ctx.settings.recipients[name]
    channel = ctx.settings.channels[recipient.channel]
    note = alerts.told(opened, resolved, service=ctx.settings.service.name, language=recipient.language)
    digest = Digest(note=note, to=recipient.to, language=recipient.language)
    bodies = plugins.load("app.channels", channel.kind).compose(digest, channel.options)
    return [Telling(recipient=name, channel=channel.name, body=body) for body in bodies]
