"""What people do with jobs that are there, by HTTP or on the command line, and why it cannot be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.domain import calls
from app.domain.errors import ServiceError
from app.domain.shown import told

if TYPE_CHECKING:
    from datetime import datetime

    from app.stores.jobs import Jobs, StoredJob

MOST_ID = 2**63 - 1

MOST_RETRIED = 1000
"""Jobs of a type that are retried at once."""

GONE = "there is no such job; one that ended is deleted after [retention] jobs_days"


class NoSuchJob(ServiceError):
    """Nor was there one of late."""

    def __init__(self) -> None:
        super().__init__(GONE)


class NotAsItIs(ServiceError):
    """The job is in a state in which it cannot be done."""


async def get(jobs: Jobs, job_id: int) -> StoredJob:
    """One job as it stands, with its failures.

    Raises:
        NoSuchJob: there is none.
    """
    job = await jobs.get(job_id) if 0 < job_id <= MOST_ID else None
    if job is None:
        raise NoSuchJob
    return job


async def retry(jobs: Jobs, job_id: int) -> StoredJob:
    """Run a job again, now.

    Raises:
        NoSuchJob: there is none.
        NotAsItIs: it runs, is done, or another one has its unique key.
    """
    await get(jobs, job_id)
    try:
        status = await jobs.retry(job_id)
    except ValueError as error:
        raise NotAsItIs(f"job {job_id} cannot be retried: {error}") from None
    if status == "running":
        raise NotAsItIs(f"job {job_id} is running; it is tried again by itself when this try fails")
    if status == "done":
        raise NotAsItIs(f"job {job_id} is done; put in a new one to have its work done once more")
    if status == "taken":
        raise NotAsItIs(
            f"job {job_id} cannot be retried while another job has its unique_key; wait until that has ended"
        )
    return await get(jobs, job_id)


async def cancel(jobs: Jobs, job_id: int) -> StoredJob:
    """Take out a job that has not started, or waits for its next try. One that is cancelled stays so.

    Raises:
        NoSuchJob: there is none.
        NotAsItIs: it runs, or has ended.
    """
    await get(jobs, job_id)
    try:
        status = await jobs.cancel(job_id)
    except ValueError as error:
        raise NotAsItIs(f"job {job_id} cannot be cancelled: {error}") from None
    if status not in {"cancelled", None}:
        raise NotAsItIs(f"job {job_id} is {_state(status)}; only one that waits can be cancelled")
    return await get(jobs, job_id)


async def reschedule(jobs: Jobs, job_id: int, run_after: datetime) -> StoredJob:
    """Give a job that waits another time.

    Raises:
        NoSuchJob: there is none.
        NotAsItIs: it runs, or has ended.
    """
    await get(jobs, job_id)
    try:
        status = await jobs.reschedule(job_id, run_after)
    except ValueError as error:
        raise NotAsItIs(f"job {job_id} cannot be given another time: {error}") from None
    if status not in {"pending", None}:
        raise NotAsItIs(f"job {job_id} is {_state(status)}; only one that waits can be given another time")
    return await get(jobs, job_id)


def shown(job: StoredJob) -> dict[str, Any]:
    """The job as programs are shown it; on a page of many without its failures and what follows on it."""
    whole = told(job)
    if job.type == calls.TYPE:
        whole["payload"] = calls.shown(job.payload)
    if job.failures is None:
        del whole["failures"], whole["then"]
    else:
        whole["then"] = _following(whole["then"])
    return whole


def _following(jobs: Any) -> Any:
    """What follows, down to the last, without credentials in what is to be called."""
    if not isinstance(jobs, list | tuple):
        return jobs
    told = []
    for job in jobs:
        payload = calls.shown(job.get("payload")) if job.get("type") == calls.TYPE else job.get("payload")
        told.append({**job, "payload": payload} | ({"then": _following(job["then"])} if job.get("then") else {}))
    return told


def _state(status: str | None) -> str:
    return "running" if status == "running" else f"{status} already"
