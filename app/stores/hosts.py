"""Hosts that are read: when each may be asked again. Whose turn it is, the queue's serial keys say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from app.stores import sql
from app.stores.database import rows
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.stores.database import Connection, Database

SQL = sql.load("hosts")

KEPT = timedelta(days=30)
"""How long what is known of a host is kept after its last visit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A host that is left alone, because it has asked for it."""

    refusals: int
    """In a row, of all of its sources."""

    wait: timedelta


class Hosts:
    """One row a host."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prune(self, *, most: int) -> int:
        """Forget at most `most` hosts that were not visited for a month."""
        found = await self._database.fetch(SQL["prune"], {"keep_seconds": KEPT.total_seconds(), "most": most})
        return len(found)


async def answered_in(db: Connection, host: str, *, gap: timedelta, answered: bool = True) -> None:
    """A visit has ended: nobody asks the host again before the gap is over."""
    await rows(db, SQL["answered"], {"host": host, "gap_seconds": gap.total_seconds(), "answered": answered})


async def refused_in(
    db: Connection,
    host: str,
    *,
    asked: timedelta | None,
    usual: Sequence[timedelta],
    reason: str,
) -> Waiting:
    """The host has refused a visit: it is left alone for as long as it asks, else for the usual delay of so many."""
    params = {
        "host": host,
        "asked_seconds": None if asked is None else asked.total_seconds(),
        "usual": seconds(usual),
        "reason": clean(reason),
    }
    [found] = await rows(db, SQL["refused"], params)
    return Waiting(refusals=found["refusals"], wait=timedelta(seconds=float(found["wait_seconds"])))


def seconds(delays: Sequence[timedelta]) -> str:
    """An array of seconds as one parameter."""
    return "{" + ",".join(str(delay.total_seconds()) for delay in delays) + "}"
