"""Ticks: the history of batches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any

from app.stores.sql import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from app.stores.database import Database

CLOSE = text(
    "UPDATE wakebell.ticks SET status = :status, finished_at = now(), summary = CAST(CAST(:summary AS text) AS jsonb) "
    "WHERE id = :id",
)
PRUNE = text(
    "DELETE FROM wakebell.ticks WHERE id = ANY (ARRAY(SELECT id FROM wakebell.ticks "
    "WHERE started_at < now() - make_interval(secs => :keep_seconds) ORDER BY started_at LIMIT :most "
    "FOR UPDATE SKIP LOCKED)) RETURNING id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A batch that has begun. A row without a status that is minutes old belongs to a process that was killed."""

    id: int
    started_at: datetime


class Ticks:
    """One row a tick; `looks` begins it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def close(self, tick: Tick, *, status: str, summary: Mapping[str, Any]) -> None:
        """Keep what it came to: `ok`, `partial` or `failed`, and the summary as it is answered."""
        params = {"id": tick.id, "status": status, "summary": json.dumps(summary)}
        await self._database.fetch(CLOSE, params)

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` that began longer than `keep` ago."""
        found = await self._database.fetch(PRUNE, {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)
