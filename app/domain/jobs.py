"""A job is one unit of background work.

    pending ----claim--> running --Done-----> done
        ^                   |------Discard--> cancelled
        |                   |---------------> failed      (its last attempt failed, or trying again cannot help)
        |                   |
        `--- Snooze, a failed attempt, or a lease that ran out

A job that must run again goes back to `pending` with a later `run_after`.
There is no "retrying" or "scheduled" status to keep in step with that column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_PREFIX = "wakebell."
"""Queues whose names begin so hold the service's own work and are refused to users."""

BUILT_IN = frozenset({"call_url"})
"""Types that the service brings along for users, who put them in as their own: into their queues, and counted there."""

DELAYS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))

MAX_CRASHES = 20
"""A job whose process died so often under it is failed: it is probably what kills the process."""

LEASE_MARGIN = timedelta(seconds=10)
"""A lease is the type's time-out and this much more, so that a job never outlives its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job leased to this tick."""

    id: int

    type: str
    """The file name of its handler: `handlers/<type>.py`."""

    payload: Mapping[str, Any]
    """Small, JSON-able, ids rather than rows: rows may change before the job runs."""

    queue: str

    attempt: int
    """1 on the first run, +1 at each claim. A snooze gives its attempt back."""

    crashes: int
    """How many of those runs ended because their process died; they are not counted against `max_attempts`."""

    max_attempts: int

    token: int
    """The fence: every write about this run names it, and changes nothing once the lease is lost."""

    lease_until: datetime
    """UTC, by the database's clock. After this instant another tick may take the job."""

    @property
    def last_attempt(self) -> bool:
        """Whether a failure of this run is final."""
        return self.attempt - self.crashes >= self.max_attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be put in."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    queue: str = "default"
    priority: int = 0

    run_after: datetime | None = None
    """None: at once, or after `delay`."""

    delay: timedelta | None = None
    """By the database's clock, from when it is put in; not together with `run_after`."""

    unique_key: str | None = None
    serial_key: str | None = None
    max_attempts: int = 4

    then: tuple[NewJob, ...] = ()
    """Put in when this one is done, in the same transaction; one whose unique key is taken then is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTry:
    """One run of a job that failed, or that its process did not live to finish."""

    attempt: int
    at: datetime
    error: str | None
    traceback: str | None


@dataclass(frozen=True, slots=True)
class Done:
    """The work is done; `result` (JSON-able) is kept with the job."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run again after `delay`; costs no attempt."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Discard:
    """There is nothing to do and nobody to alarm: ends `cancelled` with this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The handler's own transaction has finished the job already, together with its writes."""


Outcome = Done | Snooze | Discard | Settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that went well and is not written down yet: several are finished at once."""

    job: Job
    result: Any = None

    seconds: float = 0.0
    """How long it took."""

    waited: bool = True
    """It gave way to others on its way."""


def retry_delays(*, jitter: float) -> tuple[timedelta, ...]:
    """`retry_delay` of the first, second ... failure; the last one is for all later."""
    return tuple(retry_delay(attempt, jitter=jitter) for attempt in range(1, len(DELAYS) + 1))


def retry_delay(attempt: int, *, jitter: float) -> timedelta:
    """How long to wait after attempt number `attempt` has failed.

    1 minute, 5 minutes, then 30 minutes for every later one, spread so that jobs that
    failed together do not return together: the result lies in [90 %, 110 %) of that.

    Args:
        attempt: 1 for the first attempt.
        jitter: a random number in [0, 1); 0.5 leaves the delay as it is.

    Raises:
        ValueError: `attempt` is below 1.
    """
    if attempt < 1:
        raise ValueError(f"attempt counts from 1, not {attempt}")
    return DELAYS[min(attempt, len(DELAYS)) - 1] * (0.9 + 0.2 * jitter)
