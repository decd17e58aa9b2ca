"""Schedules beside what they queue and what is stored of them: what is wrong with them, and how they are shown."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app import asked
from app.domain import cronwords, pace, schedules, when
from app.domain.shown import instant
from app.plans.schedules import payload_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from app.domain.schedules import Known, Schedule
    from app.settings import Settings

NEXT = 3
"""Slots that a person is shown."""


def problems(settings: Settings, handlers: Mapping[str, Any], *, now: datetime) -> list[str]:
    """Schedules whose jobs no handler here takes, each with its place in the file and what to change."""
    found = ((name, fault) for name, s in settings.schedules.items() for fault in _faults(s, handlers, now))
    return [f"{settings.environment.config_path}: schedules.{name}.{fault}" for name, fault in found]


def _faults(schedule: Schedule, handlers: Mapping[str, Any], now: datetime) -> Iterator[str]:
    try:
        asked.known_type(schedule.job, handlers)
    except asked.Refused as refused:
        yield f"job: {str(refused).removeprefix('type: ')}"
        return
    runnable = handlers[schedule.job]
    model = runnable.module.Payload
    try:
        payload = model.model_validate(payload_at(schedule, now, model))
    except ValidationError as error:
        yield str(asked.refusal(error, within="payload", hidden=schedule.payload))
        return
    if runnable.refusal is not None and (refusal := runnable.refusal(payload)) is not None:
        yield f"payload.{refusal}"


def line(schedule: Schedule, known: Known | None, *, now: datetime, rings: timedelta) -> str:
    """A schedule for people: what it does, and when next, by its own clock. `rings`: how often a tick is expected."""
    what = f"schedule {schedule.name}: {cronwords.told(schedule.timing)}, job {schedule.job}"
    slots = schedules.upcoming(schedule, known, now=now, count=NEXT)
    if not slots:
        return f"{what}; counted from the next tick on"
    zone = schedule.timing.zone
    told = ", ".join(when.told(slot, now=now, zone=zone, language="en") for slot in slots)
    dense = any(later - slot < rings for slot, later in pairwise(slots)) and schedule.catch_up != "all"
    doubt = f"; of the slots between two rings (every {pace.told(rings)}) the newest is fired" if dense else ""
    return f"{what}; next {told} ({schedule.timing.timezone}){doubt}"


def told(schedule: Schedule, known: Known | None, *, now: datetime) -> dict[str, Any]:
    """A schedule for programs, as it is configured and as it stands."""
    timing = schedule.timing
    same = known if known is not None and known.fingerprint == timing.fingerprint else None
    return {
        "name": schedule.name,
        "cron": schedule.written,
        "timezone": timing.timezone,
        "words": cronwords.told(timing),
        "job": schedule.job,
        "catch_up": schedule.catch_up,
        "last_slot": _instant(known.fired_slot) if known else None,
        "fired_at": _instant(known.fired_at) if known else None,
        "due": same is not None and same.next_at is not None and same.next_at <= now,
        "next": [instant(slot) for slot in schedules.upcoming(schedule, known, now=now, count=NEXT)],
        "missed": known.missed_count if known else 0,
        "last_missed_slot": _instant(known.missed_slot) if known else None,
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)
