"""Rows that have had their time are pruned, a bounded number each tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.context import Context


async def plan(ctx: Context) -> None:
    """Queue the pruning when there is something to prune, so that an idle tick leaves nothing behind."""
    await ctx.stores.housekeeping.plan(ctx.settings.retention)
