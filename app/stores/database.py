"""The way to PostgreSQL: right through a transaction pooler, and let go when nobody needs it.

No session state at all: asyncpg's statement cache is off, nothing is `SET`, and the only start-up parameter is
`application_name`. A call of one statement is its own transaction; several share one that begins with one SELECT of
local time-outs. The service's own statements go to asyncpg as they are; handlers of users are given SQLAlchemy's
connection, which is imported then.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from app.domain.errors import DatabaseUnavailable
from app.stores import faults
from app.stores.address import parse
from app.stores.pool import FAULTS, Pool
from app.stores.sql import Statement, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from sqlalchemy import TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.stores.address import Address

    HandlersConnection = AsyncConnection
    """What a handler is given in `ctx.transaction()`."""

log = logging.getLogger(__name__)

CONNECT_WAITS = (0.3, 0.7, 1.5)
"""Seconds between tries to connect: a database that wakes needs a few hundred ms, sometimes some seconds."""

CONNECT_SECONDS = 10.0
"""All tries to connect together; a scheduler's patience is often 30 s."""

SERIALIZATION_TRIES = 8
"""Of one statement, where the database's default isolation is stricter than READ COMMITTED."""

STATEMENT_SECONDS = 15.0
"""No statement of ours needs a second; one that takes this long stands behind somebody's lock."""

TIMEOUTS = text(
    "SELECT set_config('statement_timeout', '15s', true), set_config('lock_timeout', '5s', true), "
    "set_config('idle_in_transaction_session_timeout', '30s', true)",
)

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"


class Connection:
    """What stores are given within a transaction."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    async def execute(self, statement: Statement, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a statement; none for one that returns nothing."""
        return await _asked(self._driver, statement, params)


class Database:
    """One process's way to the database; connections are made when asked for and closed by `dispose`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.pool = Pool(self._made)
        self._engine: AsyncEngine | None = None
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

    async def fetch(
        self, statement: Statement | TextClause, params: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of one statement, which is its own transaction. Handlers may give one of SQLAlchemy's.

        Raises:
            DatabaseUnavailable: no connection within 10 s, or it broke; whether the statement took effect is not
                known then.
        """
        for last in (*[False] * SERIALIZATION_TRIES, True):
            try:
                if isinstance(statement, Statement):
                    async with self._taken() as driver:
                        return await _asked(driver, statement, params)
                async with self._viewed("AUTOCOMMIT") as connection:
                    return await rows(connection, statement, params)
            except DatabaseUnavailable as error:
                if last or not faults.is_serialization(error.__cause__):
                    raise
                await asyncio.sleep(random.uniform(0.005, 0.05))  # noqa: S311 - so that two do not meet again
        raise AssertionError("the loop returns or raises")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Several statements, one commit at the end; an exception rolls back.

        Raises:
            DatabaseUnavailable: as for `fetch`.
        """
        async with self._taken() as driver:
            await driver.execute(f"{BEGIN}; {TIMEOUTS.text}")  # as one message: without parameters that can be done
            try:
                yield Connection(driver)
            except Exception:
                if not driver.is_closed():
                    await _rolled_back(driver)
                raise
            await driver.execute("COMMIT")

    @asynccontextmanager
    async def sqlalchemy(self) -> AsyncIterator[AsyncConnection]:
        """The same, with SQLAlchemy's connection: what a handler is given in `ctx.transaction()`.

        Raises:
            DatabaseUnavailable: as for `fetch`.
        """
        async with self._viewed("READ COMMITTED") as connection, connection.begin():
            await rows(connection, TIMEOUTS)
            yield connection

    @asynccontextmanager
    async def apart(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is rolled back, on a connection that is closed afterwards: for statements of strangers.

        Settings, locks and whatever else they leave behind end with it. Through a transaction pooler the rollback
        undoes settings, and no more: the pooler keeps its own connection, with the advisory locks taken on it.

        Raises:
            DatabaseUnavailable: as for `fetch`.
        """
        async with self._viewed("READ COMMITTED", once=True) as connection:
            await rows(connection, TIMEOUTS)
            yield connection

    async def dispose(self) -> None:
        """Closes every connection that is not in use; new ones are made when needed."""
        await self.pool.dispose()

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[Any]:
        """The driver's connection. It is used again where it is known to be as it was."""
        driver = await self._connection()
        sound = False
        try:
            yield driver
            sound = True
        except FAULTS as error:
            sound = faults.leaves_sound(error)
            told = faults.translated(error, self.address)
            if told is error:
                raise
            raise told from error
        except Exception:  # somebody's own, within a transaction: that was rolled back
            sound = True
            raise
        finally:
            await self._give_back(driver, sound)

    @asynccontextmanager
    async def _viewed(self, isolation: str, *, once: bool = False) -> AsyncIterator[AsyncConnection]:
        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - an idle tick needs none of it

        from app.stores import alchemy  # noqa: PLC0415

        if self._engine is None:
            self._engine = alchemy.engine(self._connection, self._give_back)
        connection = await self._engine.execution_options(isolation_level=isolation).connect()
        try:
            yield connection
        except (DBAPIError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
            raise faults.translated(error, self.address) from error
        finally:
            await asyncio.shield(alchemy.ended(connection, once=once))

    async def _connection(self) -> Any:
        """Tries again while the database wakes or is full; never after a refused sign-in."""
        told, _ = faults.of_connecting(faults.AllInUse(), self.address)
        slot = False
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self.pool.slot()
                slot, told = True, faults.unanswered(self.address)
                for wait in (*CONNECT_WAITS, None):
                    try:
                        taken = await self.pool.take()
                    except Exception as error:
                        told, again = faults.of_connecting(error, self.address)
                        if wait is None or not again:
                            raise told from error
                        await asyncio.sleep(wait)
                    else:
                        slot = False  # it goes back with the connection
                        return taken
        except TimeoutError as error:
            raise told from error
        finally:
            if slot:
                self.pool.leave()
        raise AssertionError("the loop returns or raises")

    async def _give_back(self, driver: Any, sound: bool) -> None:  # noqa: FBT001 - SQLAlchemy's view calls it too
        if not (sound and self.pool.put(driver)):
            await asyncio.shield(self.pool.drop(driver))

    async def _made(self) -> Any:
        address = self.address
        return await asyncpg.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password,
            database=address.database,
            ssl=address.ssl,
            target_session_attrs=address.session,
            timeout=address.connect_seconds,
            command_timeout=STATEMENT_SECONDS,
            statement_cache_size=0,
            server_settings={"application_name": address.application_name},
        )


async def rows(
    connection: Connection | AsyncConnection,
    statement: Statement | TextClause,
    params: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The rows of a statement as dictionaries; none for a statement that returns nothing."""
    if isinstance(connection, Connection):
        if not isinstance(statement, Statement):
            statement = Statement(statement.text)
        return await connection.execute(statement, params)
    from app.stores import alchemy  # noqa: PLC0415 - it is there already: the connection is SQLAlchemy's

    return await alchemy.rows(connection, statement, params)


async def _rolled_back(driver: Any) -> None:
    """Where that fails, what has failed before is what is to be told; the pool takes no connection that is in one."""
    try:
        await driver.execute("ROLLBACK")
    except FAULTS:
        driver.terminate()


async def _asked(driver: Any, statement: Statement, params: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    written, _ = statement.driver
    return [dict(record) for record in await driver.fetch(written, *statement.given(params))]


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
