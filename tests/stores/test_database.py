from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from app.domain.errors import ConfigError, DatabaseUnavailable
from app.stores import database as module
from app.stores.address import Address
from app.stores.database import Database, connect, rows

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


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tries to connect follow each other without a wait."""
    monkeypatch.setattr(module, "CONNECT_WAITS", (0, 0, 0))


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
    with pytest.raises(KeyError):
        async with database.transaction() as db:
            await rows(db, ADD)
            raise KeyError

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


async def test_connections_end_with_the_last_who_holds_them(database: Database, sql: asyncpg.Connection):
    async with database.held():
        async with database.held():
            pid = await pid_of(database)
        assert await pid_of(database) == pid, "one is still holding it"
        assert await sql.fetchval(OPEN) == 1

    await until(sql, OPEN, 0)


async def test_connections_end_when_the_holder_fails(database: Database, sql: asyncpg.Connection):
    with pytest.raises(KeyError):
        async with database.held():
            await pid_of(database)
            raise KeyError

    await until(sql, OPEN, 0)


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
    with pytest.raises(DatabaseUnavailable, match="broke the connection"):
        async with database.transaction() as db:
            [row] = await rows(db, PID)
            await sql.execute("SELECT pg_terminate_backend($1)", row["pid"])
            await until(sql, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {row['pid']}", 0)
            await rows(db, ADD)

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
    with pytest.raises(ProgrammingError) as caught:
        await database.fetch(text("SELECT * FROM nowhere WHERE it = CAST(:it AS text)"), {"it": "s3cr3t"})

    assert "s3cr3t" not in str(caught.value)


def test_a_url_that_cannot_be_used_is_told_at_once():
    with pytest.raises(ConfigError, match="names no host"):
        connect("postgres://")


def test_what_is_ignored_in_a_url_is_logged_by_name(caplog: pytest.LogCaptureFixture):
    with caplog.at_level("INFO"):
        connect("postgres://app:s3cr3t@db.example/name?pgbouncer=true")

    [record] = caplog.records
    assert vars(record)["keys"] == ["pgbouncer"]
    assert "s3cr3t" not in repr(vars(record))


async def test_an_unknown_role_is_told(database_url: str, at_once: None):
    parts = urlsplit(database_url)
    place = parts.netloc.rpartition("@")[2]

    with pytest.raises(DatabaseUnavailable, match="refused the sign-in; check user and password in DATABASE_URL"):
        await connect(parts._replace(netloc=f"nobody_of_that_name:x@{place}").geturl()).fetch(PID)


async def test_an_unknown_database_is_told(database_url: str, at_once: None):
    with pytest.raises(DatabaseUnavailable, match="has no database of that name"):
        await connect(urlsplit(database_url)._replace(path="/no_such_database").geturl()).fetch(PID)


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


async def test_a_refused_connection_is_told(free_port: int, at_once: None):
    with pytest.raises(DatabaseUnavailable, match=r"127.0.0.1/name could not be reached"):
        await connect(f"postgres://127.0.0.1:{free_port}/name").fetch(PID)


async def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        database = connect(f"postgres://127.0.0.1:{listening.getsockname()[1]}/name")

        with pytest.raises(DatabaseUnavailable, match="did not answer in time"):
            await database.fetch(PID)


@dataclass
class Server:
    """Speaks as much PostgreSQL as it takes to refuse."""

    port: int
    came: int = 0


@asynccontextmanager
async def refusing(*answers: tuple[str, str], then: Address | None = None) -> AsyncIterator[Server]:
    """Answers with a SQLSTATE and words, one pair for each connection; leads the later ones to a real server."""
    server = Server(port=0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.came += 1
        if server.came > len(answers) and then is not None:
            await pipe(reader, writer, then)
            return
        (length,) = struct.unpack("!i", await reader.readexactly(4))
        await reader.readexactly(length - 4)
        state, words = answers[min(server.came, len(answers)) - 1]
        body = f"SFATAL\0VFATAL\0C{state}\0M{words}\0\0".encode()
        writer.write(b"E" + struct.pack("!i", len(body) + 4) + body)
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: Address) -> None:
    assert isinstance(address.host, str)
    if address.host.startswith("/"):
        there, back = await asyncio.open_unix_connection(f"{address.host}/.s.PGSQL.{address.port}")
    else:
        there, back = await asyncio.open_connection(address.host, address.port)

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)
        target.close()

    await asyncio.gather(copy(reader, back), copy(there, writer))


@pytest.mark.parametrize(
    ("state", "words", "told"),
    [
        ("28P01", "password authentication failed", "refused the sign-in"),
        ("XX000", "Tenant or user not found", "refused the sign-in"),
        ("28000", 'no pg_hba.conf entry for host "1.2.3.4", user "app", database "name", SSL off', "sslmode=require"),
        ("3D000", 'database "name" does not exist', "has no database of that name"),
    ],
)
async def test_what_no_further_try_can_mend_is_tried_once(at_once: None, state: str, words: str, told: str):
    async with refusing((state, words)) as server:
        with pytest.raises(DatabaseUnavailable, match=told):
            await connect(f"postgres://app:s3cr3t@127.0.0.1:{server.port}/name").fetch(PID)

        assert server.came == 1


@pytest.mark.parametrize(
    ("state", "words", "told"),
    [
        ("57P03", "the database system is starting up", "is starting up"),
        ("53300", "sorry, too many clients already", "has no free connection left"),
        ("08P01", "no more connections allowed (max_client_conn)", "has no free connection left"),
    ],
)
async def test_a_database_that_is_not_ready_yet_is_asked_four_times(at_once: None, state: str, words: str, told: str):
    async with refusing((state, words)) as server:
        with pytest.raises(DatabaseUnavailable, match=told):
            await connect(f"postgres://app@127.0.0.1:{server.port}/name").fetch(PID)

        assert server.came == 4


async def test_a_database_that_wakes_is_waited_for(at_once: None, database_url: str):
    address = connect(database_url).address
    starting = ("57P03", "the database system is starting up")

    async with refusing(starting, starting, then=address) as server:
        url = f"postgres://{address.user}:{address.password or ''}@127.0.0.1:{server.port}/{address.database}"
        async with connect(url).held() as database:
            assert await count(database) == 0
