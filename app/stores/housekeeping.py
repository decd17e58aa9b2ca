"""Housekeeping: which rows have had their time, in every table."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from app.stores import sql
from app.stores.events import kept_seconds

if TYPE_CHECKING:
    from app.stores.database import Database

SQL = sql.load("housekeeping")

TICKS_KEPT = timedelta(days=30)
"""How long the history of ticks goes back."""


class Kept(Protocol):
    """How long rows are kept, as the configuration says."""

    @property
    def items(self) -> timedelta:
        """Counted from an item's last sighting to its source's last complete round."""
        ...

    @property
    def jobs(self) -> timedelta:
        """From their end."""
        ...

    @property
    def conversations(self) -> timedelta:
        """From the last thing said in them."""
        ...

    @property
    def messages(self) -> timedelta:
        """From their end."""
        ...


class Housekeeping:
    """What falls due when rows grow old."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(self) -> bool:
        """Queue one pruning job, unless there is one. Whether it was queued."""
        return bool(await self._database.fetch(SQL["plan"]))


def kept_params(kept: Kept) -> dict[str, float]:
    """What `look` asks by."""
    return {
        "jobs_seconds": kept.jobs.total_seconds(),
        "events_seconds": kept_seconds(kept.jobs),
        "messages_seconds": kept.messages.total_seconds(),
        "conversations_seconds": kept.conversations.total_seconds(),
        "items_seconds": kept.items.total_seconds(),
        "ticks_seconds": TICKS_KEPT.total_seconds(),
    }
