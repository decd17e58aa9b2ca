"""What tests of stores share."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
