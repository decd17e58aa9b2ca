"""Schedules: when the next slot of each is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.domain.schedules import CLOCK_BACK, TOGETHER, UNHEARD, Known
from app.domain.tally import instant
from app.stores import sql
from app.stores.payloads import json_text, json_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from app.domain.jobs import NewJob
    from app.domain.schedules import Schedule
    from app.stores.database import Database

SQL = sql.load("schedules")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A schedule as it is to stand."""

    name: str

    revision: int | None
    """The one that was seen; None: there was no row."""

    fingerprint: str

    anchor_at: datetime
    next_at: datetime | None
    last_slot: datetime | None = None

    begins: bool = False
    """It starts anew: what was missed before is forgotten."""

    configured_at: datetime | None = None
    """Of one that begins: when this process read its configuration."""

    removed: bool = False

    objects: bool = False
    """Nothing is changed but that this process, which has another timing, has said so."""

    jobs: Mapping[datetime, NewJob] = field(default_factory=dict)
    """What is queued for it, by slot."""

    missed: int = 0
    missed_slot: datetime | None = None

    uncounted: bool = False
    """More were missed than `missed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What came of it."""

    fired: int
    """Jobs that were queued."""

    names: Collection[str]
    """Schedules that were kept or moved here. With the others another tick was faster, or they are refused."""

    refused: Mapping[str, str]
    """Whose jobs the database does not take, and why. They stay as they were."""


class Schedules:
    """One row a schedule that was ever configured."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> tuple[datetime, dict[str, Known]]:
        """The database's clock, and every schedule that is known, by name; those too that were removed."""
        found = await self._database.fetch(SQL["read"])
        now: datetime = found[0]["now"]
        rows = [{name: value for name, value in row.items() if name != "now"} for row in found]
        return now, {row["name"]: Known(**row) for row in rows if row["name"] is not None}

    async def move(self, moves: Sequence[Move]) -> Moved:
        """Queue jobs and move schedules past their slots, in one transaction. Of two ticks at once one does each.

        Raises:
            ValueError: a payload holds what cannot be stored.
        """
        [row] = await self._database.fetch(SQL["move"], {"moves": json_text("moves", [_given(move) for move in moves])})
        return Moved(
            fired=row["fired"],
            names=frozenset(json_value(row["moved"]) or ()),
            refused=json_value(row["refused"]) or {},
        )

    async def next_at(self, schedules: Collection[Schedule]) -> datetime | None:
        """The first slot of these; in the past, when one is due. None also of those that no tick has seen."""
        [found] = await self._database.fetch(SQL["look"], look_params(schedules))
        at: datetime | None = found["next_slot_at"]
        return at


def look_params(
    schedules: Collection[Schedule], *, age: timedelta = timedelta(0), unheard: timedelta = UNHEARD
) -> dict[str, Any]:
    """What the look needs to know of the configuration, and how long ago this process read it."""
    wanted = [{"name": schedule.name, "fingerprint": schedule.timing.fingerprint} for schedule in schedules]
    return {"schedules": json.dumps(wanted), **_seconds(clock_back=CLOCK_BACK, older=age + TOGETHER, unheard=unheard)}


def _seconds(**spans: timedelta) -> dict[str, float]:
    return {f"{name}_seconds": span.total_seconds() for name, span in spans.items()}


def _given(move: Move) -> dict[str, Any]:
    return {
        "name": move.name,
        "revision": move.revision,
        "fingerprint": move.fingerprint,
        "begins": move.begins,
        "configured_at": _text(move.configured_at),
        "removed": move.removed,
        "objects": move.objects,
        "anchor_at": _text(move.anchor_at),
        "next_at": _text(move.next_at),
        "last_slot": _text(move.last_slot),
        "fired_slot": _text(max(move.jobs, default=None)),
        "missed": move.missed,
        "missed_slot": _text(move.missed_slot),
        "jobs": [{"slot": instant(slot), "job": _job(job)} for slot, job in move.jobs.items()],
    }


def _job(job: NewJob) -> dict[str, Any]:
    return {
        "type": job.type,
        "payload": job.payload,
        "queue": job.queue,
        "priority": job.priority,
        "unique_key": job.unique_key,
    }


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
