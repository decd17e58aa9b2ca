"""Whether the database's schema is the one this release was written for. Costs one statement and no imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import asyncpg

from app.domain.errors import DatabaseUnavailable
from app.stores.sql import text

if TYPE_CHECKING:
    from app.stores.database import Database

SchemaState = Literal["current", "behind", "ahead", "missing"]

HEAD = "0014"
"""The newest file in `alembic/versions`. Versions are numbered: a greater one is newer."""

OLDEST_SERVER = 14
"""The major version of PostgreSQL that all statements are written for."""

VERSION = text("SELECT version_num FROM wakebell.alembic_version")

SERVER = text(
    "SELECT CAST(pg_catalog.getdatabaseencoding() AS text) AS encoding, "
    "CAST(pg_catalog.current_setting('server_version_num') AS integer) AS server"
)

NOT_ALLOWED = "42501"
"""SQLSTATE of a missing privilege."""

MISSING = frozenset({"3F000", "42P01"})
"""SQLSTATE of a schema or a table that does not exist."""


async def schema_state(database: Database) -> SchemaState:
    """How the database's schema stands to this release's.

    `behind` and `missing` need `wakebell migrate`. `ahead` is no fault: a newer release has migrated already, and its
    schema serves this one too.

    Raises:
        DatabaseUnavailable: it cannot be reached.
    """
    try:
        found = await database.fetch(VERSION)
    except asyncpg.PostgresError as error:
        if error.sqlstate in MISSING:
            return "missing"
        if error.sqlstate == NOT_ALLOWED:
            raise DatabaseUnavailable(
                "the database's user may not read the schema wakebell; use the role that ran `wakebell migrate`"
            ) from error
        raise
    version = str(found[0]["version_num"]) if found else ""
    return compared(version)


def unfit(encoding: str, server: int) -> str | None:
    """Why a database of that encoding, on a server of that number, cannot be used; None when it can."""
    if server < OLDEST_SERVER * 10000:
        return (
            f"PostgreSQL {server // 10000} is too old: this release needs PostgreSQL {OLDEST_SERVER} or newer; upgrade "
            "the server, or give another one as DATABASE_URL"
        )
    if encoding == "UTF8":
        return None
    return (
        f"the database's encoding is {encoding}, in which most names and messages cannot be kept; make one with "
        "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
    )


async def unfit_database(database: Database) -> str | None:
    """The same of a database."""
    [found] = await database.fetch(SERVER)
    return unfit(**found)


def compared(version: str) -> SchemaState:
    """How a version in the database stands to this release's."""
    if not version:
        return "missing"
    if version == HEAD:
        return "current"
    return "behind" if version < HEAD else "ahead"
