"""`[schedules.*]`: which job is queued when."""

from __future__ import annotations

import json
import math
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, cast, get_args
from zoneinfo import ZoneInfo

from app.domain import timings
from app.domain.schedules import CatchUp, Schedule
from app.settings.names import check_name
from app.settings.problems import FromEnvironment, choose, path, shown
from app.settings.sections import LEAST_MINUTES, MOST_MINUTES
from app.settings.table import Told
from app.settings.zones import timezone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.domain.schedules import Timing
    from app.settings.table import Table

CATCH_UPS = get_args(CatchUp)

PAYLOAD_BYTES = 256 * 1024
MOST_PRIORITY = 100
MOST_QUEUE_BYTES = 200
OWN_QUEUES = "wakebell."

RINGS = 2
"""Times `expected_every_minutes`: how late a slot may be under `none`, where nothing is said. Just before an ordinary
ring it is once that late; and one ring that is left out must not cost a slot."""


def read_schedules(root: Table, zone: str, expected_every: timedelta) -> dict[str, Schedule]:
    """Those without a problem. `zone` is the service's; what they queue is checked where handlers are known."""
    schedules: dict[str, Schedule] = {}
    for table in root.tables("schedules"):
        check_name(table)
        schedule = _schedule(table, zone, expected_every)
        table.close()
        if schedule is not None:
            schedules[schedule.name] = schedule
    return schedules


def _schedule(table: Table, zone: str, expected_every: timedelta) -> Schedule | None:
    timing = _timing(table, timezone(table, zone))
    job = _job(table)
    payload = _payload(table)
    queue = _queue(table)
    priority = table.whole("priority", 0, least=0, most=MOST_PRIORITY)
    catch_up = _catch_up(table)
    grace = _grace(table, catch_up, RINGS * expected_every)
    if timing is None or job is None:
        return None
    return Schedule(
        name=table.keys[-1],
        written=str(table.values["cron"]).strip(),
        timing=timing,
        job=job,
        payload=payload,
        queue=queue,
        priority=priority,
        catch_up=catch_up,
        grace=grace,
    )


def _timing(table: Table, zone: str) -> Timing | None:
    written = table.text("cron", example=timings.EXAMPLE)
    if not table.has("cron"):
        table.tell("cron", f'is missing: when the job is to be queued; write cron = "{timings.EXAMPLE}"')
    if written is None:
        return None
    try:
        return timings.parse(written, timezone=zone, zone=UTC if zone == "UTC" else ZoneInfo(zone))
    except ValueError as error:
        table.tell("cron", f"{shown(written)} {error}")
        return None


def _job(table: Table) -> str | None:
    job = table.text("job", example="daily_report")
    if not table.has("job"):
        table.tell("job", 'is missing: the type of the jobs that are queued; write job = "NAME" of handlers/NAME.py')
    return None if job is None else str(job)


def _payload(table: Table) -> dict[str, Any]:
    """What JSON can hold and PostgreSQL can store, with every fault of it told."""
    payload = dict(table.table("payload").values)
    faults = list(_faults(payload, ()))
    for keys, fault in faults:
        table.problems.add(table.where("payload", *keys), fault)
    if faults:
        return {}
    plain: dict[str, Any] = _plain(payload)
    if len(json.dumps(plain, ensure_ascii=False).encode()) > PAYLOAD_BYTES:
        table.tell("payload", "must be at most 256 KiB; keep the rest elsewhere and pass its id")
    return plain


def _faults(value: object, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    match value:
        case dict():
            for key, inner in value.items():
                if "\x00" in key:
                    yield keys, f"has the key {path(key)}, which holds a NUL character; rename it"
                yield from _faults(inner, (*keys, key))
        case list():
            for inner in value:
                yield from _faults(inner, keys)
        case str() if "\x00" in value:
            yield keys, "holds a NUL character, which PostgreSQL cannot store; remove it"
        case float() if not math.isfinite(value):
            yield keys, "is not a finite number, which JSON does not have; write another, or a text"
        case None | bool() | int() | float() | str() | Told():
            pass
        case _:
            yield keys, "is a date or a time, which JSON does not have; put it in quotes"


def _plain(value: Any) -> Any:
    """Of JSON's own types alone."""
    match value:
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case FromEnvironment():
            return str(value)
        case Told():
            return None
        case _:
            return value


def _queue(table: Table) -> str:
    queue = table.text("queue", example="reports")
    if queue is None:
        return "default"
    if queue.startswith(OWN_QUEUES):
        table.tell("queue", f'names that begin with "{OWN_QUEUES}" are the service\'s own; choose another')
    elif len(queue.encode()) > MOST_QUEUE_BYTES:
        table.tell("queue", f"is longer than {MOST_QUEUE_BYTES} bytes; write a shorter name")
    return str(queue)


def _catch_up(table: Table) -> CatchUp:
    given = table.text("catch_up", example="latest")
    if given is None:
        return "latest"
    if given not in CATCH_UPS:
        table.tell("catch_up", f"must be one of them, not {shown(given)}; {choose(given, CATCH_UPS, none='')}")
        return "latest"
    return cast("CatchUp", str(given))


def _grace(table: Table, catch_up: CatchUp, usual: timedelta) -> timedelta:
    rule = "a number of at least 0.0167 (one second) and at most a year"
    minutes = table.number(
        "grace_minutes", usual / timedelta(minutes=1), least=LEAST_MINUTES, most=MOST_MINUTES, rule=rule
    )
    if table.has("grace_minutes") and catch_up != "none":
        table.tell("grace_minutes", 'says nothing but with catch_up = "none"; write that, or remove the line')
    return timedelta(minutes=minutes) if table.has("grace_minutes") else usual
