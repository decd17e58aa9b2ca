"""The queue. Its statements are in `jobs.sql`, what they call in `alembic/sql`; the states in `app/domain/jobs.py`."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg

from app.domain.jobs import NewJob
from app.stores import job_params as given
from app.stores import sql
from app.stores.database import rows
from app.stores.job_params import MOST_AT_ONCE, Ending
from app.stores.job_rows import Enqueued, Rescued, StoredJob, Turned, claimed_job, stored_job, turned_job
from app.stores.payloads import json_value, payload_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from app.domain.jobs import Finished, Job
    from app.stores.database import Connection, Database, HandlersConnection
    from app.stores.sql import Statement

__all__ = [
    "Ending",
    "Enqueued",
    "Jobs",
    "Rescued",
    "StoredJob",
    "Turned",
    "enqueue_own_in",
    "finish_in",
    "lock_in",
    "stored_job",
]

SQL = sql.load("jobs")


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
        then: Sequence[NewJob] = (),
        replace: bool = False,
    ) -> Enqueued:
        """Put in a job for a user's handler. Two with one unique key at once: one is created, both get its id.

        `then` is put in when it is done. With `replace`, a job that has this unique key and has not started gets this
        payload, and this `run_after` if there is one; what runs is never touched, and `then` stays as it was first.

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
        if then:
            added = await self._enqueue_one(
                NewJob(
                    type=type,
                    payload={} if payload is None else payload,
                    queue=queue,
                    priority=priority,
                    run_after=run_after,
                    unique_key=unique_key,
                    serial_key=serial_key,
                    max_attempts=max_attempts,
                    then=tuple(then),
                )
            )
        else:
            [row] = await self._asked(SQL["enqueue"], params)
            added = Enqueued(row["id"], row["created"])
        if replace and not added.created:
            about = {name: params[name] for name in ("type", "unique_key", "payload", "run_after")}
            [replaced] = await self._asked(SQL["replace"], about)
            return Enqueued(added.id, created=False, replaced=replaced["id"] == added.id)
        return added

    async def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Put in up to 10,000 jobs for users' handlers at once: all, or none when one of them is refused.

        Returns what is there now for each, in their order. Of two with one unique key the first is created.

        Raises:
            ValueError: what of them is refused, by its place: `jobs[3]: priority must be from 0 to 100`.
        """
        if len(jobs) > MOST_AT_ONCE:
            raise ValueError(f"at most {MOST_AT_ONCE} jobs at once, not {len(jobs)}; put them in in portions")
        if not jobs:
            return []
        params = {"jobs": given.jobs_text(jobs), "most": MOST_AT_ONCE}
        [added] = await self._asked(SQL["enqueue_many"], params)
        return [Enqueued(abs(job_id), job_id > 0) for job_id in json.loads(added["ids"])]

    async def _enqueue_one(self, job: NewJob) -> Enqueued:
        try:
            [added] = await self.enqueue_many([job])
        except ValueError as error:
            raise ValueError(str(error).removeprefix("jobs[0]").removeprefix(": ").removeprefix(".")) from error
        return added

    async def _asked(self, statement: Statement, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a statement that may be refused."""
        try:
            return await self._database.fetch(statement, params)
        except asyncpg.PostgresError as error:
            raise given.refusal(error) from error

    async def claim(
        self,
        *,
        own: bool,
        limit: int,
        leases: Mapping[str, timedelta],
        token: int,
        queue: str | None = None,
    ) -> list[Job]:
        """Lease due jobs to this tick, the first to be started first.

        Returns at most `limit` jobs of the types in `leases`; none when nothing is due, or an overlapping tick holds
        all that is, or their queues are paused or full. Their `attempt` already counts this run. Queues take turns.

        Args:
            own: the service's own queues, or only users'.
            limit: at most so many.
            leases: how long each type is leased for; the other types are left alone.
            token: random, below 2**63: the fence of what is claimed here.
            queue: of this one alone; one of the other kind than `own` gives nothing.
        """
        params = {"own": own, "most": limit, "leases": given.leases_text(leases), "token": token, "queue": queue}
        claimed = await self._database.fetch(SQL["claim"], params)
        return [claimed_job(row, token) for row in claimed]

    async def turn(
        self,
        *,
        done: Sequence[Finished],
        own: bool,
        limit: int,
        leases: Mapping[str, timedelta],
        token: int,
        queue: str | None = None,
    ) -> Turned:
        """Write down runs that went well, and claim, in one round trip and one commit: what the first frees is found.

        The token is the new claim's; each done job has its own. `done` may be empty, `limit` 0.
        """
        claim = {"own": own, "most": limit, "leases": given.leases_text(leases), "token": token, "queue": queue}
        [row] = await self._database.fetch(SQL["turn"], {**given.done_params(done), **claim})
        turned = json_value(row["turned"])
        finished = set(turned["finished"] or ())
        return Turned(
            claimed=[turned_job(values, token) for values in turned["claimed"] or ()],
            lost=[one.job.id for one in done if one.job.id not in finished],
            size=len(row["turned"]),
        )

    async def finish(
        self,
        job: Job,
        ending: Ending,
        *,
        delay: timedelta | None = None,
        error: str | None = None,
        result: Any = None,
        traceback: str | None = None,
    ) -> bool:
        """Write down how the run ended. False: the lease was lost, another tick has the job, nothing was written.

        Error and traceback of a `retry` and of a `failed` run are kept among the job's failures.
        """
        params = given.finish_params(job, ending, delay=delay, error=error, result=result, traceback=traceback)
        [finished] = await self._database.fetch(SQL["finish"], params)
        return finished["status"] is not None

    async def release(self, jobs: Sequence[Job]) -> int:
        """Give back jobs that were not started: due as before, no attempt spent.

        Returns how many: not those whose lease was lost.
        """
        [found] = await self._database.fetch(SQL["release"], given.fences(jobs))
        return int(found["released"])

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

    async def count_startable(self, types: Iterable[str], *, limit: int = 1000, queue: str | None = None) -> int:
        """How many jobs of these types a claim could take now, of that queue alone if one is given; to `limit`."""
        params = {"types": json.dumps(list(types)), "most": limit, "queue": queue}
        [found] = await self._database.fetch(SQL["count_startable"], params)
        return int(found["startable"])

    async def prune(self, *, keep: timedelta, limit: int) -> int:
        """Delete at most `limit` jobs that ended longer than `keep` ago, oldest first. Returns how many."""
        params = {"keep_seconds": keep.total_seconds(), "most": limit}
        [found] = await self._database.fetch(SQL["prune"], params)
        return int(found["pruned"])

    async def cancel(self, job_id: int) -> str | None:
        """Take out a job that has not started or waits for its next try.

        Returns its status now: `cancelled`, or `running`, `done`, `failed` when it is too late; None: no such job.

        Raises:
            ValueError: it is one of the service's own.
        """
        [found] = await self._asked(SQL["cancel"], {"id": job_id})
        return _status(found)

    async def retry(self, job_id: int) -> str | None:
        """Run a job again, now: one that failed or was cancelled with all its tries, a pending one before its time.

        Returns its status now: `pending`, or `running` and `done`, which are left as they are; `taken`, as it was left
        too, since another job has its unique key; None: no such job.

        Raises:
            ValueError: it is one of the service's own and has not failed.
        """
        [found] = await self._asked(SQL["retry"], {"id": job_id})
        return _status(found)

    async def retry_all(self, type: str, *, limit: int = 1000) -> int:  # noqa: A002 - the column's name
        """Run failed jobs of a type again, the oldest first, at most `limit`. Returns how many.

        Those whose unique key another job has are passed by.
        """
        [found] = await self._database.fetch(SQL["retry_all"], {"type": type, "most": limit})
        return int(found["retried"])

    async def reschedule(self, job_id: int, run_after: datetime) -> str | None:
        """Give a pending job another time.

        Returns its status: `pending`, it has the new time; anything else, it is too late; None: no such job.

        Raises:
            ValueError: it is one of the service's own.
        """
        [found] = await self._asked(SQL["reschedule"], {"id": job_id, "run_after": run_after})
        return _status(found)

    async def get(self, job_id: int) -> StoredJob | None:
        """One job as it stands; None when there is no such job."""
        found = await self._database.fetch(SQL["get"], {"id": job_id})
        return stored_job(found[0]) if found else None


async def lock_in(db: Connection | HandlersConnection, job: Job) -> None:
    """Hold the job to the end of the transaction: whatever is written in it is written by whom the job belongs to.

    Raises:
        LeaseLost: it belongs to another tick.
    """
    [found] = await rows(db, SQL["lock"], {"id": job.id, "token": job.token})
    if not found["locked"]:
        raise given.lost(job)


async def finish_in(
    db: Connection | HandlersConnection,
    job: Job,
    ending: Ending,
    *,
    delay: timedelta | None = None,
    error: str | None = None,
    result: Any = None,
    traceback: str | None = None,
) -> None:
    """`Jobs.finish` in the transaction of what the run has written.

    Raises:
        LeaseLost: another tick has the job; let it roll the transaction back.
    """
    params = given.finish_params(job, ending, delay=delay, error=error, result=result, traceback=traceback)
    [finished] = await rows(db, SQL["finish"], params)
    if finished["status"] is None:
        raise given.lost(job)


async def enqueue_own_in(
    db: Connection,
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


def _status(row: Mapping[str, Any]) -> str | None:
    status: str | None = row["status"]
    return status
