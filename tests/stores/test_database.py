from __future__ import annotations

import asyncio

import asyncpg
import pytest

from app.domain.errors import DatabaseUnavailable
from app.stores import database as module
from app.stores.database import Database, connect, rows
from app.stores.sql import text

PID = text("SELECT pg_backend_pid() AS pid")
ADD = text("INSERT INTO wakebell.ticks (trigger) VALUES ('test')")
COUNT = text("SELECT count(*) AS count FROM wakebell.ticks")
SLEEP = text("SELECT pg_sleep(60)")
OPEN = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'wakebell'"
SETTINGS = text(
    "SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock, "
    "current_setting('idle_in_transaction_session_timeout') AS idle, pg_backend_pid() AS pid",
)


async def pid_of(database: Database) -> int:
    [row] = await database.fetch(PID)
    return int(row["pid"])


async def count(database: Database) -> int:
    [row] = await database.fetch(COUNT)
    return int(row["count"])


async def until(sql: asyncpg.Connection, query: str, expected: object) -> None:
    """The server takes a moment to see that somebody has left."""
    while await sql.fetchval(query) != expected:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(0.01)


async def test_one_statement_is_its_own_transaction(database: Database):
    await database.fetch(ADD)

    assert await count(database) == 1
    assert await database.fetch(ADD) == []


async def test_a_transaction_commits_at_its_end(database: Database):
    async with database.transaction() as db:
        await rows(db, ADD)
        await rows(db, ADD)

        assert await count(database) == 0

    assert await count(database) == 2


async def test_an_exception_rolls_the_transaction_back(database: Database):
    async def work() -> None:
        async with database.transaction() as db:
            await rows(db, ADD)
            raise KeyError

    with pytest.raises(KeyError):
        await work()
    assert await count(database) == 0


async def test_a_cancelled_transaction_is_rolled_back(database: Database, sql: asyncpg.Connection):
    inside = asyncio.Event()

    async def work() -> None:
        async with database.transaction() as db:
            await rows(db, ADD)
            inside.set()
            await rows(db, SLEEP)

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await count(database) == 0
    await until(sql, "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'", 0)


async def test_a_transactions_time_outs_end_with_it(database: Database):
    async with database.transaction() as db:
        [inside] = await rows(db, SETTINGS)
    [after] = await database.fetch(SETTINGS)

    assert (inside["statement"], inside["lock"], inside["idle"]) == ("15s", "5s", "30s")
    assert (after["statement"], after["lock"], after["idle"]) == ("0", "0", "0")
    assert inside["pid"] == after["pid"], "the same session was looked at"


async def test_no_prepared_statement_is_left_in_the_session(database: Database):
    async with database.transaction() as db:
        await rows(db, COUNT)
    await database.fetch(COUNT)

    assert await database.fetch(text("SELECT name FROM pg_prepared_statements")) == []


@pytest.mark.direct
async def test_connections_end_with_the_last_who_holds_them(database: Database, sql: asyncpg.Connection):
    async with database.held():
        async with database.held():
            pid = await pid_of(database)
        assert await pid_of(database) == pid, "one is still holding it"
        assert await sql.fetchval(OPEN) == 1

    await until(sql, OPEN, 0)


@pytest.mark.direct
async def test_connections_end_when_the_holder_fails(database: Database, sql: asyncpg.Connection):
    async def work() -> None:
        async with database.held():
            await pid_of(database)
            raise KeyError

    with pytest.raises(KeyError):
        await work()
    await until(sql, OPEN, 0)


@pytest.mark.direct
async def test_a_database_that_was_let_go_may_be_used_again(database: Database):
    async with database.held():
        first = await pid_of(database)
    async with database.held():
        assert await pid_of(database) != first


async def test_many_at_once_share_few_connections(database: Database, sql: asyncpg.Connection):
    async with database.held():
        await asyncio.gather(*(database.fetch(ADD) for _ in range(40)))

        assert await sql.fetchval(OPEN) <= 6
    assert await count(database) == 40


async def test_a_connection_that_was_cut_between_uses_is_made_anew(database: Database, sql: asyncpg.Connection):
    pid = await pid_of(database)
    await sql.execute("SELECT pg_terminate_backend($1)", pid)
    await until(sql, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}", 0)

    assert await pid_of(database) != pid


async def test_a_connection_that_is_cut_within_a_statement_is_told(database: Database, sql: asyncpg.Connection):
    sleeping = asyncio.create_task(database.fetch(SLEEP))
    query = f"SELECT count(pg_terminate_backend(pid)) FROM ({OPEN.replace('count(*)', 'pid')} AND query ~ 'sleep') AS a"
    await until(sql, query, 1)

    with pytest.raises(DatabaseUnavailable, match="broke the connection"):
        await sleeping
    assert await count(database) == 0, "the next one gets a new connection"


async def test_a_connection_that_is_cut_within_a_transaction_is_told(database: Database, sql: asyncpg.Connection):
    async def work() -> None:
        async with database.transaction() as db:
            [row] = await rows(db, PID)
            await sql.execute("SELECT pg_terminate_backend($1)", row["pid"])
            await until(sql, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {row['pid']}", 0)
            await rows(db, ADD)

    with pytest.raises(DatabaseUnavailable, match="broke the connection"):
        await work()
    assert await count(database) == 0


async def test_a_lock_that_is_not_to_be_had_is_told(
    database: Database, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "TIMEOUTS", text("SELECT set_config('lock_timeout', '20ms', true)"))
    async with sql.transaction():
        await sql.execute("LOCK TABLE wakebell.ticks")

        with pytest.raises(DatabaseUnavailable, match=r"busy \(LockNotAvailableError\)"):
            async with database.transaction() as db:
                await rows(db, ADD)


async def test_a_statement_that_stands_behind_a_lock_ends(
    database_url: str, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "STATEMENT_SECONDS", 0.05)
    database = connect(database_url)
    async with sql.transaction():
        await sql.execute("LOCK TABLE wakebell.ticks")

        async with database.held():
            with pytest.raises(DatabaseUnavailable, match="did not answer in time"):
                await database.fetch(ADD)


async def test_a_lost_deadlock_is_told(database: Database, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO wakebell.ticks (trigger) VALUES ('1'), ('2')")
    meet = asyncio.Barrier(2)
    lock = text("SELECT id FROM wakebell.ticks WHERE trigger = :trigger FOR UPDATE")
    soon = text("SELECT set_config('deadlock_timeout', '10ms', true)")

    async def work(first: str, second: str) -> None:
        async with database.transaction() as db:
            await rows(db, soon)
            await rows(db, lock, {"trigger": first})
            await meet.wait()
            await rows(db, lock, {"trigger": second})

    ended = await asyncio.gather(work("1", "2"), work("2", "1"), return_exceptions=True)

    told = [str(error) for error in ended if error is not None]
    assert told == ["the database was busy (DeadlockDetectedError)"]


async def test_a_statements_own_fault_is_raised_without_its_parameters(database: Database):
    with pytest.raises(asyncpg.UndefinedTableError) as caught:
        await database.fetch(text("SELECT * FROM nowhere WHERE it = CAST(:it AS text)"), {"it": "s3cr3t"})

    assert "s3cr3t" not in str(caught.value)
