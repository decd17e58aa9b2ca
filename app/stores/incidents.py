"""What people do about alerts: look at them, take one on, mute what is known. `alerts` opens and closes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.stores import sql
from app.stores.listings import Page

if TYPE_CHECKING:
    from app.stores.database import Database

SQL = sql.load("incidents")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlert:
    """An alert as it stands in the table."""

    id: int

    key: str
    """`kind:subject`; one is open for it at most."""

    kind: str
    subject: str

    reason: str | None
    """Of the latest failure."""

    failures: int
    opened_at: datetime
    failed_at: datetime
    resolved_at: datetime | None

    told_at: datetime | None
    """When it was told last; None: not yet, since it is muted."""

    acknowledged_at: datetime | None
    muted_until: datetime | None
    last_job: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute:
    """What is recorded and not told for a while."""

    pattern: str
    until: datetime
    muted_at: datetime


class Incidents:
    """One row an alert, one a mute."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_alerts(
        self, *, limit: int, before: int | None = None, opened: bool | None = None, kind: str | None = None
    ) -> Page[StoredAlert]:
        """The newest first; `opened` None: those that are over too."""
        params = {"limit": limit + 1, "before": before, "open": opened, "kind": kind}
        found = [StoredAlert(**row) for row in await self._database.fetch(SQL["list_alerts"], params)]
        return Page(rows=found[:limit], more=len(found) > limit)

    async def find(self, named: int | str) -> StoredAlert | None:
        """The alert with this id; or the one that is open for this key."""
        params = {"id": named if isinstance(named, int) else None, "key": named if isinstance(named, str) else None}
        found = await self._database.fetch(SQL["find"], params)
        return StoredAlert(**found[0]) if found else None

    async def acknowledge(self, alert_id: int) -> bool:
        """It is not told again while it is open. False: it is not open."""
        return bool(await self._database.fetch(SQL["acknowledge"], {"id": alert_id}))

    async def mute(self, pattern: str, until: datetime | timedelta) -> datetime | None:
        """Tell nothing of the alerts whose keys fit the pattern (`*` stands for anything) until then, or for so long.

        Returns until when; None: that has passed already.
        """
        at = until if isinstance(until, datetime) else None
        seconds = until.total_seconds() if isinstance(until, timedelta) else 0
        await self._database.fetch(SQL["forget_mutes"])
        found = await self._database.fetch(SQL["mute"], {"pattern": pattern, "until": at, "seconds": seconds})
        muted: list[dict[str, Any]] = found
        return muted[0]["until"] if muted else None

    async def unmute(self, pattern: str) -> bool:
        """Whether it was muted."""
        found = await self._database.fetch(SQL["unmute"], {"pattern": pattern})
        return bool(found and found[0]["was_muted"])

    async def list_mutes(self) -> list[Mute]:
        """What is muted now, by its pattern."""
        return [Mute(**row) for row in await self._database.fetch(SQL["list_mutes"])]
