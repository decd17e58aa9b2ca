"""One bounded batch of work: plan, drain, judge, report."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from app import alerts, composing, handlers, logs, plugins
from app.clients.heartbeat import Heartbeat
from app.domain.errors import DatabaseUnavailable, SchemaOutdated
from app.domain.limits import GRACE, PINGING
from app.domain.schedules import unheard
from app.fan_out import FanOut
from app.plans import messages
from app.settings.watched import chats_that_tell
from app.stores.looks import About

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from app.context import Context, Service
    from app.handlers import Runnable
    from app.stores.looks import Look
    from app.stores.ticks import Tick

log = logging.getLogger(__name__)

CRASHED = "the tick crashed; the log says why"
NO_DATABASE = "the database cannot be reached now"


async def run(service: Service, *, budget: timedelta, max_jobs: int, trigger: str) -> dict[str, Any]:
    """Run one batch and tell what it did. Two at once share what is due; a killed one leaves only leases behind.

    The answer comes by the budget and five seconds more, and says only what is committed.

    Raises:
        DatabaseUnavailable: nothing was done, or the database was lost on the way; what was not done is still due.
        SchemaOutdated: `wakebell migrate` is to be run first.
    """
    async with service.batch(budget=budget, max_jobs=max_jobs, trigger=trigger) as ctx:
        beat = Heartbeat(ctx.http, ctx.settings.environment.heartbeat_url, random=ctx.random)
        beat.start()
        failed, words = True, CRASHED
        try:
            async with asyncio.timeout((budget + GRACE - PINGING).total_seconds()):
                summary = await _run(ctx)
            failed, words = summary["status"] == "failed", "; ".join(summary["errors"])
        except SchemaOutdated as error:
            words = str(error)
            raise
        except DatabaseUnavailable:
            words = NO_DATABASE
            raise
        except TimeoutError as error:
            words = "the database was too slow for the tick's budget"
            raise DatabaseUnavailable(words) from error
        finally:
            await beat.end(failed=failed, words=words)
            logs.TICK.set(None)
        return summary


async def _run(ctx: Context) -> dict[str, Any]:
    about = _about(ctx)
    tick, look = await _open(ctx, about)
    logs.TICK.set(tick.id)
    batch = _Batch(ctx, about, tick, look)
    await batch.run()
    status = ctx.tally.status if batch.sound else "failed"
    remaining = batch.look.startable
    ctx.tally.add("jobs.remaining", remaining)
    ctx.tally.add("messages.held", batch.look.held)
    summary = ctx.tally.summary(
        tick=tick.id,
        status=status,
        started_at=tick.started_at,
        duration=ctx.deadline.elapsed,
        budget_exhausted=ctx.deadline.exhausted and remaining > 0,
        next_due_at=batch.look.next_due_at,
    )
    summary["errors"] = [ctx.settings.mask(error) for error in summary["errors"]]
    await ctx.stores.ticks.close(tick, status=status, summary=summary)
    log.info("tick ended", extra={"summary": summary})
    return summary


def _about(ctx: Context) -> About:
    return About(
        users=handlers.types_of(ctx.service.handlers),
        own=handlers.own_types(),
        sources=list(ctx.settings.sources),
        recipients=list(ctx.settings.recipients),
        chats=chats_that_tell(ctx.settings),
        most_a_day=composing.most_a_day(ctx.settings),
        held_until=partial(composing.held_until, ctx.settings),
        kept=ctx.settings.retention,
        overdue=alerts.overdue_after(ctx.settings),
        schedules=ctx.settings.schedules.values(),
        read_at=ctx.settings.read_at,
        unheard=unheard(ctx.settings.tick.expected_every),
    )


async def _open(ctx: Context, about: About) -> tuple[Tick, Look]:
    """The first words with the database: within the budget, whatever state it is in."""
    try:
        async with asyncio.timeout(ctx.deadline.budget.total_seconds()):
            await ctx.stores.require_schema()
            return await ctx.stores.looks.open(about, trigger=ctx.trigger)
    except TimeoutError as error:
        raise DatabaseUnavailable("the database did not answer within the tick's budget") from error


class _Batch:
    """The parts of a tick. One that breaks does not keep the others from running.

    What the last look did not see is not asked for: an idle tick is two statements and the sources' plan.
    """

    def __init__(self, ctx: Context, about: About, tick: Tick, look: Look) -> None:
        self._ctx = ctx
        self._runnables: dict[str, Runnable] | None = None
        self._about = about
        self._tick = tick
        self._before = look

        self.look = look
        """The last one."""

        self.sound = True
        """Every part ran."""

    async def run(self) -> None:
        async with FanOut(self._ctx, self._about.users) as others:
            if await self._prepared():
                await self._part(others.ring)
                await self._drain()
                await self._compose_for_latecomers()
                if await self._part(others.answers):  # before judging: what they leave behind is judged too
                    await self._look()
            if await self._part(self._judge):
                await self._drain()  # its messages are sent by the same tick
        if self._ctx.service.stopping.requested:
            self._ctx.tally.fail("the process was told to stop; what it had not started is still due")

    async def _prepared(self) -> bool:
        """Whether there may be something to run."""
        jobs, seen = self._ctx.stores.jobs, self.look
        if seen.rescuable:
            await self._part(jobs.rescue)  # first: what a killed tick left leased
        if seen.strange:
            await self._part(lambda: jobs.park(self._about.users))
        planned = [await self._part(partial(plan, self._ctx, seen)) for plan in _plans()]
        return bool(seen.startable or seen.rescuable or seen.strange or any(planned))

    async def _judge(self) -> bool:
        """Whether there are messages about alerts to be sent."""
        seen = alerts.seen_by(self._ctx, self._tick, self.look, before=self._before, sound=self.sound)
        return (self.look.judgeable or bool(seen.signs)) and await alerts.judge(self._ctx, seen)

    async def _compose_for_latecomers(self) -> None:
        """Until nobody is owed anything.

        A fetch that ended while its recipient's composing ran found that job's key taken, and one compose job takes 500
        items.
        """
        while self.look.owed and not self._ctx.deadline.exhausted:
            if not await self._part(lambda: messages.plan(self._ctx, self.look)):
                return
            await self._drain()

    async def _drain(self) -> None:
        from app import drain  # noqa: PLC0415 - an idle tick needs none of it, and no handler

        if self._runnables is None:
            self._runnables = handlers.all_types(self._ctx.service.handlers)
        runnables = self._runnables
        await self._part(lambda: drain.until_idle(self._ctx, runnables))
        await self._look()

    async def _look(self) -> None:
        self.look = await self._ctx.stores.looks.look(self._about)

    async def _part(self, part: Callable[[], Awaitable[Any]]) -> Any:
        """What it returns; None when it broke."""
        try:
            return await part()
        except DatabaseUnavailable:
            raise
        except Exception:
            log.exception("tick part crashed")
            self._ctx.tally.fail("a part of the tick crashed; the log has its traceback")
            self.sound = False
            return None


def _plans() -> list[Any]:
    return [plugins.load("app.plans", name).plan for name in plugins.kinds("app.plans")]
