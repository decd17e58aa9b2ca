"""Whoever is owed something that no message holds is written to, unless nothing may be told to them now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.context import Context
    from app.stores.looks import Look


async def plan(ctx: Context, look: Look) -> int:
    """Queue the composing, and end the messages whose jobs were given up."""
    if not (look.owed or look.abandoned):
        return 0
    planned = await ctx.stores.messages.plan(look.tellable)
    ctx.tally.add("messages.failed", planned.abandoned)
    return planned.queued
