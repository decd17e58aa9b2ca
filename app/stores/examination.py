"""What a look at the database finds: the server, the way to it, and what this role may do there. Changes nothing."""

from __future__ import annotations

import ssl
import statistics
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any, Literal

import asyncpg

from app.domain.errors import DatabaseUnavailable
from app.stores import sql

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.stores.database import Database

SQL = sql.load("examination")

ROUNDS = 5
"""Round trips, of which the middle one is told."""

LENDINGS = 3
"""Tries to see a pooler lend a connection to somebody else: each costs a connection."""

SERVER = (
    "SELECT CAST(current_setting('server_version_num') AS integer) AS version_number, "
    "current_setting('server_version') AS version, "
    "CAST(pg_catalog.getdatabaseencoding() AS text) AS encoding, "
    "current_setting('default_transaction_isolation') AS isolation, "
    "current_setting('transaction_read_only') = 'on' OR pg_catalog.pg_is_in_recovery() AS read_only, "
    "CAST(current_setting('max_connections') AS integer) "
    "- CAST(current_setting('superuser_reserved_connections') AS integer) AS most_connections, "
    "CAST((SELECT sum(numbackends) FROM pg_catalog.pg_stat_database) AS integer) AS connections"
)

PID = "SELECT pg_catalog.pg_backend_pid()"

Between = Literal["nothing", "session", "transaction"]
"""What stands between us and the server: a pooler that lends a server's connection for a session, or a transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Of the connection, as this end sees it: through a pooler it is the pooler's."""

    version: str

    verified: bool
    """Whether the certificate was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What it says of itself, and how it was reached."""

    version_number: int
    """Such as 160004 for 16.4."""

    version: str
    encoding: str

    isolation: str
    """Where a transaction names none."""

    read_only: bool
    """A copy, or a role or a database that is set so."""

    most_connections: int
    """Of those that are no superusers."""

    connections: int
    tls: Tls | None
    connect_ms: float

    round_trip_ms: float
    """The middle one of a few."""

    ahead_seconds: float
    """Its clock before this machine's, give or take `doubt_seconds`."""

    doubt_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What the role may do in the schema."""

    role: str
    enters: bool

    closed: tuple[str, ...]
    """Tables that it may not read and write."""

    hidden: tuple[str, ...]
    """Tables whose rows it does not see, since row level security is on and it does not own them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRing:
    """The latest tick."""

    now: datetime
    trigger: str
    """Who rang, as the tick was told."""

    started_at: datetime

    status: str | None
    """None: it goes on, or was killed."""

    rings: int
    """In the last 24 hours."""

    longest_gap_seconds: float | None
    """Between two of those; None: there are no two."""


class Examination:
    """One look each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def server(self) -> Server:
        """Connect, and ask.

        Raises:
            DatabaseUnavailable: it cannot be reached; the text says why.
        """
        begun = time.perf_counter()
        async with self._driver() as driver, driver.transaction():
            connect_ms = (time.perf_counter() - begun) * 1000
            row = await driver.fetchrow(SERVER)
            trips = [await _round_trip(driver) for _ in range(ROUNDS)]
            ahead, doubt = await _clock(driver)
            return Server(
                **row,
                tls=_tls(driver),
                connect_ms=connect_ms,
                round_trip_ms=statistics.median(trips) * 1000,
                ahead_seconds=ahead,
                doubt_seconds=doubt,
            )

    async def between(self) -> Between:
        """What stands between: seen by what it does, whatever it is called.

        PostgreSQL tells a client the number of its process when it signs in; a pooler tells one of its own. One that
        lends connections for a transaction gives the same process to two clients that are there at once.

        Raises:
            DatabaseUnavailable: as for `server`.
        """
        async with self._driver() as one:
            first = await _pid(one)  # and gives the server's connection back, where it is lent
            for _ in range(LENDINGS):
                async with self._driver() as other:
                    lent = await _pid(other) == first
                if lent or await _pid(one) != first:
                    return "transaction"
            return "nothing" if one.get_server_pid() == first else "session"

    async def rights(self) -> Rights | None:
        """What this role may do; None: there is no schema.

        Raises:
            DatabaseUnavailable: as for `server`.
        """
        found = await self._database.fetch(SQL["rights"])
        if not found:
            return None
        row = found[0]
        return Rights(role=row["role"], enters=row["enters"], closed=tuple(row["closed"]), hidden=tuple(row["hidden"]))

    async def last_ring(self) -> LastRing | None:
        """The latest tick; None: nobody has rung. The schema must be there.

        Raises:
            DatabaseUnavailable: as for `server`.
        """
        found = await self._database.fetch(SQL["last_ring"])
        return LastRing(**found[0]) if found else None

    @asynccontextmanager
    async def _driver(self) -> AsyncIterator[Any]:
        """A connection of the driver's: what it sends is one message where others send several. Not used again."""
        async with self._database.apart() as connection:
            await connection.rollback()
            try:
                yield (await connection.get_raw_connection()).driver_connection
            except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
                told = f"the database {self._database.address.shown} broke off while it was looked at"
                raise DatabaseUnavailable(f"{told} ({type(error).__name__}); try again") from error


async def _pid(driver: Any) -> int:
    async with driver.transaction():  # a pooler might else lend another one between the two messages of a statement
        return int(await driver.fetchval(PID))


async def _round_trip(driver: Any) -> float:
    begun = time.perf_counter()
    await driver.execute("SELECT 1")  # without parameters: one message there, one back
    return time.perf_counter() - begun


async def _clock(driver: Any) -> tuple[float, float]:
    """How far it is before ours, and by how much that may be wrong."""
    begun, wall = time.perf_counter(), time.time()
    told = float(await driver.fetchval("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"))
    took = time.perf_counter() - begun
    return told - wall - took / 2, took / 2


def _tls(driver: Any) -> Tls | None:
    wire: ssl.SSLObject | None = driver._transport.get_extra_info("ssl_object")  # noqa: SLF001 - it has no public name
    if wire is None:
        return None
    return Tls(version=wire.version() or "TLS", verified=wire.context.verify_mode is not ssl.CERT_NONE)
