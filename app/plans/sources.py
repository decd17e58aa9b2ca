"""Each source whose slot has come is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.domain import manners
from app.stores.sources import Wanted

if TYPE_CHECKING:
    from app.context import Context
    from app.stores.looks import Look


async def plan(ctx: Context, look: Look) -> int:  # noqa: ARG001 - as all plans have it
    """Queue the fetches."""
    sources = ctx.settings.sources.values()
    if not sources:
        return 0
    wanted = [
        Wanted(
            name=s.name,
            fingerprint=s.fingerprint,
            every=s.every,
            host=manners.host_key(str(getattr(s.options, "url", ""))),
        )
        for s in sources
    ]
    due = await ctx.stores.sources.plan(wanted)
    ctx.tally.add("sources.due", due)
    return due
