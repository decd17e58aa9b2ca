"""Turns what is due of a booking into a frozen message.

    passed: told --------------------------------------------> done
      |-- quiet hours that end in time, nobody to be reached now --> later, before the start
      |-- the start has passed -------------------------------> a message that has failed
      `-- else -----------------------------------------------> a message, and the job that sends it

Whom a booking is for is named by a recipient, or stands for itself as `bookings/<channel>`: never by an address.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from app import plugins, ways
from app.domain import quiet, reminding
from app.domain.bookings import course, named
from app.domain.errors import QueryFailure, TemporaryFailure
from app.domain.jobs import Discard, Done, Settled, Snooze
from app.domain.messages import Body, Digest
from app.domain.phrasing import WordingError
from app.settings import address_of
from app.settings.booked import booked, language_of
from app.stores.reminders import TIME_PASSED, Telling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.context import Context
    from app.domain.bookings import Booking, Instant
    from app.domain.jobs import Outcome
    from app.settings import Recipient, ReminderSettings
    from app.stores.reminders import Found
    from app.ways import Way

log = logging.getLogger(__name__)

TIMEOUT = timedelta(seconds=15)

TRIES = 3
"""How often a booking is read again that somebody changes while its reminder is composed."""

SHORTEST = timedelta(seconds=1)


class Payload(BaseModel):
    """A booking's start. `origin` names the first reminder with the query that it comes from; empty: none."""

    booking: str
    starts_at: datetime
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """What is to be told."""

    payload: Payload
    found: Found
    passed: Sequence[Instant]
    reminder: ReminderSettings
    ctx: Context

    @property
    def booking(self) -> Booking:
        return self.found.booking

    @property
    def left(self) -> timedelta:
        return self.passed[0].expires_at - self.found.now

    @property
    def latest(self) -> datetime:
        """What is held until then is told by the next ring before the start."""
        return self.passed[0].expires_at - self.ctx.settings.tick.expected_every


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """One transaction: the message, its send job, the marks, the end of this job; the booking stands meanwhile."""
    for _ in range(TRIES):
        due = await _due(payload, ctx)
        if not isinstance(due, _Due):
            return due
        outcome = await _told(due)
        if outcome is not None:
            return outcome
    raise TemporaryFailure("the booking was changed again and again")


async def _due(payload: Payload, ctx: Context) -> _Due | Outcome:
    reminders = reminders_of(ctx, payload.origin)
    if not reminders:
        return Discard("the configuration has no such reminder any more")
    found = await _found(payload, reminders[0], ctx)
    if found is None:
        return Discard("the booking was moved or deleted")
    passed = course(found.booking.start, [one.rule for one in reminders], found.now).passed
    if not passed:
        return Discard("the configuration has another time for it")
    if passed[0].rule.name in found.told:
        return Done()
    reminder = ctx.settings.reminders[passed[0].rule.name]
    return _Due(payload=payload, found=found, passed=passed, reminder=reminder, ctx=ctx)


def reminders_of(ctx: Context, origin: str) -> list[ReminderSettings]:
    """Those of the bookings that the service keeps, or those that share the query of `origin`."""
    configured = ctx.settings.reminders
    if not origin:
        return [one for one in configured.values() if one.query is None]
    leader = configured.get(origin)
    if leader is None or leader.query is None:
        return []
    return [one for one in configured.values() if one.query == leader.query]


async def _found(payload: Payload, reminder: ReminderSettings, ctx: Context) -> Found | None:
    if reminder.query is None:
        return await ctx.stores.reminders.find(payload.booking, payload.starts_at)
    try:
        return await ctx.stores.own_tables.find(
            reminder.query, payload.booking, payload.starts_at, zone=ctx.settings.service.timezone
        )
    except QueryFailure as failure:
        raise TemporaryFailure(f"the query of {reminder.rule.name} failed: {failure}") from failure


async def _told(due: _Due) -> Outcome | None:
    """None: the booking has changed meanwhile."""
    ctx = due.ctx
    try:
        recipient = booked(ctx.settings, due.booking)
    except ValueError as error:
        await ctx.stores.reminders.refuse(
            ctx.current_job,
            booking=due.payload.booking,
            starts_at=due.payload.starts_at,
            origin=due.payload.origin,
            passed=named(due.passed),
            reason=f"its booking cannot be told: {error}",
        )
        ctx.tally.add("messages.failed")
        ctx.tally.fail(f"reminder {due.reminder.rule.name} failed")
        return Settled()
    if due.left <= timedelta(0):
        return await _given_up(due, recipient)
    if (wait := _quiet(due, recipient)) is not None:
        return Snooze(wait)
    way = await ways.find(recipient, ctx, by=due.latest)
    if way.wait is not None:
        log.info("reminder held", extra={"recipient": recipient.name, "reason": way.reason})
        return Snooze(max(min(way.wait, due.left), SHORTEST))
    telling = _telling(due, way.recipient, way.address, bodies=_composed(due, way))
    if not await ctx.stores.reminders.tell(ctx.current_job, telling):
        return None
    ctx.tally.add("messages.composed", len(telling.bodies))
    return Settled()


def _quiet(due: _Due, recipient: Recipient) -> timedelta | None:
    """How long quiet hours hold it; None: it is told now, also at night where it would come too late after them.

    They must end so long before the start that a ring still comes in between.
    """
    now = due.found.now
    until = quiet.held_until(now, recipient.zone, recipient.quiet_hours)
    return None if until is None or until > due.latest else until - now


async def _given_up(due: _Due, recipient: Recipient) -> Outcome:
    ctx = due.ctx
    way = await ways.find(recipient, ctx, by=due.latest)
    reason = f"{TIME_PASSED}: {way.reason}" if way.reason else TIME_PASSED
    telling = _telling(due, recipient, address_of(ctx.settings, recipient))
    await ctx.stores.reminders.give_up(ctx.current_job, telling, _text(due, recipient), reason)
    log.error("reminder given up", extra={"recipient": recipient.name, "reason": reason})
    ctx.tally.add("messages.failed")
    ctx.tally.fail(f"reminder {due.reminder.rule.name} failed")
    return Settled()


def _telling(due: _Due, recipient: Recipient, address: str, bodies: Sequence[Body] = ()) -> Telling:
    return Telling(
        booking=due.booking,
        origin=due.payload.origin,
        passed=due.passed,
        to=recipient.name,
        channel=recipient.channel,
        address=address,
        bodies=bodies,
    )


def _composed(due: _Due, way: Way) -> list[Body]:
    channel = due.ctx.settings.channels[way.recipient.channel]
    module: Any = plugins.load("app.channels", channel.kind)
    language = language_of(due.booking.language, way.recipient.language)
    digest = Digest(note=_text(due, way.recipient), to=way.recipient.to, language=language)
    bodies: list[Body] = module.compose(digest, channel.options)
    if not bodies:
        raise TemporaryFailure(f"the channel {channel.name} made no message of it")
    return bodies


def _text(due: _Due, recipient: Recipient) -> str:
    language = language_of(due.booking.language, recipient.language)
    if due.reminder.wording is not None:
        try:
            return due.reminder.wording.text(due.booking, now=due.found.now, language=language)
        except WordingError as error:
            name = due.reminder.rule.name
            log.warning("template failed", extra={"reminder": name, "reason": str(error)})
            due.ctx.tally.note(f"text of reminder {name} failed: it is told in the service's own words")
    return reminding.text(due.booking, now=due.found.now, language=language)
