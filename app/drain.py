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
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app import attempt
from app.attempt import Cut
from app.domain.errors import DatabaseUnavailable
from app.domain.jobs import LEASE_MARGIN
from app.lanes import Lanes, Ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.context import Context
    from app.domain.jobs import Finished, Job
    from app.handlers import Runnable

log = logging.getLogger(__name__)

OWN_SLOTS = 24
"""How many own jobs run at once, beside users': most of them wait for others' servers, each for another one."""

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


async def until_idle(ctx: Context, runnables: Mapping[str, Runnable], *, queue: str | None = None) -> None:
    """Run what is due of these types, several at a time. What it counts is committed when it returns.

    Returns when a claim finds nothing and nothing runs, when the time is up, or when the process was told to stop.
    With `queue`, of that one alone.

    Raises:
        DatabaseUnavailable: it was lost on the way; what was running is due again when its lease ends.
    """
    draining = _Drain(ctx, runnables, queue)
    try:
        await draining.run()
    except DatabaseUnavailable as error:
        draining.lost(error)
    finally:
        await draining.cancel()
    if draining.broken is not None:
        raise draining.broken


class _Drain:
    def __init__(self, ctx: Context, runnables: Mapping[str, Runnable], queue: str | None) -> None:
        self._ctx = ctx
        self._runnables = runnables
        self._queue = queue
        self._cut = Cut()
        self._own: dict[asyncio.Task[Finished | None], Job] = {}
        self._lanes = Lanes(
            ctx,
            runnables,
            cut=self._cut,
            may_start=lambda: not self._over,
            on_end=self._on_users_end,
        )
        self._own_given_back: list[Job] = []
        self._may_be_due = {True: True, False: True}
        """Whether a claim may find something, of own (True) and of users' (False) jobs."""

        self._own_started = 0
        self._orphans_sought_at = 0
        self._waited_long = False
        self._changed = asyncio.Event()
        self._bug: BaseException | None = None
        self._broken: DatabaseUnavailable | None = None

    async def run(self) -> None:
        stopped = asyncio.create_task(self._ctx.service.stopping.wait())
        stopped.add_done_callback(lambda _: self._changed.set())
        try:
            while not self._over:
                self._changed.clear()
                await self._claim_own()
                await self._turn()
                self._lanes.start()
                if self._done and not await self._promoted_orphans():
                    return
                await self._wait()
            await self._wind_down()
        finally:
            stopped.cancel()

    async def cancel(self) -> None:
        """What still runs goes back: the process was told to stop, or the tick is over."""
        self._cut.ordered = True
        tasks = self._tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CUT_SECONDS)
        for job in [*self._own.values(), *self._lanes.jobs]:
            log.error("job left behind", extra={"job": job.id, "type": job.type})
            self._ctx.tally.fail(f"job type {job.type} did not let itself be stopped")
        if self._broken is None:
            await self._give_back()
            await self._finish(limit=0)
        if (bug := self._bug or self._lanes.bug) is not None:
            raise bug

    def lost(self, error: DatabaseUnavailable) -> None:
        """The database cannot be asked any more."""
        self._broken = error

    @property
    def broken(self) -> DatabaseUnavailable | None:
        """The database was lost on the way."""
        return self._broken or self._lanes.broken

    @property
    def _tasks(self) -> list[asyncio.Task[Any]]:
        return [*self._own, *self._lanes.tasks]

    @property
    def _over(self) -> bool:
        """Nothing starts any more."""
        return self._done_starting() or self._bug is not None or self._lanes.bug is not None

    def _done_starting(self) -> bool:
        return self.broken is not None or self._ctx.service.stopping.requested or self._ctx.deadline.exhausted

    @property
    def _done(self) -> bool:
        """Nothing runs, and nothing has ended since the last claims found nothing."""
        return self._idle and not self._may_be_due[True] and not (self._may_be_due[False] and self._left > 0)

    @property
    def _left(self) -> int:
        """Of `max_jobs`: how many more may be claimed."""
        return self._ctx.max_jobs - self._ctx.tally["jobs.claimed"] - len(self._lanes.ready)

    @property
    def _idle(self) -> bool:
        lanes = self._lanes
        return not (self._tasks or self._own_given_back or lanes.ready or lanes.ended or lanes.given_back)

    async def _wait(self) -> None:
        """Until a job has ended or the process is told to stop; or until what was held back is not to wait longer."""
        ended = self._lanes.ended
        if self._lanes.given_back or self._own_given_back or self._idle or (ended and not self._more_will_end):
            return
        own = self._patience() if self._own else None
        starting = (self._ctx.deadline.budget - self._ctx.deadline.elapsed).total_seconds() + 0.01
        try:
            async with asyncio.timeout(UNFINISHED_SECONDS if ended else min(own or starting, starting)):
                await self._changed.wait()
        except TimeoutError:
            self._waited_long = bool(ended)  # a slow one among quick ones must not keep them from being finished
            self._may_be_due[True] = True

    def _patience(self) -> float | None:
        """Seconds until what waits for other jobs is claimed without them; None when that has passed already."""
        left = self._ctx.deadline.budget * AFTER_SHARE - self._ctx.deadline.elapsed
        return left.total_seconds() + 0.01 if left > timedelta(0) else None

    async def _wind_down(self) -> None:
        """Nothing starts any more: what is at hand goes back, what runs may end."""
        self._lanes.give_back()
        if self.broken is None:
            await self._give_back()
        left = self._ctx.deadline.left.total_seconds()
        patience = min(STOP_SECONDS, left) if self._ctx.service.stopping.requested else left
        if self._tasks and self._bug is None and self._lanes.bug is None:
            await asyncio.wait(self._tasks, timeout=patience)

    # ------------------------------------------------------------------------------------------------------ claiming

    async def _claim_own(self) -> None:
        free = OWN_SLOTS - len(self._own)
        if self._done_starting() or not self._may_be_due[True] or free < 1:
            return
        self._may_be_due[True] = False
        leases = self._leases(own=True)
        if not leases:
            return
        token = self._ctx.random.getrandbits(62)
        claimed = await self._ctx.stores.jobs.claim(own=True, limit=free, leases=leases, token=token, queue=self._queue)
        self._may_be_due[True] |= len(claimed) == free
        coming = {job.type for job in claimed} if self._patience() is not None else set()
        for job in claimed:
            # The claim took long, or the order to stop came with it; or the next in a host's line did.
            if self._done_starting() or self._runnables[job.type].after & coming:
                self._own_given_back.append(job)
            else:
                self._start_own(job, leases[job.type] - LEASE_MARGIN)

    async def _turn(self) -> None:
        """Finish what has ended and claim the next, in one call."""
        await self._give_back()
        limit = self._room()
        if limit or not self._more_will_end:
            self._waited_long = False
            await self._finish(limit=limit)

    def _room(self) -> int:
        wanted = self._lanes.pace.room(len(self._lanes.ready) + self._lanes.running)
        if not wanted or not self._may_be_due[False] or self._done_starting():
            return 0
        return max(min(wanted, self._left), 0)

    @property
    def _more_will_end(self) -> bool:
        """Quick jobs are finished when half of what is at hand has ended, or when nothing more is under way."""
        lanes = self._lanes
        few = len(lanes.ended) * 2 < lanes.pace.at_hand
        return few and lanes.pace.quick and not self._waited_long and bool(lanes.ready or lanes.running)

    async def _finish(self, *, limit: int) -> None:
        leases = self._leases(own=False) if limit else {}
        if limit:
            self._may_be_due[False] = False
        limit = limit if leases else 0
        done, self._lanes.ended = self._lanes.ended, []
        if not done and not limit:
            return
        begun = time.monotonic()
        token = self._ctx.random.getrandbits(62)  # of each claim: a job that comes back must not share its former fence
        try:
            turned = await self._ctx.stores.jobs.turn(
                done=done, own=False, limit=limit, leases=leases, token=token, queue=self._queue
            )
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
        self._lanes.pace.weighed(len(turned.claimed), turned.size)
        self._lanes.ready.extend(Ready(job, begun + LEASE_MARGIN.total_seconds()) for job in turned.claimed)

    async def _give_back(self) -> None:
        given_back = self._own_given_back + self._lanes.given_back
        self._own_given_back, self._lanes.given_back = [], []
        if given_back:
            await self._ctx.stores.jobs.release(given_back)

    async def _promoted_orphans(self) -> bool:
        """Whether jobs may start now that stood in line behind nobody.

        Two writers of one serial key that just missed each other leave such: of users' jobs, and of fetches.
        """
        started = self._lanes.started + self._own_started
        if self._orphans_sought_at == started or self._done_starting():
            return False
        self._orphans_sought_at = started
        rescued = await self._ctx.stores.jobs.rescue()
        self._may_be_due = {True: True, False: True}
        return rescued.promoted + rescued.pending > 0

    def _leases(self, *, own: bool) -> dict[str, timedelta]:
        """The types that may start now, with their leases. A user's type starts when its whole time-out fits."""
        left = self._ctx.deadline.left
        half = self._ctx.deadline.whole / 2  # a small budget must not keep own jobs from ever starting
        waited_for = {job.type for job in self._own.values()} if self._patience() is not None else set()
        fitting = [
            runnable
            for runnable in self._runnables.values()
            if runnable.own == own and (min(runnable.least, half) if own else runnable.timeout) <= left
        ]
        return {r.type: min(r.timeout, left) + LEASE_MARGIN for r in fitting if not r.after & waited_for}

    # ------------------------------------------------------------------------------------------------------- running

    def _start_own(self, job: Job, limit: timedelta) -> None:
        attempted = attempt.run(self._ctx, job, self._runnables[job.type], limit, self._cut)
        task = asyncio.create_task(attempted, name=f"job {job.id}")
        self._own[task] = job
        self._own_started += 1
        task.add_done_callback(self._on_own_end)

    def _on_own_end(self, task: asyncio.Task[Finished | None]) -> None:
        del self._own[task]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, DatabaseUnavailable):
            self._broken = error
        elif error is not None:
            self._bug = error
        self._may_be_due[True] = True
        self._changed.set()

    def _on_users_end(self) -> None:
        self._may_be_due[False] = True
        if not self._more_will_end or self._room():  # else the loop would wake for each of a thousand quick jobs
            self._changed.set()
