"""Each booking whose reminder has fallen due is told of, and messages whose time has passed are ended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from app.domain.bookings import REF_LENGTH, Start, course
from app.domain.errors import DatabaseUnavailable, QueryFailure
from app.stores.own_tables import zone_or_utc
from app.stores.reminders import MOST_WAITING, Asked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.context import Context
    from app.settings import ReminderSettings
    from app.stores.looks import Look
    from app.stores.own_tables import OwnRows

log = logging.getLogger(__name__)

SHARE = 0.4
"""Of the budget: how long bookings are looked at, thousands of new ones; what is queued is to be sent too."""


async def plan(ctx: Context, look: Look) -> int:
    """Queue what is due; more than 0 also where the next reminder is another one now, so that the tick looks again.

    A query that fails makes the tick `partial`, and stops nothing else.
    """
    configured = list(ctx.settings.reminders.values())
    fingerprints = {one.rule.name: one.fingerprint for one in configured}
    known = {name: fingerprint for name, (fingerprint, _) in look.reminder_rules.items()}
    changed = fingerprints != known
    if changed:
        await ctx.stores.reminders.keep_rules(fingerprints)
    looked = changed or look.bookings_due
    new = {name for name, fingerprint in fingerprints.items() if known.get(name) != fingerprint}
    queued = await _kept(ctx, configured, new) if looked else 0
    for group in _groups(configured):
        queued += await _own(ctx, group, look)
    ctx.tally.add("reminders.queued", queued)
    expired = await ctx.stores.reminders.expire() if look.expired else 0
    ctx.tally.add("messages.failed", expired)
    return queued + expired or int(looked)


async def _kept(ctx: Context, configured: Iterable[ReminderSettings], new: set[str]) -> int:
    """Of the bookings that the service keeps. No tick can have failed to come for what is `new` or has changed."""
    rules = [one.rule for one in configured if one.query is None]
    queued, more = 0, True
    while more and ctx.deadline.elapsed < ctx.deadline.budget * SHARE:
        added, more = await ctx.stores.reminders.plan(rules, new=new)
        queued += added
    return queued


def _groups(configured: Iterable[ReminderSettings]) -> list[list[ReminderSettings]]:
    """Reminders that share a query share its rows too: of those that are due of one booking, one is told."""
    by_query: dict[str, list[ReminderSettings]] = {}
    for one in configured:
        if one.query is not None:
            by_query.setdefault(one.query, []).append(one)
    return list(by_query.values())


async def _own(ctx: Context, group: list[ReminderSettings], look: Look) -> int:
    """Of bookings in the user's own tables. Whatever is wrong with their query is its own failure."""
    names = [one.rule.name for one in group]
    try:
        return await _found(ctx, group, look)
    except DatabaseUnavailable:
        raise
    except QueryFailure as failure:
        reason = str(failure)
        log.error("reminder query failed", extra={"reminder": names[0], "reason": reason})  # noqa: TRY400 - told
    except Exception as error:
        reason = f"what it gives cannot be used ({type(error).__name__}); the log says more"
        log.exception("reminder query crashed", extra={"reminder": names[0]})
    ctx.tally.fail(f"reminder {names[0]} failed: its query could not be run")
    await ctx.stores.reminders.fail_query(names, reason)
    return 0


async def _found(ctx: Context, group: list[ReminderSettings], look: Look) -> int:
    names = [one.rule.name for one in group]
    found = await ctx.stores.own_tables.due(str(group[0].query), [one.rule for one in group])
    if look.reminder_waiting:
        await _withdraw_moved(ctx, group)
    for line in _unusable(names[0], found):
        ctx.tally.note(line)
    if any(look.reminder_rules[name][1] for name in names if name in look.reminder_rules):
        await ctx.stores.reminders.heal_query(names)
    if found.next_at is not None:
        ctx.tally.fall_due(found.next_at)
    asked = list(_asked(ctx, group, found))
    return await ctx.stores.reminders.queue(asked) if asked else 0


async def _withdraw_moved(ctx: Context, group: list[ReminderSettings]) -> None:
    """What waits is not sent any more where the row is gone or begins at another time. Nobody tells us: we look."""
    origin, query, reminders = group[0].rule.name, str(group[0].query), ctx.stores.reminders
    after = None
    while waiting := await reminders.waiting(origin, after=after):
        standing = await ctx.stores.own_tables.standing(query, [(one.booking, one.starts_at) for one in waiting])
        gone = [one for one in waiting if (one.booking, one.starts_at) not in standing]
        if gone:
            await reminders.withdraw(origin, gone)
        if len(waiting) < MOST_WAITING or ctx.deadline.elapsed >= ctx.deadline.budget * SHARE:
            return
        after = waiting[-1]


def _unusable(name: str, found: OwnRows) -> Iterable[str]:
    if found.unnamed:
        yield f"reminder {name}: rows left out since their ref is NULL: {found.unnamed}"
    if found.overlong:
        yield f"reminder {name}: rows left out since their ref has more than {REF_LENGTH} characters: {found.overlong}"


def _asked(ctx: Context, group: list[ReminderSettings], found: OwnRows) -> Iterable[Asked]:
    rules = [one.rule for one in group]
    for row in found.rows:
        zone = zone_or_utc(row.timezone or ctx.settings.service.timezone)
        due = course(Start(at=row.starts_at, all_day=row.all_day, zone=zone), rules, found.now).due
        if due is not None and found.now < due.expires_at:
            yield Asked(booking=row.ref, starts_at=row.starts_at, reminder=due.rule.name, origin=rules[0].name)
