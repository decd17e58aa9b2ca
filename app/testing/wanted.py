"""What a test says must be in the queue, and what is there, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.domain.shown import instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.stores.jobs import StoredJob

COLUMNS = ("queue", "priority", "unique_key", "serial_key", "max_attempts")

MOST_LISTED = 20
PAYLOAD_SHOWN = 200
"""Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a job is to be like."""

    type: str

    payload: Mapping[str, Any] | None
    """What its payload holds at least."""

    status: str | None

    run_after: datetime | timedelta | None
    """An instant, or a time after it was put in."""

    within: timedelta
    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Raises TypeError for what is no column."""
        for name in self.columns:
            if name not in COLUMNS:
                raise TypeError(f"there is no {name} to look for; there are {', '.join(COLUMNS)}")
        if isinstance(self.run_after, datetime) and self.run_after.tzinfo is None:
            raise TypeError("run_after must have a time zone")

    def fits(self, job: StoredJob) -> bool:
        """Whether the job is like that."""
        return (
            job.type == self.type
            and self.status in {None, job.status}
            and (self.payload is None or _holds(job.payload, self.payload))
            and self._is_due(job)
            and all(getattr(job, name) == value for name, value in self.columns.items())
        )

    def _is_due(self, job: StoredJob) -> bool:
        match self.run_after:
            case timedelta():
                return abs(job.run_after - job.created_at - self.run_after) <= self.within
            case datetime():
                return abs(job.run_after - self.run_after) <= self.within
            case _:
                return True

    def __str__(self) -> str:
        parts = [f"{self.status} job of the type {self.type}" if self.status else f"job of the type {self.type}"]
        if self.payload is not None:
            parts.append(f"with {_json(self.payload)} in its payload")
        if self.run_after is not None:
            after = self.run_after
            when = instant(after) if isinstance(after, datetime) else f"{after} after it was put in"
            parts.append(f"due {when}, give or take {self.within}")
        return ", ".join([*parts, *(f"{name} {value!r}" for name, value in self.columns.items())])


def listed(jobs: Sequence[StoredJob]) -> str:
    """A line for each, cut to what a person reads."""
    if not jobs:
        return "no job was put in"
    told = [
        f"  job {job.id}: {job.type}, {job.status}, due {instant(job.run_after)}, "
        f"queue {job.queue}, {_json(job.payload)}"
        for job in jobs[:MOST_LISTED]
    ]
    more = [f"  and {len(jobs) - MOST_LISTED} more"] if len(jobs) > MOST_LISTED else []
    return "\n".join(["put in were:", *told, *more])


def _holds(whole: Any, part: Any) -> bool:
    """Whether each key of an object is there with what it holds; whatever is no object must be the same."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and _holds(whole[name], inner) for name, inner in part.items()
        )
    same: bool = whole == part and isinstance(whole, bool) == isinstance(part, bool)
    return same


def _json(value: Any) -> str:
    told = json.dumps(value, ensure_ascii=False, default=repr)
    return told if len(told) <= PAYLOAD_SHOWN else f"{told[: PAYLOAD_SHOWN - 1]}…"
