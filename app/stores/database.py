"""The way to PostgreSQL: right through a transaction pooler, and let go when nobody needs it.

No session state at all: both statement caches are off, nothing is `SET`, and the only start-up parameter is
`application_name`. A call of one statement runs under AUTOCOMMIT; several share a transaction that begins with
one SELECT of local time-outs.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, InvalidRequestError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import greenlet_spawn

from app.domain.errors import DatabaseUnavailable
from app.stores import faults
from app.stores.address import parse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from sqlalchemy import TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

    Connection = AsyncConnection
    """What a handler is given in `ctx.transaction()`."""

    from app.stores.address import Address

log = logging.getLogger(__name__)

CONNECT_WAITS = (0.3, 0.7, 1.5)
"""Seconds between tries to connect: a database that wakes needs a few hundred ms, sometimes some seconds."""

CONNECT_SECONDS = 10.0
"""All tries to connect together; a scheduler's patience is often 30 s."""

SERIALIZATION_TRIES = 8
"""Of one statement, where the database's default isolation is stricter than READ COMMITTED."""

STATEMENT_SECONDS = 15.0
"""No statement of ours needs a second; one that takes this long stands behind somebody's lock."""

FRESH_SECONDS = 1.0
"""A connection that was used so lately, and was not seen to be closed, is believed to live."""

TIMEOUTS = text(
    "SELECT set_config('statement_timeout', '15s', true), set_config('lock_timeout', '5s', true), "
    "set_config('idle_in_transaction_session_timeout', '30s', true)",
)


class Database:
    """One process's way to the database; connections are made when asked for and closed by `dispose`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._engine = _engine(address)
        self._users = 0
        self.schema_known = False

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Database]:
        """For the length of a request.

        When the last one ends, every connection is closed: hosts and databases that sleep wait for that.
        """
        self._users += 1
        try:
            yield self
        finally:
            self._users -= 1
            if self._users == 0:
                await self.dispose()

    async def fetch(self, statement: TextClause, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of one statement, which is its own transaction.

        Raises:
            DatabaseUnavailable: no connection within 10 s, or it broke; whether the statement took effect is not
                known then.
        """
        for last in (*[False] * SERIALIZATION_TRIES, True):
            try:
                async with self._connection("AUTOCOMMIT") as connection:
                    return await rows(connection, statement, params)
            except DatabaseUnavailable as error:
                if last or not faults.is_serialization(error.__cause__):
                    raise
                await asyncio.sleep(random.uniform(0.005, 0.05))  # noqa: S311 - so that two do not meet again
        raise AssertionError("the loop returns or raises")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Several statements, one commit at the end; an exception rolls back.

        Raises:
            DatabaseUnavailable: as for `fetch`.
        """
        async with self._connection("READ COMMITTED") as connection, connection.begin():
            await connection.execute(TIMEOUTS)
            yield connection

    @asynccontextmanager
    async def apart(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is rolled back, on a connection that is closed afterwards: for statements of strangers.

        Settings, locks and whatever else they leave behind end with it. Through a transaction pooler the rollback
        undoes settings, and no more: the pooler keeps its own connection, with the advisory locks taken on it.

        Raises:
            DatabaseUnavailable: as for `fetch`.
        """
        connection = await self._connect(self._engine.execution_options(isolation_level="READ COMMITTED"))
        try:
            await connection.execute(TIMEOUTS)
            yield connection
        except (DBAPIError, OSError, TimeoutError) as error:
            raise faults.translated(error, self.address) from error
        finally:
            await asyncio.shield(_thrown_away(connection))

    async def dispose(self) -> None:
        """Closes every connection that is not in use; new ones are made when needed."""
        engine = self._engine.sync_engine
        old, engine.pool = engine.pool, engine.pool.recreate()
        await greenlet_spawn(old.dispose)

    @asynccontextmanager
    async def _connection(self, isolation: str | None) -> AsyncIterator[AsyncConnection]:
        engine = self._engine if isolation is None else self._engine.execution_options(isolation_level=isolation)
        connection = await self._connect(engine)
        try:
            yield connection
        except (DBAPIError, OSError, TimeoutError) as error:
            raise faults.translated(error, self.address) from error
        finally:
            await asyncio.shield(_closed(connection))

    async def _connect(self, engine: AsyncEngine) -> AsyncConnection:
        """Tries again while the database wakes or is full; never after a refused sign-in."""
        told: DatabaseUnavailable | None = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                for wait in (*CONNECT_WAITS, None):
                    try:
                        return await engine.connect()
                    except Exception as error:
                        told, again = faults.of_connecting(error, self.address)
                        if wait is None or not again:
                            raise told from error
                        await asyncio.sleep(wait)
        except TimeoutError as error:
            raise told or faults.unanswered(self.address) from error
        raise AssertionError("the loop returns or raises")


async def rows(
    connection: AsyncConnection,
    statement: TextClause,
    params: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The rows of a statement as dictionaries; none for a statement that returns nothing."""
    result = await connection.execute(statement, dict(params or {}))
    if not result.returns_rows:
        return []
    names = tuple(result.keys())  # not `mappings()`: it makes an object of its own for each row
    return [dict(zip(names, row, strict=True)) for row in result]


async def _closed(connection: AsyncConnection) -> None:
    try:
        await connection.close()
    except (DBAPIError, InterfaceError, OSError, TimeoutError):
        log.debug("a broken connection was dropped")


async def _thrown_away(connection: AsyncConnection) -> None:
    """Rolled back, closed, and not given back to the pool."""
    for step in (connection.rollback, connection.invalidate, connection.close):
        try:
            await step()
        except (DBAPIError, InterfaceError, InvalidRequestError, OSError, TimeoutError):
            log.debug("a connection was lost before it could be closed")


def connect(url: str, *, name: str = "DATABASE_URL") -> Database:
    """A database by its URL. Opens no connection yet.

    Raises:
        ConfigError: what in the URL cannot be used; `name` is the variable it came from.
    """
    address = parse(url, name=name)
    if address.dropped:
        log.info(
            "keys of the database's URL that mean nothing here were ignored", extra={"keys": list(address.dropped)}
        )
    return Database(address)


def _engine(address: Address) -> AsyncEngine:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        pool_size=3,
        max_overflow=3,
        pool_timeout=CONNECT_SECONDS,
        pool_use_lifo=True,
        hide_parameters=True,  # in errors, and so in logs: they are payloads, addresses and messages
        connect_args={
            "host": address.host,
            "port": address.port,
            "user": address.user,
            "password": address.password,
            "database": address.database,
            "ssl": address.ssl,
            "target_session_attrs": address.session,
            "timeout": address.connect_seconds,
            "command_timeout": STATEMENT_SECONDS,
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "server_settings": {"application_name": address.application_name},
        },
    )
    _check_before_use(engine)
    return engine


def _check_before_use(engine: AsyncEngine) -> None:
    """Ask a connection whether it still lives, unless it was used just now: the question costs three round trips.

    A machine that was suspended wakes with dead sockets, and with clocks of which at least one has jumped.
    """
    pool = engine.sync_engine.pool  # what is made anew of it keeps its listeners

    @event.listens_for(pool, "connect")
    @event.listens_for(pool, "checkin")
    def used(_: Any, record: ConnectionPoolEntry) -> None:
        record.info["used"] = (time.monotonic(), time.time())

    @event.listens_for(pool, "checkout")
    def check(connection: Any, record: ConnectionPoolEntry, _: Any) -> None:
        driver: Any = record.driver_connection
        if driver.is_closed():
            raise DisconnectionError
        monotonic, wall = record.info["used"]
        if time.monotonic() - monotonic < FRESH_SECONDS and 0 <= time.time() - wall < FRESH_SECONDS:
            return
        try:
            alive = engine.dialect.do_ping(connection)
        except Exception as error:
            raise DisconnectionError from error  # the pool makes another one
        if not alive:
            raise DisconnectionError
