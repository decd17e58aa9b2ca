"""Pauses and limits of queues. What they mean for claims is in `alembic/sql`; a queue without a row has neither."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from app.stores import sql
from app.stores.database import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.stores.database import Connection, Database

SQL = sql.load("queues")

MOST_LISTED = 1000
MOST_COUNTED = 10_000
"""Due jobs of one queue: a backlog of millions would take seconds to count."""

Forever = Literal["forever"]
Nothing = Literal["nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Nothing of the queue is started."""

    until: datetime | timedelta | Forever
    """An instant, or a time from now by the database's clock; `forever`: until somebody ends it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """At most so many jobs are started within any time of this length."""

    count: int
    period: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """What of a queue is to be otherwise. None: stays as it is; `nothing`: is taken away."""

    pause: Pause | Nothing | None = None

    max_running: int | Nothing | None = None
    """At once, over all replicas."""

    starts: Starts | Nothing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQueue:
    """A queue as it stands."""

    name: str

    due: int
    """What a claim could take if it were neither paused nor full, to 10,000."""

    running: int
    max_running: int | None
    max_starts: int | None
    period_seconds: float | None

    paused_until: datetime | Forever | None
    """None: it is not paused, or no more."""

    reason: str | None


class Queues:
    """What may be started of which queue."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self, *, own: bool = False) -> list[StoredQueue]:
        """Queues with jobs that wait or run, and those that are limited or paused, by name; at most 1,000.

        The service's own only with `own`. Where there are more, those that are limited or paused are among them.
        """
        return await self._found(name=None, own=own)

    async def get(self, name: str) -> StoredQueue:
        """One queue; whatever its name is, there may be jobs in it tomorrow."""
        [found] = await self._found(name=name, own=True)
        return found

    async def change(self, name: str, change: QueueChange) -> bool:
        """Change all of it or nothing. False: nothing, since the pause would have ended before it began.

        What a claim has in hand at that moment still starts.
        """
        async with self._database.transaction() as db:
            if not await _pause_in(db, name, change.pause):
                return False
            if change.max_running is not None:
                most = None if change.max_running == "nothing" else change.max_running
                await rows(db, SQL["limit_running"], {"name": name, "max_running": most})
            if change.starts is not None:
                limit = None if change.starts == "nothing" else change.starts
                params = {
                    "max_starts": limit.count if limit else None,
                    "period_seconds": limit.period.total_seconds() if limit else None,
                }
                await rows(db, SQL["limit_starts"], {"name": name, **params})
            return True

    async def _found(self, *, name: str | None, own: bool) -> list[StoredQueue]:
        params = {"name": name, "own": own, "most": MOST_LISTED, "count_to": MOST_COUNTED}
        return [_stored(row) for row in await self._database.fetch(SQL["list"], params)]


async def _pause_in(db: Connection, name: str, pause: Pause | Nothing | None) -> bool:
    """Whether it can be as it is wanted."""
    if pause is None:
        return True
    if pause == "nothing":
        await rows(db, SQL["resume"], {"name": name})
        return True
    params = {
        "name": name,
        "reason": pause.reason,
        "forever": pause.until == "forever",
        "until": pause.until if isinstance(pause.until, datetime) else None,
        "seconds": pause.until.total_seconds() if isinstance(pause.until, timedelta) else None,
    }
    [answer] = await rows(db, SQL["pause"], params)
    paused: bool = answer["paused"]
    return paused


def _stored(row: Mapping[str, Any]) -> StoredQueue:
    return StoredQueue(
        name=row["name"],
        due=row["due"],
        running=row["running"],
        max_running=row["max_running"],
        max_starts=row["max_starts"],
        period_seconds=row["period_seconds"],
        paused_until="forever" if row["forever"] else row["paused_until"],
        reason=row["pause_reason"],
    )
