"""A drain by itself: what is due is run and finished. Nothing is planned, judged, pruned, pinged or kept of it.

For whoever has put something in and would have it done now, and for ticks that find more than they may run.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from app import drain, handlers
from app.domain.errors import DatabaseUnavailable
from app.domain.jobs import OWN_PREFIX
from app.domain.limits import GRACE, REPORTING
from app.stores.messages import SEND_QUEUE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from app.context import Context, Service
    from app.handlers import Runnable

log = logging.getLogger(__name__)

COUNTERS = ("claimed", "done", "retrying", "snoozed", "failed", "remaining")


async def run(service: Service, *, queue: str | None, budget: timedelta, max_jobs: int) -> dict[str, Any]:
    """Run what is due in one queue, and tell of it. Several at once, and ticks beside them, share what is due.

    The answer comes by the budget and five seconds more, and says only what is committed.

    Args:
        service: whose database and handlers.
        queue: its name; one of the service's own, `wakebell.…`, is bounded by the budget alone, and of its jobs only
            `remaining` is counted. None: all queues of users.
        budget: in which jobs are started.
        max_jobs: of users' types, at most so many.

    Raises:
        DatabaseUnavailable: it cannot be reached, or was lost on the way; what was not done is still due.
        SchemaOutdated: `wakebell migrate` is to be run first.
    """
    async with service.batch(budget=budget, max_jobs=max_jobs, trigger="drain") as ctx:
        try:
            async with asyncio.timeout((budget + GRACE - REPORTING / 2).total_seconds()):
                return await _run(ctx, queue)
        except TimeoutError as error:
            raise DatabaseUnavailable("the database was too slow for the drain's budget") from error


async def _run(ctx: Context, queue: str | None) -> dict[str, Any]:
    await ctx.stores.require_schema()
    own = queue is not None and queue.startswith(OWN_PREFIX)
    known = handlers.all_types(ctx.service.handlers)
    runnables = {name: runnable for name, runnable in known.items() if runnable.own == own}
    sound = await _worked(ctx, runnables, queue)
    if ctx.tally["chats.handed_over"]:  # whoever is wanted is to hear of it now, and not with the next tick
        for wanted in {ctx.settings.recipients[name].channel for name in ctx.settings.alerts}:
            sound &= await _worked(ctx, runnables, SEND_QUEUE + wanted)
    if ctx.service.stopping.requested:
        ctx.tally.fail("the process was told to stop; what it had not started is still due")
    remaining = await ctx.stores.jobs.count_startable(list(runnables), queue=queue) if runnables else 0
    ctx.tally.add("jobs.remaining", remaining)
    told = {
        "status": ctx.tally.status if sound else "failed",
        "queue": queue,
        "duration_ms": round(ctx.deadline.elapsed.total_seconds() * 1000),
        "budget_exhausted": ctx.deadline.exhausted and remaining > 0,
        "jobs": {name: ctx.tally[f"jobs.{name}"] for name in COUNTERS},
        "errors": ctx.tally.errors,
    }
    log.info("drain ended", extra={"summary": told})
    return told


async def _worked(ctx: Context, runnables: Mapping[str, Runnable], queue: str | None) -> bool:
    """Whether it ran as it should."""
    try:
        await ctx.stores.jobs.rescue()  # what a killed process left leased
        await drain.until_idle(ctx, runnables, queue=queue)
    except DatabaseUnavailable:
        raise
    except Exception:
        log.exception("drain crashed")
        ctx.tally.fail("the drain crashed; the log has its traceback")
        return False
    return True
