"""What tests of stores share."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import pytest

from app.stores.database import Database, connect
from app.stores.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = connect(database_url)
    yield database
    await database.dispose()


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection past the stores, to set the stage and to look behind it."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def guest_url(empty_database_url: str) -> AsyncIterator[str]:
    """`empty_database_url` for a user who may connect and no more, with a `%` in the password."""
    name = f"guest_{urlsplit(empty_database_url).path.lstrip('/')}"
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(f"""CREATE ROLE "{name}" LOGIN PASSWORD '50%off%(x)s'""")
    parts = urlsplit(empty_database_url)
    address = parts.netloc.rpartition("@")[2]
    yield parts._replace(netloc=f"{name}:50%25off%25(x)s@{address}").geturl()
    await connection.execute(f'DROP OWNED BY "{name}" CASCADE')
    await connection.execute(f'DROP ROLE "{name}"')
    await connection.close()
