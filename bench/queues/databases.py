"""The embedded PostgreSQL with its defaults, and a fresh database for each trial."""

from __future__ import annotations

import asyncio
import fcntl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import asyncpg

from app.dev import postgres
from bench.queues.environments import FOLDER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DATABASE = "bench"
"""Made anew for each trial, from what `prepare` has left in another one."""


@dataclass(frozen=True, slots=True)
class Server:
    """The running server, and one connection of ours to another database of it."""

    folder: str
    """Of its socket; it listens on no port of the network."""

    connection: Any

    @property
    def socket(self) -> Path:
        """For the delay, which is the way by TCP."""
        return Path(self.folder) / postgres.SOCKET

    def environ(self, database: str = DATABASE, *, port: int | None = None) -> dict[str, str]:
        """As libpq's variables, which pg-boss reads: by socket, or by that port of the delay."""
        host, number = ("127.0.0.1", port) if port else (self.folder, 5432)
        return {"PGHOST": host, "PGPORT": str(number), "PGUSER": "postgres", "PGDATABASE": database}

    def url(self, database: str = DATABASE, *, port: int | None = None) -> str:
        """As everybody else takes it."""
        if port:
            return f"postgresql://postgres@127.0.0.1:{port}/{database}"
        return f"postgresql://postgres@/{database}?host={quote(self.folder)}"

    async def create(self, database: str, *, template: str = "template1") -> None:
        """An empty database, or a copy of one."""
        await self.drop(database)
        await self.connection.execute(f"CREATE DATABASE {database} TEMPLATE {template}")

    async def drop(self, database: str) -> None:
        """Whoever is still connected."""
        await self.connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    async def settle(self) -> None:
        """The same start for everybody: statistics known, nothing left to write."""
        connection = await asyncpg.connect(self.url())
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
        await connection.close()

    async def count(self, query: str) -> int:
        """What the query counts in the trial's database."""
        connection = await asyncpg.connect(self.url())
        try:
            return int(await connection.fetchval(query))
        finally:
            await connection.close()

    async def transactions(self) -> tuple[int, int]:
        """How many there were until now: in the trial's database, and of them all those that wrote.

        An unnamed statement with parameters is two in PostgreSQL's count: it is parsed in one and run in another.
        """
        gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend')"
        while not await self.connection.fetchval(gone, DATABASE):  # noqa: ASYNC110 - who leaves tells its count then
            await asyncio.sleep(0.01)
        told = await self.connection.fetchrow(
            "SELECT xact_commit, pg_snapshot_xmax(pg_current_snapshot())::text::bigint "
            "FROM pg_stat_database WHERE datname = $1",
            DATABASE,
        )
        return int(told[0]), int(told[1])


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    """Started for this run, with its defaults; stopped at the end.

    Raises:
        SystemExit: another run is at it, which this one would disturb.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "running.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("Another run of the benchmark is going on here: wait until it has ended.") from None
        async with _started() as server:
            yield server


@asynccontextmanager
async def _started() -> AsyncIterator[Server]:
    running = await asyncio.to_thread(postgres.start, FOLDER / "postgres")
    try:
        connection = await asyncpg.connect(host=str(running.socket_folder), user="postgres", database="postgres")
        yield Server(str(running.socket_folder), connection)
        await connection.close()
    finally:
        await asyncio.to_thread(running.stop)
