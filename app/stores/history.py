"""What the status page draws: how ticks and rounds have been, and what is left of channels' allowances."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any

from app.stores import sql
from app.stores.database import rows
from app.stores.listings import BY_INDEX
from app.stores.payloads import json_value
from app.stores.text import array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.stores.database import Database

SQL = sql.load("history")

MOST_TICKS = 5000
"""Of which hours are counted: one a minute for three days is less."""

MOST_ROUNDS = 600
"""Over all sources, of each outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """The ticks that began in one hour."""

    began_at: datetime
    ticks: int
    longest_ms: int

    items: int
    """New ones."""

    sent: int
    """Messages."""

    failures: int
    """Jobs given up, rounds and messages that failed, ticks that broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTick:
    """A tick as it stands in the table."""

    id: int
    trigger: str

    status: str | None
    """None: it runs, or was killed."""

    started_at: datetime
    finished_at: datetime | None
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRound:
    """One reading of a source."""

    finished_at: datetime
    failed: bool

    new: int
    """Items; of a round that changed nothing, none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """How it is with a channel."""

    name: str

    quota_limit: int | None
    """None: as many as one likes, or not known."""

    quota_used: int | None
    quota_read_at: datetime | None
    low: bool
    low_reason: str | None
    parked: bool
    parked_reason: str | None
    parked_until: datetime | None


class History:
    """Read only. Each call takes about as long with a million rows as with a thousand."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def hours(self, *, hours: int) -> list[Hour]:
        """The hours in which there was a tick, oldest first."""
        found = await self._database.fetch(SQL["hours"], {"hours": hours, "most": MOST_TICKS})
        return [
            Hour(began_at=row.pop("began_at"), **{name: int(count) for name, count in row.items()}) for row in found
        ]

    async def ticks(self, *, most: int) -> list[PastTick]:
        """The latest, the newest first."""
        found = await self._database.fetch(SQL["ticks"], {"most": most})
        for row in found:
            row["summary"] = json_value(row["summary"]) or {}
        return [PastTick(**row) for row in found]

    async def rounds(self, *, most: int = MOST_ROUNDS) -> dict[str, list[PastRound]]:
        """The latest rounds by source, oldest first; of all sources together so many."""
        async with self._database.transaction() as db:
            await db.execute(BY_INDEX)
            found = await rows(db, SQL["rounds"], {"most": most})
        rounds: dict[str, list[PastRound]] = {}
        for row in found:
            past = PastRound(finished_at=row["finished_at"], failed=row["status"] == "cancelled", new=row["new"] or 0)
            rounds.setdefault(row["source"], []).append(past)
        return rounds

    async def channels(self, names: Sequence[str]) -> list[Gauge]:
        """Of these channels, those that there is something to say of."""
        found = await self._database.fetch(SQL["channels"], {"names": array(names)})
        return [Gauge(**row | {"low": bool(row["low"]), "parked": bool(row["parked"])}) for row in found]
