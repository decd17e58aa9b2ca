"""Judges what a tick leaves behind: opens and closes alerts, and has them told."""

from __future__ import annotations

import dataclasses
import logging
from functools import partial
from typing import TYPE_CHECKING

from app import config_watch, plugins
from app.domain import alerts, quiet, ringing
from app.domain.alerts import OF_A_CHANNEL, OF_A_RECIPIENT, News
from app.domain.bookings import nobody
from app.domain.messages import Digest
from app.settings import INBOX, address_of
from app.stores.alerts import Seen, Telling, Whose

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from app.context import Context
    from app.domain.alerts import Incident
    from app.settings import Recipient, Settings
    from app.stores.looks import Look
    from app.stores.ticks import Tick

log = logging.getLogger(__name__)


async def judge(ctx: Context, seen: Seen | None = None) -> bool:
    """Open what has failed, close what has healed; whether there are messages about it to be sent now.

    Jobs of types that nobody handles are told in each summary, and make no tick `partial`: none of its work failed.
    """
    ways = await _ways(ctx)
    configured = ctx.settings
    judged = await ctx.stores.alerts.judge(
        Whose(
            sources=list(configured.sources),
            recipients=[*configured.recipients, *map(nobody, configured.channels)],
            channels=list(configured.channels),
            addresses=[address_of(configured, recipient) for recipient in configured.recipients.values()],
        ),
        seen=seen or Seen(overdue=overdue_after(configured)),
        compose=lambda news: _tellings(ctx, ways, news),
        repeat=configured.repeat_alerts,
    )
    ctx.tally.add("alerts.open", judged.open)
    ctx.tally.add("alerts.opened", judged.opened)
    ctx.tally.add("alerts.resolved", judged.resolved)
    if judged.parked is not None and judged.parked.count:
        ctx.tally.note(judged.parked.told)
    return judged.told


def overdue_after(configured: Settings) -> timedelta:
    """How long a job may be due before its queue is behind."""
    return ringing.LATE_AFTER * configured.tick.expected_every


def seen_by(ctx: Context, tick: Tick, look: Look, *, before: Look, sound: bool) -> Seen:
    """What this tick has seen itself, by the look it began with and its last one: `sound`, every part of it ran."""
    configured = ctx.settings
    past = before.last_ticks
    signs, well = ringing.judge(past, now=tick.started_at, expected_every=configured.tick.expected_every, sound=sound)
    told = config_watch.look(configured)
    if told.sign is not None:
        signs.append(told.sign)
        ctx.tally.note(f"{told.sign.subject} was changed and cannot be used; `wakebell check` tells why")
    well += [told.well] if told.well is not None else []
    return Seen(signs=signs, well=well, overdue=overdue_after(configured), behind=look.behind)


# --------------------------------------------------------------------------------------------------------- who is told


@dataclasses.dataclass(frozen=True, slots=True)
class _Ways:
    """Who is named in `[alerts] to`, and whose channel or address takes nothing now."""

    settings: Settings
    closed: frozenset[str]

    def audience(self, incident: Incident) -> list[str]:
        """Who hears of it: those whose channel it is not about.

        Where it is about all of theirs, their fallbacks do, and where they have none, the inbox does as well as they.
        """
        shy = self._about(incident)
        wanted = [self.settings.recipients[name] for name in self.settings.alerts]
        away = [recipient for recipient in wanted if recipient.channel not in shy]
        names = [self._reached(recipient) for recipient in away]
        for recipient in wanted if not away else []:
            names += self._otherwise(recipient, shy)
        return list(dict.fromkeys(names))

    def _about(self, incident: Incident) -> set[str]:
        """The channels that it may not be told by."""
        if incident.kind in OF_A_CHANNEL:
            return {incident.subject} - {INBOX}
        recipient = self.settings.recipients.get(incident.subject) if incident.kind in OF_A_RECIPIENT else None
        return {recipient.channel} - {INBOX} if recipient is not None else set()

    def _reached(self, recipient: Recipient) -> str:
        """In the place of one whose channel takes nothing or who is not there, the fallback, or the inbox."""
        if recipient.name not in self.closed:
            return recipient.name
        fallback = recipient.fallback or INBOX
        return INBOX if fallback in self.closed else fallback

    def _otherwise(self, recipient: Recipient, shy: set[str]) -> list[str]:
        other = self.settings.recipients.get(recipient.fallback or "")
        if other is not None and other.name not in self.closed and other.channel not in shy:
            return [other.name]
        return [INBOX] if recipient.name in self.closed else [recipient.name, INBOX]


async def _ways(ctx: Context) -> _Ways:
    configured = ctx.settings
    wanted = [configured.recipients[name] for name in configured.alerts]
    behind = [configured.recipients[recipient.fallback] for recipient in wanted if recipient.fallback is not None]
    asked = [*wanted, *behind]
    shut = await ctx.stores.reach.closed([(each.channel, address_of(configured, each)) for each in asked])
    return _Ways(configured, frozenset(each.name for each, closed in zip(asked, shut, strict=True) if closed))


def _parted(ways: _Ways, news: News) -> dict[str, News]:
    """What each of them is told. The inbox has what did not reach somebody else, unless it was told of it anyway."""
    names: dict[str, None] = dict.fromkeys(ways.settings.alerts)
    heard = {id(incident): ways.audience(incident) for incident in (*news.opened, *news.resolved)}
    names.update(dict.fromkeys(name for audience in heard.values() for name in audience))
    parted = {
        name: News(
            opened=[incident for incident in news.opened if name in heard[id(incident)]],
            resolved=[incident for incident in news.resolved if name in heard[id(incident)]],
        )
        for name in names
    }
    if news.undelivered and INBOX not in ways.settings.alerts:
        parted[INBOX] = dataclasses.replace(parted.get(INBOX, News()), undelivered=news.undelivered)
    return {name: part for name, part in parted.items() if part}


# ------------------------------------------------------------------------------------------------------ what is told


def _tellings(ctx: Context, ways: _Ways, news: News) -> list[Telling]:
    """One message to each who is to be told. Whose channel breaks over it, is told in the inbox."""
    told: list[Telling] = []
    parted = _parted(ways, news)
    broken: list[str] = []
    for name, part in parted.items():
        try:
            told += _telling(ctx, name, part)
        except Exception:  # a bug of one channel must keep no alert from the others, nor the next tick
            log.exception("alert not composed", extra={"recipient": name})
            ctx.tally.fail(f"channel {ctx.settings.recipients[name].channel} failed")
            broken.append(name)
    if broken:
        told += _in_the_inbox(ctx, parted, broken)
    return told


def _in_the_inbox(ctx: Context, parted: Mapping[str, News], broken: list[str]) -> list[Telling]:
    """What those would have been told, as far as the inbox is not told of it already."""
    known = (
        {id(incident) for incident in (*parted[INBOX].opened, *parted[INBOX].resolved)} if INBOX in parted else set()
    )
    missing = News(
        opened=list({id(i): i for name in broken for i in parted[name].opened if id(i) not in known}.values()),
        resolved=list({id(i): i for name in broken for i in parted[name].resolved if id(i) not in known}.values()),
    )
    return _telling(ctx, INBOX, missing) if missing else []


def _telling(ctx: Context, name: str, news: News) -> list[Telling]:
    recipient = ctx.settings.recipients[name]
    channel = ctx.settings.channels[recipient.channel]
    notes = [alerts.told_instead(lost, language=recipient.language) for lost in news.undelivered]
    if news.opened or news.resolved:
        notes.insert(0, alerts.told(news, service=ctx.settings.service.name, language=recipient.language))
    address = address_of(ctx.settings, recipient)
    hours = recipient.quiet_hours if recipient.quiet_alerts else None
    compose = plugins.load("app.channels", channel.kind).compose
    return [
        Telling(
            recipient=name,
            channel=channel.name,
            body=body,
            address=address,
            held_until=partial(quiet.held_until, zone=recipient.zone, hours=hours),
        )
        for note in notes
        for body in compose(
            Digest(note=ctx.settings.mask(note), to=recipient.to, language=recipient.language), channel.options
        )
    ]
