"""The queue. Its statements are in `jobs.sql`, what they call in `alembic/sql`; the states in `app/domain/jobs.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy.exc import DBAPIError

from app.domain.errors import LeaseLost
from app.domain.jobs import Job
from app.stores import sql
from app.stores.database import rows
from app.stores.payloads import json_value, payload_text, result_text
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from app.stores.database import Database

SQL = sql.load("jobs")

REFUSED = "22023"
"""SQLSTATE that `wakebell.enqueue` raises for arguments it does not take."""

Ending = Literal["done", "cancelled", "failed", "retry", "snooze", "release", "interrupted"]
"""How a run ended.

`retry`: it failed, again after a delay. `snooze`: again after a delay, the run does not count. `release`: it was never
started, due as before, the run does not count. `interrupted`: the process was told to stop, due as before, counted as a
crash.
"""


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that is there now."""

    id: int

    created: bool
    """False: one of this type and unique key was pending or running already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """What a rescue found."""

    pending: int
    """Jobs whose lease had run out and that are due again."""

    failed: int
    """Those whose process died once too often."""

    promoted: int
    """Jobs that stood in line behind nobody and may start now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job as it stands in the table, for people to see."""

    id: int
    type: str
    payload: Mapping[str, Any]
    queue: str
    priority: int
    status: str
    run_after: datetime

    waiting: bool
    """Behind another job of its serial key."""

    held: bool
    """Parked: no process that ticked knew its type."""

    attempts: int
    crashes: int
    max_attempts: int
    unique_key: str | None
    serial_key: str | None

    last_error: str | None
    """Of the last run that failed, also when a later one did not."""

    result: Any
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Jobs:
    """What is to be done, and what became of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enqueue(
        self,
        *,
        type: str,  # noqa: A002 - the column's name
        payload: Mapping[str, Any] | None = None,
        queue: str = "default",
        priority: int = 0,
        run_after: datetime | None = None,
        unique_key: str | None = None,
        serial_key: str | None = None,
        max_attempts: int = 4,
    ) -> Enqueued:
        """Put in a job for a user's handler. Two with one unique key at once: one is created, both get its id.

        Raises:
            ValueError: what of it is refused, in one sentence; for a payload with the path.
        """
        params = {
            "type": type,
            "payload": payload_text({} if payload is None else payload),
            "queue": queue,
            "priority": priority,
            "run_after": run_after,
            "unique_key": unique_key,
            "serial_key": serial_key,
            "max_attempts": max_attempts,
        }
        try:
            [added] = await self._database.fetch(SQL["enqueue"], params)
        except DBAPIError as error:
            raise _refusal(error) from error
        return Enqueued(added["id"], added["created"])

    async def claim(self, *, own: bool, limit: int, leases: Mapping[str, timedelta], token: int) -> list[Job]:
        """Lease due jobs to this tick, the first to be started first.

        Returns at most `limit` jobs of the types in `leases`; none when nothing is due, or an overlapping tick holds
        all that is, or their queues are paused or full. Their `attempt` already counts this run. Queues take turns.

        Args:
            own: the service's own queues, or only users'.
            limit: at most so many.
            leases: how long each type is leased for; the other types are left alone.
            token: random, below 2**63: the fence of what is claimed here.
        """
        seconds = {name: lease.total_seconds() for name, lease in leases.items()}
        params = {"own": own, "most": limit, "leases": json.dumps(seconds), "token": token}
        claimed = await self._database.fetch(SQL["claim"], params)
        return [_job(row, token) for row in claimed]

    async def finish(
        self,
        job: Job,
        ending: Ending,
        *,
        delay: timedelta | None = None,
        error: str | None = None,
        result: Any = None,
    ) -> bool:
        """Write down how the run ended. False: the lease was lost, another tick has the job, nothing was written."""
        params = _finish_params(job, ending, delay, error, result)
        [finished] = await self._database.fetch(SQL["finish"], params)
        return finished["status"] is not None

    async def release(self, job: Job) -> bool:
        """Give back a job that was not started: due as before, no attempt spent. False: its lease was lost."""
        return await self.finish(job, "release")

    async def rescue(self, *, limit: int = 1000) -> Rescued:
        """Bring back what a killed tick left leased, and what was left in line behind nobody.

        The first thing a tick does, and again when a claim came back empty. At most `limit` of either.
        """
        found = [row["status"] for row in await self._database.fetch(SQL["rescue"], {"most": limit})]
        return Rescued(
            pending=found.count("pending"),
            failed=found.count("failed"),
            promoted=found.count("promoted"),
        )

    async def park(self, types: Iterable[str]) -> int:
        """Take due jobs whose type is none of `types`, users' types, out of the way of claims; no attempt is spent.

        Those parked earlier whose type is among them are due again. Returns how many were parked, at most about 10,000:
        more is left for the next call.
        """
        [found] = await self._database.fetch(SQL["park"], {"types": json.dumps(list(types))})
        return int(found["parked"])

    async def count_startable(self, types: Iterable[str], *, limit: int = 1000) -> int:
        """How many jobs of these types a claim could take now, counted to `limit`; own types among them."""
        params = {"types": json.dumps(list(types)), "most": limit}
        [found] = await self._database.fetch(SQL["count_startable"], params)
        return int(found["startable"])

    async def next_due_at(self) -> datetime | None:
        """When the next job may start; in the past when one is due, None when none is pending."""
        [found] = await self._database.fetch(SQL["next_due_at"])
        due: datetime | None = found["next_due_at"]
        return due

    async def prune(self, *, keep: timedelta, limit: int) -> int:
        """Delete at most `limit` jobs that ended longer than `keep` ago, oldest first. Returns how many."""
        params = {"keep_seconds": keep.total_seconds(), "most": limit}
        [found] = await self._database.fetch(SQL["prune"], params)
        return int(found["pruned"])

    async def get(self, job_id: int) -> StoredJob | None:
        """One job as it stands; None when there is no such job."""
        found = await self._database.fetch(SQL["get"], {"id": job_id})
        return stored_job(found[0]) if found else None


def stored_job(row: Mapping[str, Any]) -> StoredJob:
    """A job out of a row whose payload and result are text."""
    return StoredJob(**{**row, "payload": json_value(row["payload"]), "result": json_value(row["result"])})


async def lock_in(db: AsyncConnection, job: Job) -> None:
    """Hold the job to the end of the transaction: whatever is written in it is written by whom the job belongs to.

    Raises:
        LeaseLost: it belongs to another tick.
    """
    [found] = await rows(db, SQL["lock"], {"id": job.id, "token": job.token})
    if not found["locked"]:
        raise _lost(job)


async def finish_in(
    db: AsyncConnection,
    job: Job,
    ending: Ending,
    *,
    delay: timedelta | None = None,
    error: str | None = None,
    result: Any = None,
) -> None:
    """`Jobs.finish` in the transaction of what the run has written.

    Raises:
        LeaseLost: another tick has the job; let it roll the transaction back.
    """
    [finished] = await rows(db, SQL["finish"], _finish_params(job, ending, delay, error, result))
    if finished["status"] is None:
        raise _lost(job)


async def enqueue_own_in(
    db: AsyncConnection,
    *,
    type: str,  # noqa: A002 - the column's name
    payload: Mapping[str, Any],
    queue: str,
    unique_key: str | None = None,
    max_attempts: int = 4,
    delay: timedelta = timedelta(),
) -> Enqueued:
    """Put in one of the service's own jobs in the transaction of what it is about. `queue` begins with `wakebell.`."""
    params = {
        "type": type,
        "payload": payload_text(payload),
        "queue": queue,
        "unique_key": unique_key,
        "max_attempts": max_attempts,
        "delay_seconds": delay.total_seconds(),
    }
    [added] = await rows(db, SQL["enqueue_own"], params)
    return Enqueued(added["id"], added["created"])


def _finish_params(
    job: Job,
    ending: Ending,
    delay: timedelta | None,
    error: str | None,
    result: Any,
) -> Mapping[str, Any]:
    return {
        "id": job.id,
        "token": job.token,
        "outcome": ending,
        "delay_seconds": None if delay is None else delay.total_seconds(),
        "error": None if error is None else clean(error),
        "result": result_text(result),
    }


def _job(row: Mapping[str, Any], token: int) -> Job:
    return Job(
        id=row["id"],
        type=row["type"],
        payload=json_value(row["payload"]),
        queue=row["queue"],
        attempt=row["attempts"],
        crashes=row["crashes"],
        max_attempts=row["max_attempts"],
        token=token,
        lease_until=row["lease_until"],
    )


def _refusal(error: DBAPIError) -> Exception:
    if getattr(error.orig, "sqlstate", None) != REFUSED:
        return error
    told = str(error.orig.__cause__ if error.orig is not None else error)
    return ValueError(told.removeprefix("wakebell.enqueue: "))


def _lost(job: Job) -> LeaseLost:
    return LeaseLost(f"the lease of job {job.id} ({job.type}) ran out and another tick has it")
