"""Claim, run, finish: until nothing is due or the time is up.

Own work (fetching, composing, sending, pruning) is bounded by the budget; users' jobs by `max_jobs` as well.
Only as many jobs are claimed as can start at once, so none waits under a lease.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from app import attempt
from app.domain.errors import DatabaseUnavailable
from app.domain.jobs import LEASE_MARGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.context import Context
    from app.domain.jobs import Job
    from app.handlers import Runnable

log = logging.getLogger(__name__)

SLOTS = {True: 8, False: 10}
"""How many own (True) and users' (False) jobs run at once: what a small machine and a pool of six connections bear."""

AFTER_SHARE = 0.4
"""Of the budget: how long composing waits for the fetches of the same tick, so that their news is one message. What
is left then is enough to compose and to send."""

STOP_SECONDS = 8.0
"""What a running job gets to end in once the process was told to stop; Cloud Run kills after 10."""


async def until_idle(ctx: Context, runnables: Mapping[str, Runnable]) -> None:
    """Run what is due, several at a time.

    Returns when a claim finds nothing and nothing runs, when the time is up, or when the process was told to stop.

    Raises:
        DatabaseUnavailable: it was lost on the way; what was running is due again when its lease ends.
    """
    draining = _Drain(ctx, runnables)
    try:
        await draining.run()
    finally:
        await draining.cancel()
    if draining.broken is not None:
        raise draining.broken


class _Drain:
    def __init__(self, ctx: Context, runnables: Mapping[str, Runnable]) -> None:
        self._ctx = ctx
        self._runnables = runnables
        self._running: dict[asyncio.Task[None], Job] = {}
        self._may_have_orphans = False
        self.broken: DatabaseUnavailable | None = None

    async def run(self) -> None:
        stopped = asyncio.create_task(self._ctx.service.stopping.wait())
        try:
            while True:
                await self._claim()
                if not self._running:
                    if await self._promoted_orphans():
                        continue
                    return
                if stopped.done():
                    await asyncio.wait(self._running, timeout=STOP_SECONDS)
                    return
                await asyncio.wait({*self._running, stopped}, timeout=self._patience(), return_when="FIRST_COMPLETED")
                self._reap()
        finally:
            stopped.cancel()

    async def cancel(self) -> None:
        """What still runs goes back: the process was told to stop, or the tick is over."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        self._reap()

    def _patience(self) -> float | None:
        """Seconds until what waits for other jobs is claimed without them; None when that has passed already."""
        left = self._ctx.deadline.budget * AFTER_SHARE - self._ctx.deadline.elapsed
        return left.total_seconds() + 0.01 if left > timedelta(0) else None

    def _reap(self) -> None:
        for task in [task for task in self._running if task.done()]:
            del self._running[task]
            error = None if task.cancelled() else task.exception()
            if isinstance(error, DatabaseUnavailable):
                self.broken = error
            elif error is not None:
                raise error

    async def _claim(self) -> None:
        for own in (True, False):
            if self._done_starting:
                return
            free = SLOTS[own] - sum(self._runnables[job.type].own == own for job in self._running.values())
            if not own:
                free = min(free, self._ctx.max_jobs - self._ctx.tally["jobs.claimed"])
            leases = self._leases(own=own)
            if free < 1 or not leases:
                continue
            # A token for each claim: a job that comes back in the same tick must not share the fence of its run before.
            token = self._ctx.random.getrandbits(62)
            for job in await self._ctx.stores.jobs.claim(own=own, limit=free, leases=leases, token=token):
                await self._start(job, leases[job.type] - LEASE_MARGIN)

    async def _promoted_orphans(self) -> bool:
        """Whether jobs may start now that stood in line behind nobody.

        Two writers of one serial key that just missed each other leave such; only users' jobs have serial keys.
        """
        if not self._may_have_orphans or self._done_starting:
            return False
        self._may_have_orphans = False
        rescued = await self._ctx.stores.jobs.rescue()
        return rescued.promoted + rescued.pending > 0

    @property
    def _done_starting(self) -> bool:
        return self.broken is not None or self._ctx.service.stopping.requested or self._ctx.deadline.exhausted

    async def _start(self, job: Job, limit: timedelta) -> None:
        if self._done_starting:  # the claim took long, or the order to stop came with it
            await self._ctx.stores.jobs.release(job)
            return
        runnable = self._runnables[job.type]
        if not runnable.own:
            self._ctx.tally.add("jobs.claimed")
            self._may_have_orphans = True
        running = attempt.run(self._ctx, job, runnable, limit)
        self._running[asyncio.create_task(running, name=f"job {job.id}")] = job

    def _leases(self, *, own: bool) -> dict[str, timedelta]:
        """The types that may start now, with their leases. A user's type starts when its whole time-out fits."""
        left = self._ctx.deadline.left
        half = self._ctx.deadline.whole / 2  # a small budget must not keep own jobs from ever starting
        waited_for = {job.type for job in self._running.values()} if self._patience() is not None else set()
        fitting = [
            runnable
            for runnable in self._runnables.values()
            if runnable.own == own and (min(runnable.least, half) if own else runnable.timeout) <= left
        ]
        return {r.type: min(r.timeout, left) + LEASE_MARGIN for r in fitting if not r.after & waited_for}
