"""Due jobs that nobody starts: of types that nobody handles, or in queues that are behind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING

from app.domain.parked import MOST_COUNTED, MOST_TYPES, UNKNOWN_FOR, Parked
from app.stores import sql

if TYPE_CHECKING:
    from datetime import timedelta

    from app.stores.database import Database

SQL = sql.load("parked")


@dataclass(frozen=True, slots=True, kw_only=True)
class LateQueue:
    """A queue whose first job has been due for too long."""

    queue: str

    id: int
    """Of that job."""

    type: str
    run_after: datetime


async def read(database: Database) -> Parked:
    """How many jobs nobody handles, and of which types."""
    params = {"most": MOST_COUNTED, "most_types": MOST_TYPES, "old_seconds": UNKNOWN_FOR.total_seconds()}
    [row] = await database.fetch(SQL["parked"], params)
    return Parked(**row)


async def late(database: Database, *, overdue: timedelta) -> list[LateQueue]:
    """Queues whose first job has been due for so long while ticks came; at most a hundred, by name."""
    found = await database.fetch(SQL["late"], {"overdue_seconds": overdue.total_seconds()})
    return [LateQueue(**row) for row in found]
