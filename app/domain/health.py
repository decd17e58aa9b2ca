"""Whether the service is well: `pass`, `warn` or `fail`, and why.

The answer's form is `application/health+json` (draft-inadarei-api-health-check).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from app.domain.parked import shown_name
from app.domain.tally import instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from app.domain.parked import Parked

Status = Literal["pass", "warn", "fail"]

WARN_AFTER, FAIL_AFTER = 1.5, 3.0
"""Times `expected_every_minutes` without a tick: one that is late, as GitHub's often are; and one that stays away."""

PARKED_FOR = timedelta(hours=1)
"""A job of an unknown type that has been due for longer is no deployment under way: nobody handles it."""

MOST_NAMES, NAME_LENGTH, MOST_BYTES = 20, 100, 1800
"""Of one check: the whole answer stays below 8 KiB. Twenty alerts about sources with the longest names fit."""


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

    parked: Parked | None = None
    """None: nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The status, and the detail that is shown to those who may see it."""

    status: Status
    checks: dict[str, Any]


def judge(facts: Facts, *, expected_every: timedelta) -> Health:
    """The worst of its parts decides. No tick at all yet is a warning: a service that was deployed a minute ago."""
    parts: dict[str, tuple[Status, dict[str, Any]]] = {
        "tick:age": _tick(facts, expected_every),
        "alerts:open": (_warn(facts.open_alerts), {"observedValue": _names(facts.open_alerts)}),
        "jobs:oldest_due": _oldest_due(facts, expected_every),
        "jobs:held": _held(facts),
        "sources:failing": (_warn(facts.failing_sources), {"observedValue": _names(facts.failing_sources)}),
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


def _held(facts: Facts) -> tuple[Status, dict[str, Any]]:
    parked = facts.parked
    if parked is None or parked.since is None:
        return "pass", {"observedValue": 0, "observedUnit": "jobs", "types": []}
    told = {"observedValue": parked.count, "observedUnit": "jobs", "types": _names(parked.types)}
    if facts.now - parked.since <= PARKED_FOR:
        return "pass", told
    return "warn", {**told, "output": "nobody handles these types: add a handler, or cancel the jobs"}


def _names(names: Sequence[str]) -> list[str]:
    """As many as there is room for."""
    told: list[str] = []
    left = MOST_BYTES
    for given in names[:MOST_NAMES]:
        name = shown_name(given, limit=NAME_LENGTH)
        left -= len(json.dumps(name, ensure_ascii=False).encode()) + len(",")
        if left < 0:
            break
        told.append(name)
    return told


def _warn(found: Sequence[str]) -> Status:
    return "warn" if found else "pass"


def _age(facts: Facts, at: datetime | None) -> int | None:
    return None if at is None else max(round((facts.now - at).total_seconds()), 0)


def _at(at: datetime | None) -> str | None:
    return None if at is None else instant(at)
