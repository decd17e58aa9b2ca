"""What the queue's statements are given: jobs to put in, and how runs ended. Refusals become sentences here."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal

from app.domain.errors import LeaseLost
from app.stores.payloads import TOO_DEEP, is_deep, json_text, result_text
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta

    import asyncpg

    from app.domain.jobs import Finished, Job, NewJob

REFUSED = "22023"
"""SQLSTATE that the functions of the database raise for arguments they do not take."""

ABOUT = re.compile(r"^wakebell\.\w+: ")
"""Which of them it was."""

TRACEBACK_LENGTH = 4000
"""Characters of a traceback that are kept: its end, where the fault is."""

MOST_AT_ONCE = 10_000
"""Jobs in one call; what other programs put in by SQL is limited to 1,000."""

USUAL = (("queue", "default"), ("priority", 0), ("unique_key", None), ("serial_key", None), ("max_attempts", 4))
"""What the database says by itself is not sent: thousands of jobs are one parameter."""

Ending = Literal["done", "cancelled", "failed", "retry", "snooze", "release", "interrupted"]
"""How a run ended.

`retry`: it failed, again after a delay. `snooze`: again after a delay, the run does not count. `release`: it was never
started, due as before, the run does not count. `interrupted`: the process was told to stop, due as before, counted as a
crash.
"""


def jobs_text(jobs: Iterable[NewJob]) -> str:
    """Jobs as `wakebell.enqueue_many` takes them.

    Raises:
        ValueError: what cannot be stored, by its path: `jobs[3].payload.name`.
    """
    return json_text("jobs", [_told(job, "jobs", index) for index, job in enumerate(jobs)])


def _told(job: NewJob, place: str, index: int) -> dict[str, Any]:
    if is_deep(job.payload):
        raise ValueError(f"{place}[{index}].payload: {TOO_DEEP}")
    told: dict[str, Any] = {"type": job.type, "payload": job.payload}
    for name, usual in USUAL:
        value = getattr(job, name)
        if value != usual:
            told[name] = value
    if job.run_after is not None:
        if job.run_after.tzinfo is None:
            raise ValueError(f"{place}[{index}]: run_after must have a time zone")
        told["run_after"] = job.run_after.isoformat()
    if job.delay is not None:
        told["delay_seconds"] = job.delay.total_seconds()
    if job.then:
        inner = f"{place}[{index}].then"
        told["then"] = [_told(following, inner, number) for number, following in enumerate(job.then)]
    return told


def finish_params(
    job: Job,
    ending: Ending,
    *,
    delay: timedelta | None,
    error: str | None,
    result: Any,
    traceback: str | None,
) -> Mapping[str, Any]:
    """How one run ended. Whatever the texts hold, it can be written."""
    return {
        "id": job.id,
        "token": job.token,
        "outcome": ending,
        "delay_seconds": None if delay is None else delay.total_seconds(),
        "error": None if error is None else clean(error),
        "result": result_text(result),
        "traceback": None if traceback is None else _tail(traceback),
    }


def fences(jobs: Sequence[Job]) -> Mapping[str, Any]:
    """Which jobs, by which claims; arrays as text, since a bound array costs ten round trips at its first use."""
    return {
        "ids": "{" + ",".join(str(job.id) for job in jobs) + "}",
        "tokens": "{" + ",".join(str(job.token) for job in jobs) + "}",
    }


def done_params(done: Sequence[Finished]) -> Mapping[str, Any]:
    """Several runs that went well."""
    results = {one.job.id: text for one in done if (text := result_text(one.result)) is not None}
    return {
        **fences([one.job for one in done]),
        "results": "{" + ",".join(f'"{job_id}":{text}' for job_id, text in results.items()) + "}" if results else None,
    }


def leases_text(leases: Mapping[str, timedelta]) -> str:
    """How long each type is leased for."""
    return json.dumps({name: lease.total_seconds() for name, lease in leases.items()})


def refusal(error: asyncpg.PostgresError) -> Exception:
    """What to raise for a statement that was refused: a ValueError with the database's sentence, or what it was."""
    if error.sqlstate == REFUSED:
        return ValueError(ABOUT.sub("", str(error)))
    raised: Exception = error
    return raised


def lost(job: Job) -> LeaseLost:
    """For who must let a transaction roll back."""
    return LeaseLost(f"the lease of job {job.id} ({job.type}) ran out and another tick has it")


def _tail(traceback: str) -> str:
    return clean(traceback[-TRACEBACK_LENGTH:], limit=TRACEBACK_LENGTH)
