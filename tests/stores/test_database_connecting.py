"""How a connection is made, and what is told when it is not."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from app.domain.errors import ConfigError, DatabaseUnavailable
from app.stores import database as module
from app.stores.address import Address
from app.stores.database import connect
from app.stores.sql import text

PID = text("SELECT pg_backend_pid() AS pid")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tries to connect follow each other without a wait."""
    monkeypatch.setattr(module, "CONNECT_WAITS", (0, 0, 0))


def test_a_url_that_cannot_be_used_is_told_at_once():
    with pytest.raises(ConfigError, match="names no host"):
        connect("postgres://")


def test_what_is_ignored_in_a_url_is_logged_by_name(caplog: pytest.LogCaptureFixture):
    with caplog.at_level("INFO"):
        connect("postgres://app:s3cr3t@db.example/name?pgbouncer=true")

    [record] = caplog.records
    assert vars(record)["keys"] == ["pgbouncer"]
    assert "s3cr3t" not in repr(vars(record))


@pytest.mark.direct
async def test_an_unknown_role_is_told(database_url: str, at_once: None):
    parts = urlsplit(database_url)
    place = parts.netloc.rpartition("@")[2]

    with pytest.raises(DatabaseUnavailable, match="refused the sign-in; check user and password in DATABASE_URL"):
        await connect(parts._replace(netloc=f"nobody_of_that_name:x@{place}").geturl()).fetch(PID)


@pytest.mark.direct
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
    assert isinstance(address.port, int)
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
            assert len(await database.fetch(PID)) == 1
