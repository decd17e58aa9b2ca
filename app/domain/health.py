"""Whether the service is well: `pass`, `warn` or `fail`, and why.

The answer's form is `application/health+json` (draft-inadarei-api-health-check).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.domain.tally import instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

Status = Literal["pass", "warn", "fail"]

WARN_AFTER, FAIL_AFTER = 1.5, 3.0
"""Times `expected_every_minutes` without a tick: one that is late, as GitHub's often are; and one that stays away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the database says, by its clock."""

    now: datetime
    first_tick_at: datetime | None
    """Of those that are kept."""

    last_tick_at: datetime | None
    """When the latest began, whether it has ended or not."""

    last_tick_status: str | None
    """Of the latest that has ended; a tick that was killed never does."""

    last_success_at: datetime | None
    """When the latest that was `ok` or `partial` ended."""

    oldest_due_at: datetime | None
    """When the job became due that has been waiting longest."""

    open_alerts: Sequence[str]
    """`kind:subject`, oldest first."""

    failing_sources: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The status, and the detail that is shown to those who may see it."""

    status: Status
    checks: dict[str, Any]


def judge(facts: Facts, *, expected_every: timedelta) -> Health:
    """The worst of its parts decides. No tick at all yet is a warning: a service that was deployed a minute ago."""
    parts: dict[str, tuple[Status, dict[str, Any]]] = {
        "tick:age": _tick(facts, expected_every),
        "alerts:open": (_warn(facts.open_alerts), {"observedValue": list(facts.open_alerts)}),
        "jobs:oldest_due": _oldest_due(facts, expected_every),
        "sources:failing": (_warn(facts.failing_sources), {"observedValue": list(facts.failing_sources)}),
    }
    statuses = {status for status, _ in parts.values()}
    worst: Status = "fail" if "fail" in statuses else "warn" if "warn" in statuses else "pass"
    return Health(status=worst, checks={name: [{"status": status, **told}] for name, (status, told) in parts.items()})


def _tick(facts: Facts, expected_every: timedelta) -> tuple[Status, dict[str, Any]]:
    told: dict[str, Any] = {
        "last_tick_at": _at(facts.last_tick_at),
        "last_tick_status": facts.last_tick_status,
        "last_success_at": _at(facts.last_success_at),
        "last_success_age_s": _age(facts, facts.last_success_at),
        "observedValue": _age(facts, facts.last_tick_at),
        "observedUnit": "s",
    }
    if facts.last_tick_at is None:
        return "warn", {**told, "overdue": False, "output": "nobody has rung yet"}
    age = facts.now - facts.last_tick_at
    told["overdue"] = age > WARN_AFTER * expected_every
    if age > FAIL_AFTER * expected_every:
        return "fail", {**told, "output": "nobody rings: look at the scheduler"}
    if facts.last_tick_status == "failed":
        return "fail", {**told, "output": "the last tick failed: look at the log"}
    if facts.now - (facts.last_success_at or facts.first_tick_at or facts.now) > FAIL_AFTER * expected_every:
        return "fail", {**told, "output": "ticks begin and do not end: look at the host's memory and time limits"}
    return ("warn" if told["overdue"] else "pass"), told


def _oldest_due(facts: Facts, expected_every: timedelta) -> tuple[Status, dict[str, Any]]:
    age = _age(facts, facts.oldest_due_at)
    late = age is not None and age > FAIL_AFTER * expected_every.total_seconds()
    return ("warn" if late else "pass"), {"observedValue": age, "observedUnit": "s"}


def _warn(found: Sequence[str]) -> Status:
    return "warn" if found else "pass"


def _age(facts: Facts, at: datetime | None) -> int | None:
    return None if at is None else max(round((facts.now - at).total_seconds()), 0)


def _at(at: datetime | None) -> str | None:
    return None if at is None else instant(at)
