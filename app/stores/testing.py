"""What tests of users' handlers do to a database: make one, look at its jobs, let time pass. The service does not."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.stores import sql
from app.stores.database import connect
from app.stores.job_rows import claimed_job, stored_job
from app.stores.payloads import payload_text
from app.stores.sql import text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from datetime import datetime, timedelta

    from app.domain.jobs import Job
    from app.stores.database import Database
    from app.stores.job_rows import StoredJob

SQL = sql.load("testing")

PREFIX = "wakebell_test_"


class Bench:
    """Users' jobs, past everything that the service would allow."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look(self) -> tuple[datetime, int]:
        """The instant by the database's clock, and how many jobs there are, and limits and pauses of queues."""
        [row] = await self._database.fetch(SQL["look"])
        return row["at"], row["found"]

    async def begin(
        self,
        *,
        type: str,  # noqa: A002 - the column's name
        payload: Mapping[str, Any],
        queue: str,
        attempt: int,
        max_attempts: int,
    ) -> Job:
        """A job that is running: nobody else takes it.

        Raises:
            ValueError: what in the payload cannot be stored, by its path.
        """
        token = secrets.randbits(62)
        params = {"type": type, "payload": payload_text(payload), "queue": queue, "token": token}
        [row] = await self._database.fetch(
            SQL["begin_job"], {**params, "attempt": attempt, "max_attempts": max_attempts}
        )
        return claimed_job(row, token)

    async def remove(self, job: Job) -> None:
        """As if it had never been."""
        await self._database.fetch(SQL["remove_job"], {"id": job.id})

    async def all(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        status: str | None = None,
        queue: str | None = None,
        started_since: datetime | None = None,
    ) -> list[StoredJob]:
        """Those that fit every filter, in the order in which they were put in, with their failures."""
        params = {"type": type, "status": status, "queue": queue, "started_since": started_since}
        return [stored_job(row) for row in await self._database.fetch(SQL["jobs"], params)]

    async def advance(self, by: timedelta) -> None:
        """What waits is due so much sooner."""
        await self._database.fetch(SQL["advance"], {"seconds": by.total_seconds()})

    async def clear(self) -> None:
        """None is left, and no queue is limited or paused."""
        await self._database.fetch(SQL["clear"])


@asynccontextmanager
async def new_database(server: str, *, template: str | None = None) -> AsyncIterator[str]:
    """The URL of a database of its own, which is dropped at the end, whoever is connected.

    Args:
        server: a database's URL on that server; its user must be allowed to make databases.
        template: the name of the one that it is a copy of; nobody may be connected to that.
    """
    name = f"{PREFIX}{secrets.token_hex(8)}"
    copied = f"TEMPLATE {template} STRATEGY wal_log" if template else "TEMPLATE template0"
    await _told(server, f"CREATE DATABASE {name} {copied}")
    try:
        yield at(server, name)
    finally:
        await _told(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def new_template(server: str) -> str:
    """The name of a new database that stays; for a server that is thrown away itself."""
    name = f"{PREFIX}template_{secrets.token_hex(8)}"
    await _told(server, f"CREATE DATABASE {name} TEMPLATE template0")
    return name


def at(server: str, name: str) -> str:
    """The URL of another database on the same server."""
    return urlsplit(server)._replace(path=f"/{name}").geturl()


async def _told(server: str, statement: str) -> None:
    database = connect(server, name="the server's URL")
    try:
        await database.fetch(text(statement))
    finally:
        await database.dispose()
