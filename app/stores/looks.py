"""What there is for a tick to do, asked in one statement: each store has its own `look`, and here they are one row."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.domain import watches
from app.domain.alerts import SOURCE_FAILURES
from app.domain.ringing import Past
from app.domain.schedules import UNHEARD
from app.stores import sql
from app.stores.housekeeping import kept_params
from app.stores.payloads import json_value
from app.stores.schedules import look_params
from app.stores.sql import text
from app.stores.text import array
from app.stores.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from app.domain.schedules import Schedule
    from app.stores.database import Database
    from app.stores.housekeeping import Kept

MOST = 1000
"""Jobs that are counted."""

PARTS = ("jobs", "messages", "sources", "housekeeping", "alerts", "schedules", "reminders")

LOOKS = " CROSS JOIN ".join(f"({sql.load(part)['look'].text}) AS {part}" for part in PARTS)

LOOK = text(f"SELECT * FROM {LOOKS}")  # noqa: S608

OPEN = text(
    "WITH tick AS (INSERT INTO wakebell.ticks (trigger) VALUES (:trigger) RETURNING id, started_at) "  # noqa: S608
    f"SELECT tick.id, tick.started_at, looked.* FROM tick CROSS JOIN (SELECT * FROM {LOOKS}) AS looked",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Whose work it is."""

    users: Sequence[str]
    """Users' job types that this process knows."""

    own: Sequence[str]
    """The service's own types."""

    sources: Sequence[str]
    recipients: Sequence[str]

    kept: Kept
    chats: Sequence[str] = ()
    """In which somebody may watch something, and be told as a recipient is."""

    schedules: Collection[Schedule] = ()

    read_at: float = field(default_factory=time.monotonic)
    """When the configuration was read, by this process's monotonic clock."""

    unheard: timedelta = UNHEARD
    """How long a schedule is left to a process that was started later, and does not come."""

    overdue: timedelta | None = None
    """How long a job may be due before its queue is behind; None: nobody asks."""

    most_a_day: Mapping[str, int] = field(default_factory=dict)
    """How many messages a day each recipient wants, where it has said so."""

    held_until: Callable[[str, datetime, datetime | None], datetime | None] = lambda *_: None
    """Of a recipient, at an instant, told for the last time but `most_a_day` then: when it may be told; None: now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is to do, at one instant."""

    rescuable: bool
    """Something may be for `jobs.rescue`."""

    strange: bool
    """Something is for `jobs.park`."""

    startable: int
    """Jobs that a claim could take now, to 1,000."""

    owed: bool
    """Somebody is owed something and may be told now, and no job is there to compose it."""

    abandoned: bool
    """A message has no job any more."""

    prunable: bool

    judgeable: bool
    """Something has failed, or an alert is open; or jobs are parked."""

    next_due_at: datetime | None
    """When the next job, source, slot or reminder is due, or what is held may be told. UTC."""

    schedulable: bool = False
    """A slot of a schedule has come, or a schedule is new, changed, back or gone."""

    bookings_due: bool = False
    """A reminder of some booking has fallen due, or a booking is new or has changed."""

    expired: bool = False
    """The time of some message has passed before it was sent."""

    reminder_waiting: bool = False
    """The message of some reminder waits."""

    reminder_rules: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """The reminders that the last tick knew: their fingerprints, and how often in a row their queries have failed."""

    behind: bool = False
    """The first job of some queue has been due for too long."""

    last_ticks: tuple[Past, ...] = ()
    """A few, the latest first; without the one that begins with this look."""

    tellable: tuple[str, ...] = ()
    """Who is meant by `owed`."""

    held: int = 0
    """Items that are owed and not told yet, since those who wait for them may not be told now."""


class Looks:
    """One statement before the work, one after it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, about: About, *, trigger: str) -> tuple[Tick, Look]:
        """Begin a tick, and look. `trigger` is who rang: `http`, `cli`."""
        [row] = await self._database.fetch(OPEN, {**_params(about), "trigger": trigger})
        return Tick(id=row.pop("id"), started_at=row.pop("started_at")), _look(row, about)

    async def look(self, about: About) -> Look:
        """Once more."""
        [row] = await self._database.fetch(LOOK, _params(about))
        return _look(row, about)


def _params(about: About) -> dict[str, Any]:
    return {
        "types": json.dumps([*about.users, *about.own]),
        "users": json.dumps(list(about.users)),
        "most": MOST,
        "recipients": json.dumps([{"name": name, "most": about.most_a_day.get(name)} for name in about.recipients]),
        "chats": array(about.chats),
        "names": array(about.sources),
        "sources": array(about.sources),
        "source_failures": SOURCE_FAILURES,
        **kept_params(about.kept),
        **look_params(about.schedules, age=timedelta(seconds=time.monotonic() - about.read_at), unheard=about.unheard),
    }


def _look(row: dict[str, Any], about: About) -> Look:
    judgeable = [row.pop("work"), row.pop("parked")]
    now, owing = row.pop("now"), json_value(row.pop("owing")) or []
    last_ticks = json_value(row.pop("last_ticks")) or []
    past = [Past(started_at=datetime.fromisoformat(at), status=status) for at, status in last_ticks]
    job_at = row.pop("next_job_at")
    behind = about.overdue is not None and job_at is not None and job_at < now - about.overdue
    due = [job_at, row.pop("next_source_at"), row.pop("next_slot_at"), row["next_booking_at"]]
    booking_at, rules = row.pop("next_booking_at"), json_value(row.pop("reminder_rules")) or {}
    tellable: list[str] = []
    held = 0
    for owed in owing:
        until = _held_until(owed, about, now)
        if until is not None and not owed["composing"]:
            due.append(until)
        if until is not None or owed["waits"]:
            held += owed["count"]
        elif not owed["composing"]:
            tellable.append(owed["name"])
    return Look(
        **row,
        judgeable=any(judgeable) or behind,
        behind=behind,
        last_ticks=tuple(past),
        bookings_due=booking_at is not None and booking_at <= now,
        reminder_rules={name: tuple(known) for name, known in rules.items()},
        next_due_at=min((at for at in due if at is not None), default=None),
        owed=bool(tellable),
        tellable=tuple(tellable),
        held=held,
    )


def _held_until(owed: Mapping[str, Any], about: About, now: datetime) -> datetime | None:
    if watches.conversation_of(owed["name"]) is None:
        return about.held_until(owed["name"], now, _instant(owed["full_since"]))
    muted = _instant(owed["muted_until"])
    return muted if muted is not None and muted > now else None


def _instant(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)
