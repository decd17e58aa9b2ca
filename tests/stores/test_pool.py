"""Connections shared, and let go."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from app.domain.errors import DatabaseUnavailable
from app.stores import database as module
from app.stores import pool
from app.stores.database import Database, connect, rows
from app.stores.sql import Statement, text
from tests.fakes.proxy import Proxy

PID = text("SELECT pg_backend_pid() AS pid")
GIVEN = text("SELECT CAST(:first AS text) || CAST(:second AS text) || CAST(:first AS text) AS found")
OPEN_TRANSACTION = text("SELECT set_config('application_name', 'left', true) AS name")


async def pid_of(database: Database) -> int:
    [row] = await database.fetch(PID)
    return int(row["pid"])


async def test_a_statement_alone_is_two_round_trips_and_a_transaction_two_more(database_url: str):
    async with Proxy(database_url) as proxy, connect(proxy.url).held() as database:
        await database.fetch(PID)
        [talk] = proxy.talks
        connected = talk.round_trips

        await database.fetch(PID)
        alone = talk.round_trips - connected
        async with database.transaction() as db:
            await db.execute(PID)

        assert (alone, talk.round_trips - connected - alone) == (2, 4)


async def test_a_parameter_that_is_named_twice_is_given_once(database: Database):
    assert GIVEN.driver[0].count("$1") == 2
    assert await database.fetch(GIVEN, {"first": "a", "second": "b", "more": 1}) == [{"found": "aba"}]
    with pytest.raises(KeyError):
        await database.fetch(GIVEN, {"first": "a"})


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("SELECT :one", "SELECT $1"),
        ("SELECT now()::date", "SELECT now()::date"),
        ("SELECT '12\\:30'", "SELECT '12:30'"),
        ("SELECT :a, :b, :a", "SELECT $1, $2, $1"),
    ],
)
def test_parameters_are_read_as_sqlalchemy_reads_them(written: str, sent: str):
    assert Statement(written).driver[0] == sent


async def test_a_refused_statement_leaves_its_connection_to_the_next(database: Database):
    async with database.held():
        pid = await pid_of(database)
        with pytest.raises(asyncpg.UndefinedTableError):
            await database.fetch(text("SELECT * FROM nowhere"))

        assert await pid_of(database) == pid


async def test_a_connection_that_slept_is_asked_before_it_is_used(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "FRESH_SECONDS", -1)
    async with database.held():
        pid = await pid_of(database)

        assert await pid_of(database) == pid


@pytest.mark.direct
async def test_a_connection_that_is_dead_without_a_word_is_given_up_soon(
    database_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pool, "FRESH_SECONDS", -1)
    monkeypatch.setattr(pool, "PING_SECONDS", 0.05)
    async with Proxy(database_url) as proxy, connect(proxy.url).held() as database:
        pid = await pid_of(database)
        proxy.stall()

        assert await pid_of(database) != pid
    assert proxy.connections == 2


async def test_who_waits_too_long_for_a_connection_is_told_so(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.2)
    async with database.held():
        sleeping = [asyncio.create_task(database.fetch(text("SELECT pg_sleep(60)"))) for _ in range(pool.MOST)]
        while len(database.pool._in_use) < pool.MOST:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.01)

        with pytest.raises(DatabaseUnavailable, match="all of this process's connections in use"):
            await database.fetch(PID)
        for one in sleeping:
            one.cancel()
        await asyncio.wait(sleeping)
    assert database.pool.open == 0


async def test_handlers_and_stores_share_the_same_connections(database: Database):
    async with database.held():
        pid = await pid_of(database)
        async with database.sqlalchemy() as db:
            [inside] = await rows(db, PID)
            await rows(db, OPEN_TRANSACTION)

        assert await pid_of(database) == inside["pid"] == pid
        assert database.pool.open == 1


@pytest.mark.direct
async def test_a_connection_lent_to_strangers_is_not_used_again(database: Database):
    async with database.held():
        async with database.apart() as db:
            [inside] = await rows(db, PID)

        assert database.pool.open == 0
        assert await pid_of(database) != inside["pid"]


async def test_a_driver_that_loses_count_over_a_lost_connection_is_told_as_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    first = await pid_of(database)

    async def confused(*_: object, **__: object) -> None:
        raise asyncpg.InternalClientError("cannot switch to state 11; another operation (2) is in progress")

    with monkeypatch.context() as broken:
        broken.setattr(asyncpg.Connection, "fetch", confused)
        with pytest.raises(DatabaseUnavailable, match="broke the connection"):
            await database.fetch(PID)
        broken.setattr(asyncpg.Connection, "execute", confused)
        with pytest.raises(DatabaseUnavailable, match="broke the connection"):
            async with database.transaction() as db:
                await db.execute(PID)

    assert await pid_of(database) != first
    assert database.pool.open == 1
