"""Claim, run, finish: until nothing is due or the time is up.

    claim --> ready --> running --> ended --> finish
                |                     (many at once, with the next claim)
                `--> given back, when the time is up before they start

Own work (fetching, composing, sending, pruning) is bounded by the budget, users' jobs by `max_jobs` as well. Own jobs
start as they are claimed and are finished by their own transactions. Users' jobs are claimed and finished in
batches: while one is under way the jobs at hand go on; so quick ones share a round trip, and slow ones wait for none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from app import attempt
from app.domain.errors import DatabaseUnavailable
from app.domain.jobs import LEASE_MARGIN
from app.domain.prefetch import Pace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.context import Context
    from app.domain.jobs import Finished, Job
    from app.handlers import Runnable

log = logging.getLogger(__name__)

SLOTS = {True: 8, False: 10}
"""How many own (True) and users' (False) jobs run at once: what a small machine and a pool of six connections bear."""

AFTER_SHARE = 0.4
"""Of the budget: how long composing waits for the fetches of the same tick, so that their news is one message. What
is left then is enough to compose and to send."""

STOP_SECONDS = 8.0
"""What a running job gets to end in once the process was told to stop; Cloud Run kills after 10."""

UNFINISHED_SECONDS = 0.05
"""How long quick jobs that have ended wait for others to be finished with."""

CUT_SECONDS = 0.5
"""What jobs that are cut get to write it down. One that does not let itself be cut is left behind: its lease ends by
itself, and the tick answers in time.
"""


async def until_idle(ctx: Context, runnables: Mapping[str, Runnable]) -> None:
    """Run what is due, several at a time. What it counts and what it answers for is committed when it returns.

    Returns when a claim finds nothing and nothing runs, when the time is up, or when the process was told to stop.

    Raises:
        DatabaseUnavailable: it was lost on the way; what was running is due again when its lease ends.
    """
    draining = _Drain(ctx, runnables)
    try:
        await draining.run()
    except DatabaseUnavailable as error:
        draining.broken = error
    finally:
        await draining.cancel()
    if draining.broken is not None:
        raise draining.broken


@dataclass(frozen=True, slots=True)
class _Ready:
    """A job at hand."""

    job: Job

    start_by: float
    """By the monotonic clock: later, its time-out would end after its lease."""


class _Drain:
    def __init__(self, ctx: Context, runnables: Mapping[str, Runnable]) -> None:
        self._ctx = ctx
        self._runnables = runnables
        self._pace = Pace(SLOTS[False])
        self._running: dict[asyncio.Task[Finished | None], Job] = {}
        self._ready: deque[_Ready] = deque()
        self._ended: list[Finished] = []
        self._given_back: list[Job] = []
        self._may_be_due = {True: True, False: True}
        self._count = {True: 0, False: 0}
        """Of running jobs, own and users'."""

        self._may_have_orphans = False
        self._waited_long = False
        self._changed = asyncio.Event()
        self._bug: BaseException | None = None
        self.broken: DatabaseUnavailable | None = None

    async def run(self) -> None:
        stopped = asyncio.create_task(self._ctx.service.stopping.wait())
        stopped.add_done_callback(lambda _: self._changed.set())
        try:
            while not self._over:
                self._changed.clear()
                await self._claim_own()
                await self._turn()
                self._start_ready()
                if self._done and not await self._promoted_orphans():
                    return
                await self._wait()
            await self._wind_down()
        finally:
            stopped.cancel()

    async def cancel(self) -> None:
        """What still runs goes back: the process was told to stop, or the tick is over."""
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running), timeout=CUT_SECONDS)
        for job in self._running.values():
            log.error("job left behind", extra={"job": job.id, "type": job.type})
            self._ctx.tally.fail(f"job type {job.type} did not let itself be stopped")
        if self.broken is None:
            await self._give_back()
            await self._finish(limit=0)
        if self._bug is not None:
            raise self._bug

    @property
    def _over(self) -> bool:
        return self._done_starting() or self._bug is not None

    def _done_starting(self) -> bool:
        return self.broken is not None or self._ctx.service.stopping.requested or self._ctx.deadline.exhausted

    @property
    def _done(self) -> bool:
        """Nothing runs, and nothing has ended since the last claims found nothing."""
        return self._idle and not self._may_be_due[True] and not (self._may_be_due[False] and self._left > 0)

    @property
    def _left(self) -> int:
        """Of `max_jobs`: how many more may be claimed."""
        return self._ctx.max_jobs - self._ctx.tally["jobs.claimed"] - len(self._ready)

    @property
    def _idle(self) -> bool:
        return not (self._running or self._ready or self._ended or self._given_back)

    async def _wait(self) -> None:
        """Until a job has ended or the process is told to stop; or until what was held back is not to wait longer."""
        if self._given_back or self._idle or (self._ended and not self._more_will_end):
            return
        own = self._patience() if self._count[True] else None
        starting = (self._ctx.deadline.budget - self._ctx.deadline.elapsed).total_seconds() + 0.01
        try:
            async with asyncio.timeout(UNFINISHED_SECONDS if self._ended else min(own or starting, starting)):
                await self._changed.wait()
        except TimeoutError:
            self._waited_long = bool(self._ended)  # a slow one among quick ones must not keep them from being finished
            self._may_be_due[True] = True

    def _patience(self) -> float | None:
        """Seconds until what waits for other jobs is claimed without them; None when that has passed already."""
        left = self._ctx.deadline.budget * AFTER_SHARE - self._ctx.deadline.elapsed
        return left.total_seconds() + 0.01 if left > timedelta(0) else None

    async def _wind_down(self) -> None:
        """Nothing starts any more: what is at hand goes back, what runs may end."""
        self._given_back += [ready.job for ready in self._ready]
        self._ready.clear()
        if self.broken is None:
            await self._give_back()
        left = self._ctx.deadline.left.total_seconds()
        patience = min(STOP_SECONDS, left) if self._ctx.service.stopping.requested else left
        if self._running and self._bug is None:
            await asyncio.wait(list(self._running), timeout=patience)

    # ------------------------------------------------------------------------------------------------------ claiming

    async def _claim_own(self) -> None:
        free = SLOTS[True] - self._count[True]
        if self._done_starting() or not self._may_be_due[True] or free < 1:
            return
        self._may_be_due[True] = False
        leases = self._leases(own=True)
        if not leases:
            return
        token = self._ctx.random.getrandbits(62)
        claimed = await self._ctx.stores.jobs.claim(own=True, limit=free, leases=leases, token=token)
        self._may_be_due[True] |= len(claimed) == free
        for job in claimed:
            if self._done_starting():  # the claim took long, or the order to stop came with it
                self._given_back.append(job)
            else:
                self._start(job, leases[job.type] - LEASE_MARGIN)

    async def _turn(self) -> None:
        """Finish what has ended and claim the next, in one call."""
        await self._give_back()
        limit = self._room()
        if limit or not self._more_will_end:
            self._waited_long = False
            await self._finish(limit=limit)

    def _room(self) -> int:
        if not self._may_be_due[False] or self._done_starting():
            return 0
        return max(min(self._pace.room(len(self._ready) + self._count[False]), self._left), 0)

    @property
    def _more_will_end(self) -> bool:
        """Quick jobs are finished when half of what is at hand has ended, or when nothing more is under way."""
        under_way = self._ready or self._count[False]
        few = len(self._ended) * 2 < self._pace.at_hand
        return bool(under_way) and self._pace.quick and few and not self._waited_long

    async def _finish(self, *, limit: int) -> None:
        leases = self._leases(own=False) if limit else {}
        if limit:
            self._may_be_due[False] = False
        limit = limit if leases else 0
        done, self._ended = self._ended, []
        if not done and not limit:
            return
        begun = time.monotonic()
        token = self._ctx.random.getrandbits(62)  # of each claim: a job that comes back must not share its former fence
        try:
            turned = await self._ctx.stores.jobs.turn(done=done, own=False, limit=limit, leases=leases, token=token)
        except DatabaseUnavailable:
            if not done:
                raise
            # Once more: what was done is not to be run again for a connection that broke. If it was written all the
            # same, the fence makes this change nothing.
            turned = await self._ctx.stores.jobs.turn(done=done, own=False, limit=0, leases={}, token=token)
        for job_id in turned.lost:
            log.warning("job lease lost", extra={"job": job_id})
        self._ctx.tally.add("jobs.done", len(done) - len(turned.lost))
        self._may_be_due[False] |= bool(limit) and len(turned.claimed) == limit
        self._ready.extend(_Ready(job, begun + LEASE_MARGIN.total_seconds()) for job in turned.claimed)

    async def _give_back(self) -> None:
        given_back, self._given_back = self._given_back, []
        for job in given_back:
            await self._ctx.stores.jobs.release(job)

    async def _promoted_orphans(self) -> bool:
        """Whether jobs may start now that stood in line behind nobody.

        Two writers of one serial key that just missed each other leave such; only users' jobs have serial keys.
        """
        if not self._may_have_orphans or self._done_starting():
            return False
        self._may_have_orphans = False
        rescued = await self._ctx.stores.jobs.rescue()
        self._may_be_due = {True: True, False: True}
        return rescued.promoted + rescued.pending > 0

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

    # ------------------------------------------------------------------------------------------------------- running

    def _start_ready(self) -> None:
        if not self._ready or self._over:
            return
        now, left = time.monotonic(), self._ctx.deadline.left
        while self._ready and self._count[False] < SLOTS[False]:
            ready = self._ready.popleft()
            timeout = self._runnables[ready.job.type].timeout
            if now > ready.start_by or timeout > left:
                self._given_back.append(ready.job)
            else:
                self._ctx.tally.add("jobs.claimed")
                self._may_have_orphans = True
                self._start(ready.job, timeout)

    def _start(self, job: Job, limit: timedelta) -> None:
        runnable = self._runnables[job.type]
        task = asyncio.create_task(attempt.run(self._ctx, job, runnable, limit), name=f"job {job.id}")
        self._running[task] = job
        self._count[runnable.own] += 1
        task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[Finished | None]) -> None:
        """A slot is free: the next job at hand starts at once, whatever the database is doing meanwhile."""
        own = self._runnables[self._running.pop(task).type].own
        self._count[own] -= 1
        error = None if task.cancelled() else task.exception()
        if isinstance(error, DatabaseUnavailable):
            self.broken = error
        elif error is not None:
            self._bug = error
        elif not task.cancelled() and (finished := task.result()) is not None:
            self._pace.took(finished.seconds)
            self._ended.append(finished)
        self._may_be_due[own] = True
        self._start_ready()
        if own or not self._more_will_end or self._room():  # else the loop would wake for each of a thousand quick jobs
            self._changed.set()
