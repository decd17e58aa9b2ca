"""Rows that have had their time are pruned, a bounded number each tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.context import Context
    from app.stores.looks import Look


async def plan(ctx: Context, look: Look) -> int:
    """Queue the pruning when there is something to prune, so that an idle tick leaves nothing behind."""
    return int(look.prunable and await ctx.stores.housekeeping.plan())
