"""The proofs of the queue's store again, through a transaction pooler that has two connections for each database.

What sets the stage and looks behind it goes straight to the server; those who put in, claim and finish do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from urllib.parse import urlsplit

import asyncpg
import pytest

from app.stores import database as stores
from app.stores.address import parse
from app.stores.database import Database, connect
from app.stores.queues import Queues
from app.stores.sql import text
from tests.fakes.pooler import PROGRAM, pooler
from tests.stores import (
    test_jobs,
    test_jobs_deadlocks,
    test_jobs_keeping,
    test_jobs_many,
    test_jobs_model,
    test_jobs_queues,
    test_jobs_races,
    test_jobs_rescue,
    test_jobs_turn,
    test_queue_cases,
    test_queues,
)

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs pgbouncer, of Debian's package of that name")

EMPTY = """
SELECT format('TRUNCATE %s RESTART IDENTITY CASCADE', string_agg(CAST(CAST(oid AS regclass) AS text), ', '))
FROM pg_class
WHERE relnamespace = CAST('wakebell' AS regnamespace) AND relkind = 'r' AND relname <> 'alembic_version'
"""
CONNECTIONS_OF_STORES = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'wakebell'
"""

PROOFS: tuple[ModuleType, ...] = (
    test_jobs,
    test_jobs_deadlocks,
    test_jobs_keeping,
    test_jobs_many,
    test_jobs_model,
    test_jobs_queues,
    test_jobs_races,
    test_jobs_rescue,
    test_jobs_turn,
    test_queue_cases,
    test_queues,
)

globals().update(
    (f"{module.__name__.rpartition('.')[2]}_{name.removeprefix('test_')}", test)
    for module in PROOFS
    for name, test in vars(module).items()
    if name.startswith("test_")
)


@pytest.fixture(scope="module")
def port(module_database_url: str) -> Iterator[int]:
    """Of one pooler for all tests, so that each finds what those before it have left in the two connections."""
    with asyncio.Runner() as runner:
        running = pooler(module_database_url)
        way = runner.run(running.__aenter__())
        yield urlsplit(way.url).port or 0
        complaints = way.complaints
        runner.run(running.__aexit__(None, None, None))
    assert complaints == []


@pytest.fixture
async def database_url(module_database_url: str) -> str:
    """In place of one for each test: the same for all, emptied."""
    connection = await asyncpg.connect(module_database_url)
    await connection.execute(await connection.fetchval(EMPTY))
    await connection.close()
    return module_database_url


@pytest.fixture
def queues(database: Database) -> Queues:
    return Queues(database)


@pytest.fixture(autouse=True)
def _through_the_pooler(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection of a store."""
    monkeypatch.setattr(
        stores, "parse", lambda url, *, name: replace(parse(url, name=name), host="127.0.0.1", port=port)
    )
    monkeypatch.setattr(test_jobs_model, "EXAMPLES", 10)


async def test_five_at_once_share_two_connections(database_url: str, sql: asyncpg.Connection):
    databases = [connect(database_url) for _ in range(5)]
    try:
        for one in databases:
            async with one.transaction() as db:
                await db.execute(text("SELECT 1"))
        [connections] = await sql.fetchrow(CONNECTIONS_OF_STORES)
    finally:
        for one in databases:
            await one.dispose()

    assert connections in {1, 2}
