"""Deletes rows that have had their time, a bounded number at once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel

from app.domain.jobs import Done, Snooze
from app.stores.housekeeping import TICKS_KEPT

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.jobs import Outcome

TIMEOUT = timedelta(seconds=20)

MOST = 500
"""Rows of each table in one go: short enough to hold no lock for long."""


class Payload(BaseModel):
    """Nothing: the configuration says what is old."""


async def handle(payload: Payload, ctx: Context) -> Outcome:  # noqa: ARG001 - every handler takes one
    """A portion of each table. What is more is left to the next tick."""
    kept = ctx.settings.retention
    pruned = [
        await ctx.stores.jobs.prune(keep=kept.jobs, limit=MOST),
        await ctx.stores.messages.prune(keep=kept.messages, most=MOST),
        await ctx.stores.items.forget(keep=kept.items, most=MOST),
        await ctx.stores.ticks.prune(keep=TICKS_KEPT, most=MOST),
        await ctx.stores.alerts.prune(keep=kept.messages, most=MOST),
        await ctx.stores.hosts.prune(most=MOST),
        await ctx.stores.bookings.prune(keep=kept.jobs, most=MOST),
        await ctx.stores.reminders.prune(keep=kept.jobs, most=MOST),
        await ctx.stores.conversations.prune(keep=kept.conversations, most=MOST),
        await ctx.stores.watches.prune(most=MOST),
        await ctx.stores.spendings.prune(most=MOST),
        await ctx.stores.events.prune(keep=kept.jobs, most=MOST),  # after the jobs, whose bodies these may be
    ]
    ctx.tally.add("pruned", sum(pruned))
    return Snooze(timedelta(minutes=1)) if max(pruned) >= MOST else Done(sum(pruned))
