"""Numbers for a monitor: counted to a cap or estimated, so that asking costs the same however much is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.domain.metrics import MOST_COUNTED, MOST_QUEUES, MOST_TICKS, Numbers
from app.stores import sql
from app.stores.database import rows
from app.stores.listings import BY_INDEX
from app.stores.payloads import json_value
from app.stores.text import array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.stores.database import Database

SQL = sql.load("metrics")

LISTS = ("jobs", "oldest_due", "ended", "messages", "ticks", "alerts", "channels", "sources", "estimates")
SECONDS = ("now", "last_tick", "last_success")


class Metrics:
    """One statement over many tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, *, sources: Sequence[str], channels: Sequence[str]) -> Numbers:
        """The numbers now; of sources and channels, the named ones."""
        params = {
            "most": MOST_COUNTED,
            "most_queues": MOST_QUEUES,
            "most_ticks": MOST_TICKS,
            "sources": array(sources),
            "channels": array(channels),
        }
        async with self._database.transaction() as db:
            await db.execute(BY_INDEX)
            [row] = await rows(db, SQL["read"], params)
        found: dict[str, Any] = {name: json_value(row[name]) or [] for name in LISTS}
        found |= {name: None if row[name] is None else float(row[name]) for name in SECONDS}
        return Numbers(**found, last_status=row["last_status"], last_summary=json_value(row["last_summary"]) or {})
