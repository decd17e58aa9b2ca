"""Whoever is owed something that no message holds is written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.context import Context


async def plan(ctx: Context) -> None:
    """Queue the composing, and end the messages whose jobs were given up."""
    abandoned = await ctx.stores.messages.plan(list(ctx.settings.recipients))
    ctx.tally.add("messages.failed", abandoned)
