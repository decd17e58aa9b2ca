"""The queue's answers: jobs and what became of them, out of rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.domain.jobs import FailedTry, Job
from app.stores.payloads import UNREADABLE, is_deep, json_shown, json_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that is there now."""

    id: int

    created: bool
    """False: one of this type and unique key was pending or running already."""

    replaced: bool = False
    """That one was pending and has what was to replace it."""


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
class Turned:
    """What came of finishing one batch and claiming the next."""

    claimed: list[Job]
    """The first to be started first."""

    lost: list[int]
    """Ids that were not finished: their lease was lost, another tick has them."""

    size: int
    """Characters of all that came, payloads above all."""


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

    failures: tuple[FailedTry, ...] | None = None
    """The last 20 tries that failed, newest last; None on a page of many jobs, where they were not read."""

    then: tuple[Mapping[str, Any], ...] | None = None
    """What is put in when it is done, with the names of `wakebell.enqueue_many`; None as for `failures`."""


def stored_job(row: Mapping[str, Any]) -> StoredJob:
    """A job out of a row whose JSON is text."""
    told = {**row, "payload": json_shown(row["payload"]), "result": json_shown(row["result"])}
    if "failures" in told:
        told["failures"] = tuple(_failed_try(failure) for failure in json_value(told["failures"]))
        told["then"] = _following(json_value(told.pop("then_jobs")))
    return StoredJob(**told)


def claimed_job(row: Mapping[str, Any], token: int) -> Job:
    """A job out of a row of a claim."""
    return Job(
        id=row["id"],
        type=row["type"],
        payload=json_shown(row["payload"]),
        queue=row["queue"],
        attempt=row["attempts"],
        crashes=row["crashes"],
        max_attempts=row["max_attempts"],
        token=token,
        lease_until=row["lease_until"],
    )


def turned_job(values: Sequence[Any], token: int) -> Job:
    """A job out of what a turn tells of it, whose payload is read already."""
    job_id, job_type, payload, queue, attempts, crashes, max_attempts, lease_until = values
    return Job(
        id=job_id,
        type=job_type,
        payload=payload,
        queue=queue,
        attempt=attempts,
        crashes=crashes,
        max_attempts=max_attempts,
        token=token,
        lease_until=datetime.fromisoformat(lease_until),
    )


def _following(jobs: Any) -> tuple[dict[str, Any], ...]:
    """What follows, with words in place of a payload that is nested too deeply; of each level its own."""
    if not isinstance(jobs, list):
        return () if jobs is None else ({"type": "?", "payload": UNREADABLE},)
    told: list[dict[str, Any]] = []
    for job in jobs:
        if not isinstance(job, dict):  # SQL has written it
            told.append({"type": "?", "payload": UNREADABLE})
            continue
        given = job.get("payload")
        payload = UNREADABLE if isinstance(given, dict | list) and is_deep(given) else given
        more = {"then": list(_following(job["then"]))} if job.get("then") else {}
        told.append({**job, "payload": payload, **more})
    return tuple(told)


def _failed_try(failure: Mapping[str, Any]) -> FailedTry:
    return FailedTry(
        attempt=failure["attempt"],
        at=datetime.fromisoformat(failure["at"]),
        error=failure["error"],
        traceback=failure["traceback"],
    )
