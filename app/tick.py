"""One bounded batch of work: plan, drain, judge, report."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from app import alerts, drain, handlers, plugins
from app.clients import heartbeat
from app.domain.errors import DatabaseUnavailable
from app.domain.limits import GRACE, PINGING
from app.plans import messages

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from app.context import Context, Service
    from app.handlers import Runnable
    from app.stores.ticks import Tick

log = logging.getLogger(__name__)


async def run(service: Service, *, budget: timedelta, max_jobs: int, trigger: str) -> dict[str, Any]:
    """Run one batch and tell what it did. Two at once share what is due; a killed one leaves only leases behind.

    The answer comes by the budget and five seconds more, and says only what is committed.

    Raises:
        DatabaseUnavailable: nothing was done, or the database was lost on the way; what was not done is still due.
        SchemaOutdated: `wakebell migrate` is to be run first.
    """
    async with service.batch(budget=budget, max_jobs=max_jobs, trigger=trigger) as ctx:
        failed = True
        try:
            async with asyncio.timeout((budget + GRACE - PINGING).total_seconds()):
                summary = await _run(ctx)
            failed = summary["status"] == "failed"
        except TimeoutError as error:
            raise DatabaseUnavailable("the database was too slow for the tick's budget") from error
        finally:
            await _ping(ctx, failed=failed)
        return summary


async def _ping(ctx: Context, *, failed: bool) -> None:
    url = ctx.settings.environment.heartbeat_url
    if url is not None:
        await heartbeat.ping(ctx.http, url, failed=failed)


async def _run(ctx: Context) -> dict[str, Any]:
    tick = await _open(ctx)
    runnables = handlers.all_types(ctx.service.handlers)
    sound = await _work(ctx, runnables)
    status = ctx.tally.status if sound else "failed"
    remaining = await ctx.stores.jobs.count_startable(list(runnables))
    ctx.tally.add("jobs.remaining", remaining)
    summary = ctx.tally.summary(
        tick=tick.id,
        status=status,
        started_at=tick.started_at,
        duration=ctx.deadline.elapsed,
        budget_exhausted=ctx.deadline.exhausted and remaining > 0,
        next_due_at=await _next_due_at(ctx),
    )
    await ctx.stores.ticks.close(tick, status=status, summary=summary)
    log.info("tick ended", extra={"summary": summary})
    return summary


async def _open(ctx: Context) -> Tick:
    """The first words with the database: within the budget, whatever state it is in."""
    try:
        async with asyncio.timeout(ctx.deadline.budget.total_seconds()):
            await ctx.stores.require_schema()
            return await ctx.stores.ticks.open(trigger=ctx.trigger)
    except TimeoutError as error:
        raise DatabaseUnavailable("the database did not answer within the tick's budget") from error


async def _work(ctx: Context, runnables: dict[str, Runnable]) -> bool:
    """Whether every part of the batch ran. One that breaks does not keep the others from running."""
    users = [runnable.type for runnable in runnables.values() if not runnable.own]
    parts = [
        ctx.stores.jobs.rescue,  # first: what a killed tick left leased
        lambda: ctx.stores.jobs.park(users),
        *(lambda plan=plan: plan(ctx) for plan in _plans()),
        lambda: drain.until_idle(ctx, runnables),
        lambda: _tell_latecomers(ctx, runnables),
        lambda: _judge(ctx, runnables),
    ]
    results = [await _survived(ctx, part) for part in parts]
    if ctx.service.stopping.requested:
        ctx.tally.fail("the process was told to stop; what it had not started is still due")
    return all(results)


async def _survived(ctx: Context, part: Any) -> bool:
    try:
        await part()
    except DatabaseUnavailable:
        raise
    except Exception:
        log.exception("tick part crashed")
        ctx.tally.fail("a part of the tick crashed; the log has its traceback")
        return False
    return True


async def _tell_latecomers(ctx: Context, runnables: dict[str, Runnable]) -> None:
    """A fetch that ended while its recipient's composing ran found that job's key taken: compose once more."""
    if ctx.tally["sources.matched_items"] and not ctx.deadline.exhausted:
        await messages.plan(ctx)
        await drain.until_idle(ctx, runnables)


async def _judge(ctx: Context, runnables: dict[str, Runnable]) -> None:
    """What is left behind decides; its messages are sent by the same tick."""
    if await alerts.judge(ctx):
        await drain.until_idle(ctx, runnables)


def _plans() -> list[Any]:
    return [plugins.load("app.plans", name).plan for name in plugins.kinds("app.plans")]


async def _next_due_at(ctx: Context) -> datetime | None:
    """When there is something to do next: a job or a source. UTC."""
    due = [
        await ctx.stores.jobs.next_due_at(),
        await ctx.stores.sources.next_due_at(list(ctx.settings.sources)),
    ]
    return min((at for at in due if at is not None), default=None)
