"""SQLAlchemy's view of a connection: for handlers of users, for migrations, and for statements of strangers.

The service's own statements go to the driver: SQLAlchemy takes longer to be imported than an idle tick to run. It is
imported by whoever needs it first; its connections are those of the pool, and asking the server who it is is left out.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, NullPool, make_url, text
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_connection, PGDialect_asyncpg
from sqlalchemy.exc import DBAPIError, InterfaceError, InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import await_only

from app.stores.sql import Statement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from sqlalchemy import TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection

log = logging.getLogger(__name__)

OLDEST = (14, 0)
"""PostgreSQL of which SQLAlchemy may use all that it knows."""


class Dialect(PGDialect_asyncpg):
    """asyncpg's, over connections that somebody else makes and closes."""

    supports_statement_cache = True

    def __init__(self, give_back: Callable[[Any, bool], Awaitable[None]]) -> None:
        super().__init__(dbapi=PGDialect_asyncpg.import_dbapi())  # type: ignore[no-untyped-call]
        self._give_back = give_back
        # What it would ask the first connection for, in ten round trips.
        self.server_version_info = OLDEST
        self.default_schema_name = "public"
        self.default_isolation_level = "READ COMMITTED"

    def do_close(self, dbapi_connection: Any) -> None:
        """Gives it back to be used again."""
        await_only(self._give_back(dbapi_connection._connection, True))  # noqa: FBT003, SLF001

    def do_terminate(self, dbapi_connection: Any) -> None:
        """Gives it back to be thrown away."""
        await_only(self._give_back(dbapi_connection._connection, False))  # noqa: FBT003, SLF001


def engine(take: Callable[[], Awaitable[Any]], give_back: Callable[[Any, bool], Awaitable[None]]) -> AsyncEngine:
    """One whose connections are taken and given back by these; the latter is told whether it may be used again."""
    dialect = Dialect(give_back)

    def connected(*_: Any) -> Any:
        adapted: Any = AsyncAdapt_asyncpg_connection
        return adapted(dialect.dbapi, await_only(take()), prepared_statement_cache_size=0)

    return AsyncEngine(
        Engine(
            NullPool(connected, dialect=dialect),
            dialect,
            make_url("postgresql+asyncpg://"),
            hide_parameters=True,  # in errors, and so in logs: they are payloads, addresses and messages
        )
    )


@lru_cache(maxsize=256)
def clause(words: str) -> TextClause:
    """A statement of a store as SQLAlchemy takes it."""
    return text(words)


async def rows(
    connection: AsyncConnection, statement: Statement | TextClause, params: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The rows of a statement as dictionaries; none for a statement that returns nothing."""
    asked = clause(statement.text) if isinstance(statement, Statement) else statement
    result = await connection.execute(asked, dict(params or {}))
    if not result.returns_rows:
        return []
    names = tuple(result.keys())  # not `mappings()`: it makes an object of its own for each row
    return [dict(zip(names, row, strict=True)) for row in result]


async def ended(connection: AsyncConnection, *, once: bool) -> None:
    """Given back; with `once` to be closed and not to be used again."""
    for step in (connection.rollback, connection.invalidate, connection.close) if once else (connection.close,):
        try:
            await step()
        except (DBAPIError, InterfaceError, InvalidRequestError, OSError, TimeoutError):
            log.debug("a connection was lost before it could be closed")
