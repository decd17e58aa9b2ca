"""Each source whose slot has come is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.stores.sources import Wanted

if TYPE_CHECKING:
    from app.context import Context


async def plan(ctx: Context) -> None:
    """Queue the fetches."""
    sources = ctx.settings.sources.values()
    if not sources:
        return
    wanted = [Wanted(name=s.name, fingerprint=s.fingerprint, every=s.every) for s in sources]
    ctx.tally.add("sources.due", await ctx.stores.sources.plan(wanted))
