"""Users' jobs at hand, run one after another by a few tasks.

    ready --> a lane takes the next --> ended
      ^                       `--> given back, when its time would not suffice

A job that waits for nothing costs no task and no timer: its lane goes on with the next. One that waits has the lane's
task for itself, and a new lane takes over, since whatever it leaves behind may still cancel that task.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app import attempt
from app.domain.errors import DatabaseUnavailable
from app.domain.prefetch import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.attempt import Cut
    from app.context import Context
    from app.domain.jobs import Finished, Job
    from app.handlers import Runnable

SLOTS = 10
"""How many users' jobs run at once: what a small machine and a pool of six connections bear."""

TURN_SECONDS = 0.005
"""How long jobs that wait for nothing may follow each other before the rest of the process has its turn."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A job at hand."""

    job: Job

    start_by: float
    """By the monotonic clock: later, its time-out would end after its lease."""


@dataclass(slots=True)
class _Lane:
    job: Job | None = None


class Lanes:
    """Runs what is at hand, `SLOTS` at once, while `may_start` says so."""

    def __init__(
        self,
        ctx: Context,
        runnables: Mapping[str, Runnable],
        *,
        cut: Cut,
        may_start: Callable[[], bool],
        on_end: Callable[[], None],
    ) -> None:
        self._ctx = ctx
        self._runnables = runnables
        self._seconds = {name: runnable.timeout.total_seconds() for name, runnable in runnables.items()}
        self._ends = ctx.deadline.ends
        self._cut = cut
        self._may_start = may_start
        self._on_end = on_end
        self._lanes: dict[asyncio.Task[None], _Lane] = {}
        self.pace = Pace(SLOTS)
        self.ready: deque[Ready] = deque()

        self.ended: list[Finished] = []
        """Went well, and are not written down yet."""

        self.given_back: list[Job] = []

        self.started = 0
        """Jobs, in all."""

        self.broken: DatabaseUnavailable | None = None
        self.bug: BaseException | None = None

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The lanes."""
        return list(self._lanes)

    @property
    def jobs(self) -> list[Job]:
        """What they run."""
        return [lane.job for lane in self._lanes.values() if lane.job is not None]

    @property
    def running(self) -> int:
        """How many jobs run, or begin to."""
        return len(self._lanes)

    def start(self) -> None:
        """As many lanes as there are slots and jobs."""
        while len(self._lanes) < min(SLOTS, len(self.ready) + len(self.jobs)) and self._may_start():
            lane = _Lane()
            task = asyncio.create_task(self._run(lane), name="job lane")
            self._lanes[task] = lane
            task.add_done_callback(self._on_lane_end)

    def give_back(self) -> None:
        """What was not started."""
        self.given_back += [ready.job for ready in self.ready]
        self.ready.clear()

    async def _run(self, lane: _Lane) -> None:
        turn_ends = time.monotonic() + TURN_SECONDS
        while self.ready and self._may_start():
            ready = self.ready.popleft()
            job, now = ready.job, time.monotonic()
            if now > ready.start_by or now + self._seconds[job.type] > self._ends:
                self.given_back.append(job)
                continue
            lane.job = job
            self.started += 1
            self._ctx.tally.add("jobs.claimed")
            runnable = self._runnables[job.type]
            finished = await attempt.run(self._ctx, job, runnable, runnable.timeout, self._cut)
            lane.job = None
            if finished is not None:
                self.pace.took(finished.seconds)
                self.ended.append(finished)
            if finished is None or finished.waited:
                return
            self._on_end()
            if time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + TURN_SECONDS

    def _on_lane_end(self, task: asyncio.Task[None]) -> None:
        """A slot is free: the next job at hand starts at once, whatever the database is doing meanwhile."""
        del self._lanes[task]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, DatabaseUnavailable):
            self.broken = error
        elif error is not None:
            self.bug = error
        self.start()
        self._on_end()
