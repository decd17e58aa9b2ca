"""Sources: when each is due, and what its last rounds came to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from app.domain.jobs import retry_delay
from app.stores import jobs, sql
from app.stores.database import rows
from app.stores.text import array, clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from app.domain.jobs import Job
    from app.stores.database import Database

SQL = sql.load("sources")

GET = text("SELECT fingerprint, etag, last_modified, primed_at FROM wakebell.sources WHERE name = :name")
NEXT_DUE = text(
    "SELECT min(due_at) AS due_at FROM wakebell.sources WHERE name = ANY (CAST(CAST(:names AS text) AS text[]))",
)
STORED = text(
    "UPDATE wakebell.sources SET etag = :etag, last_modified = :last_modified, primed_at = coalesce(primed_at, now()), "
    "last_round_at = now(), last_success_at = now(), failures = 0, last_error = NULL WHERE name = :name",
)
UNCHANGED = text(
    "UPDATE wakebell.sources SET last_success_at = now(), failures = 0, last_error = NULL "
    "WHERE name = :name AND fingerprint = :fingerprint RETURNING name",
)

MOVED = timedelta(minutes=1)
"""When a fetch is tried again whose source was given another address meanwhile: that one is still to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A source as the configuration has it."""

    name: str
    fingerprint: str
    every: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What a round needs to know of the ones before it."""

    fingerprint: str
    etag: str | None
    last_modified: str | None
    primed_at: datetime | None


class Sources:
    """One row a source that was ever configured."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(self, wanted: Sequence[Wanted]) -> int:
        """Queue a fetch for each source that is due, and tell how many were. Two ticks at once share them."""
        given = [
            {"name": w.name, "fingerprint": w.fingerprint, "every_seconds": w.every.total_seconds()} for w in wanted
        ]
        [found] = await self._database.fetch(SQL["plan"], {"wanted": json.dumps(given)})
        return int(found["due"])

    async def get(self, name: str) -> SourceState | None:
        """The source's state; None when no tick has planned it yet."""
        found = await self._database.fetch(GET, {"name": name})
        return SourceState(**found[0]) if found else None

    async def keep_unchanged(self, job: Job, name: str, fingerprint: str) -> None:
        """A 304: the source answers, nothing is new and nothing ages. Finishes the job with it; raises LeaseLost."""
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            if await rows(db, UNCHANGED, {"name": name, "fingerprint": fingerprint}):
                await jobs.finish_in(db, job, "done", result={"unchanged": True})
            else:
                await jobs.finish_in(db, job, "snooze", delay=MOVED)

    async def fail(self, job: Job, name: str, fingerprint: str, reason: str, *, jitter: float) -> int:
        """A round that failed: told, and tried again after the usual delays while its next slot is not nearer.

        Returns how many rounds in a row have failed; 0 when the source has been given another address meanwhile.
        Finishes the job with it; raises LeaseLost.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            params = {"name": name, "fingerprint": fingerprint, "reason": clean(reason)}
            found = await rows(db, SQL["fail"], params)
            if not found:
                await jobs.finish_in(db, job, "snooze", delay=MOVED)
                return 0
            delay = retry_delay(job.attempt - job.crashes, jitter=jitter)
            if delay.total_seconds() < found[0]["seconds_to_slot"]:
                await jobs.finish_in(db, job, "retry", delay=delay, error=reason)
            else:
                await jobs.finish_in(db, job, "cancelled", error=reason)
            return int(found[0]["failures"])

    async def next_due_at(self, names: Sequence[str]) -> datetime | None:
        """When the first of these sources is due. UTC."""
        [found] = await self._database.fetch(NEXT_DUE, {"names": array(names)})
        due_at: datetime | None = found["due_at"]
        return due_at


async def lock_in(db: AsyncConnection, name: str) -> dict[str, Any] | None:
    """The source's fingerprint and primed mark, locked to the end of the transaction."""
    found = await rows(db, SQL["lock"], {"name": name})
    return found[0] if found else None


async def store_in(db: AsyncConnection, name: str, *, etag: str | None, last_modified: str | None) -> None:
    """A complete round was stored: its validators, its mark, and no failure any more."""
    await db.execute(STORED, {"name": name, "etag": etag, "last_modified": last_modified})
