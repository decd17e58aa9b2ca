"""For hosts that never sleep: ticks on a schedule of its own, and whenever there is something to do in between.

    look --> nothing due --> wait for `poll` --> look
      `----> due, or time for a tick --> tick --> look

May run beside ticks by HTTP and beside others of its kind: they share what is due as ticks do. It keeps connections to
the database open, so that a database which sleeps when nobody asks it stays awake.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import signal
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app import handlers, tick
from app.clients import heartbeat
from app.domain.errors import DatabaseUnavailable, SchemaOutdated

if TYPE_CHECKING:
    from datetime import timedelta

    from app.context import Service

log = logging.getLogger(__name__)

WAITS = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds until the next look after one that failed, the last for all later ones."""

RESCUE_SECONDS = 30.0
"""From one search for what a killed process left leased to the next; a tick begins with one."""

ECHO_SECONDS = 1.0
"""A signal within this time is the same order: `make` and `timeout` pass on what the terminal has sent already."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def run(service: Service, *, every: timedelta, poll: timedelta) -> None:
    """Work until told to stop by SIGTERM or SIGINT: a running tick winds down. Told once more, later: at once."""
    worker = Worker(service, every=every, poll=poll)
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, worker.stop)
    try:
        await worker.run()
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


class Worker:
    """One loop of looks and ticks."""

    def __init__(self, service: Service, *, every: timedelta, poll: timedelta) -> None:
        self._service = service
        self._every = every.total_seconds()
        self._poll = poll.total_seconds()
        self._types = list(handlers.all_types(service.handlers))
        self._task: asyncio.Task[Any] | None = None
        self._ticking = False
        self._told_at: float | None = None
        self._failed = 0
        """Looks in a row."""

        self._away = False
        """The log has been told that the database cannot be used."""

        # By the monotonic clock; a source's due time is the database's, so only the time left until then counts.
        self._tick_at = -math.inf
        self._source_due_at = math.inf
        self._slot_due_at = math.inf
        self._held_until = math.inf
        self._rescued_at = -math.inf

    async def run(self) -> None:
        """Until `stop` is called."""
        self._task = asyncio.current_task()
        stopping = self._service.stopping
        try:
            async with self._service.stores.database.held():
                while not stopping.requested:
                    wait = await self._look()
                    if wait and not stopping.requested:
                        await asyncio.sleep(wait)
        except asyncio.CancelledError:
            if self._told_at is None or self._task is None or self._task.uncancel():
                raise  # by somebody else

    def stop(self) -> None:
        """What waits is left at once, a running tick winds down; told again, later, it is cut off too."""
        now = time.monotonic()
        again = self._told_at is not None and now - self._told_at > ECHO_SECONDS
        first = self._told_at is None
        self._told_at = now if first else self._told_at
        self._service.stopping.request()
        if self._task is not None and (again or (first and not self._ticking)):
            self._task.cancel()

    async def _look(self) -> float:
        """Tick if there is something to do. Returns how many seconds to wait for the next look."""
        told = False
        try:
            scheduled = time.monotonic() >= self._tick_at
            if not await self._something_due() and not scheduled:
                self._well()
                return self._poll
            told = scheduled
            summary = await self._tick(scheduled=scheduled)
        except (DatabaseUnavailable, SchemaOutdated) as error:
            if not self._away:
                log.error("database cannot be used", extra={"reason": str(error)})  # noqa: TRY400 - no bug: no traceback
                if not told:  # by the tick
                    await self._tell_no_tick(error)
            self._away = True
            return await self._badly()
        except Exception:
            log.exception("tick crashed")
            return await self._badly()
        if summary["status"] == "failed":
            return await self._badly()
        self._well()
        goes_on = summary["jobs"]["remaining"] and (summary["jobs"]["claimed"] or summary["budget_exhausted"])
        return 0 if goes_on else self._poll

    async def _tell_no_tick(self, error: DatabaseUnavailable | SchemaOutdated) -> None:
        words = str(error) if isinstance(error, SchemaOutdated) else tick.NO_DATABASE
        url = self._service.settings.environment.heartbeat_url
        await heartbeat.tell_failure(url, words, random=self._service.random)

    async def _something_due(self) -> bool:
        """Whether a tick would find a job, a source, a slot or what a killed process left; asked of the database."""
        stores = self._service.stores
        await stores.require_schema()
        now = time.monotonic()
        if now >= min(self._source_due_at, self._slot_due_at, self._held_until):
            return True
        if now - self._rescued_at >= RESCUE_SECONDS:
            rescued = await stores.jobs.rescue()
            self._rescued_at = now
            if rescued.failed:  # to be told as an alert
                return True
        if self._service.settings.reminders and await stores.reminders.any_due():
            return True
        return await stores.jobs.count_startable(self._types, limit=1) > 0

    async def _tick(self, *, scheduled: bool) -> dict[str, Any]:
        begun = time.monotonic()
        bounds = self._service.settings.tick
        self._ticking = True
        try:
            summary = await tick.run(
                self._service if scheduled else _without_heartbeat(self._service),
                budget=bounds.budget,
                max_jobs=bounds.max_jobs,
                trigger="work",
            )
        finally:
            self._ticking = False
        self._rescued_at = begun
        if scheduled:
            self._tick_at = begun + self._every
        if not self._service.stopping.requested:
            self._source_due_at = await self._next_source(begun, summary)
            self._slot_due_at = await self._next_slot(begun, summary)
            self._held_until = _end_of_holding(begun, summary)
        return summary

    async def _next_source(self, begun: float, summary: dict[str, Any]) -> float:
        """When the first source is due."""
        due = await self._service.stores.sources.next_due_at(list(self._service.settings.sources))
        if due is None:
            return math.inf
        by_database = datetime.fromisoformat(summary["started_at"])
        return begun + max((due - by_database).total_seconds(), 0) + 1  # that is told to the second

    async def _next_slot(self, begun: float, summary: dict[str, Any]) -> float:
        """When the first slot of a schedule comes."""
        configured = self._service.settings.schedules
        slot = await self._service.stores.schedules.next_at(configured.values()) if configured else None
        if slot is None:
            return math.inf
        left = (slot - datetime.fromisoformat(summary["started_at"])).total_seconds()
        if left <= 0 and not summary["schedules"]["fired"]:
            return math.inf  # its schedule is out of order: the next tick on time tries again
        return begun + max(left, 0) + 1

    async def _badly(self) -> float:
        """The next look must not find the same dead connections."""
        wait = WAITS[min(self._failed, len(WAITS) - 1)]
        self._failed += 1
        await self._service.stores.database.dispose()
        return wait

    def _well(self) -> None:
        if self._away:
            log.info("database can be used again")
        self._away = False
        self._failed = 0


def _end_of_holding(begun: float, summary: dict[str, Any]) -> float:
    """When what is held back from somebody may be told, or what is due before that."""
    if not summary["messages"]["held"] or summary["next_due_at"] is None:
        return math.inf
    left = datetime.fromisoformat(summary["next_due_at"]) - datetime.fromisoformat(summary["started_at"])
    return begun + left.total_seconds() + 1 if left.total_seconds() > 0 else math.inf  # else it is tried already


def _without_heartbeat(service: Service) -> Service:
    """For the ticks between the scheduled ones: a dead-man's switch counts rings, and refuses too many of them."""
    environment = dataclasses.replace(service.settings.environment, heartbeat_url=None)
    return dataclasses.replace(service, settings=dataclasses.replace(service.settings, environment=environment))
