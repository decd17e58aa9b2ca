"""A look at a real database, directly and through a real pooler."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from app.domain.errors import DatabaseUnavailable
from app.stores.database import Database, connect
from app.stores.examination import Examination
from tests import databases
from tests.fakes import debian, pooler
from tests.fakes.secured import certificate
from tests.flow.service import free_port


def direct(url: str) -> str:
    """Past the pooler, where all tests go through one."""
    return databases.address(urlsplit(url).path.lstrip("/"))


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder; not pytest's: nobody else may enter that."""
    folder = Path(tempfile.mkdtemp(prefix="wakebell-tls-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def examination(database: Database) -> Examination:
    return Examination(database)


@pytest.fixture
async def role(database: Database, sql: asyncpg.Connection, database_url: str) -> AsyncIterator[str]:
    """The name of a role without any right."""
    name = f"doctor_{urlsplit(database_url).path.lstrip('/')}"
    await sql.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD 'secret'")
    yield name
    await sql.execute(f'DROP OWNED BY "{name}" CASCADE')
    await sql.execute(f'DROP ROLE "{name}"')


async def test_a_server_tells_what_it_is_and_nothing_of_it_changes(examination: Examination, sql: asyncpg.Connection):
    before = await sql.fetch("SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name")

    server = await examination.server()

    assert server.version_number >= 140000
    assert server.version.startswith(str(server.version_number // 10000))
    assert (server.encoding, server.isolation, server.read_only) == ("UTF8", "read committed", False)
    assert 1 <= server.connections <= server.most_connections
    assert 0 < server.round_trip_ms < 10_000
    assert abs(server.ahead_seconds) <= 1 + server.doubt_seconds
    assert server.tls is None
    assert await sql.fetch("SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name") == before


async def test_a_database_that_takes_no_writes_or_is_stricter_says_so(database_url: str, sql: asyncpg.Connection):
    name = urlsplit(database_url).path.lstrip("/")
    await sql.execute(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'")
    await sql.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    database = connect(direct(database_url))

    async with database.held():
        server = await Examination(database).server()

    await sql.execute(f'ALTER DATABASE "{name}" RESET ALL')
    assert (server.isolation, server.read_only) == ("serializable", True)


async def test_a_connection_that_is_lost_meanwhile_is_told_in_words(examination: Examination, sql: asyncpg.Connection):
    async def look() -> None:
        async with examination._driver() as driver:
            pid = await driver.fetchval("SELECT pg_backend_pid()")
            await sql.execute("SELECT pg_terminate_backend($1)", pid)
            await driver.fetchval("SELECT 1")

    with pytest.raises(DatabaseUnavailable, match="broke off while it was looked at"):
        await look()


async def test_nothing_stands_between_us_and_a_server(database_url: str):
    database = connect(direct(database_url))

    async with database.held():
        assert await Examination(database).between() == "nothing"


@pytest.mark.skipif(pooler.PROGRAM is None, reason="needs pgbouncer, of Debian's package of that name")
async def test_a_pooler_that_lends_connections_for_a_transaction_is_seen(database_url: str):
    async with pooler.pooler(direct(database_url)) as between:
        database = connect(between.url)

        async with database.held():
            examination = Examination(database)
            assert await examination.between() == "transaction"
            assert (await examination.server()).encoding == "UTF8"

        assert between.complaints == []


@pytest.mark.skipif(debian.PROGRAMS is None, reason="needs PostgreSQL, of Debian's package of that name")
async def test_whether_the_way_is_encrypted_and_the_certificate_looked_at_is_seen(open_to_all: Path):
    _, cert = certificate(open_to_all)
    key = open_to_all / "key.pem"
    if os.geteuid() == 0:  # then the server runs as somebody else
        for file in (cert, key):
            shutil.chown(file, "postgres", "postgres")
    key.chmod(0o600)
    files = {"ssl_cert_file": str(cert), "ssl_key_file": str(key)}
    seen = {}
    with debian.debian(ssl="on", listen_addresses="127.0.0.1", port=str(port := free_port()), **files):
        for mode in ("disable", "require", f"verify-full&sslrootcert={cert}"):
            database = connect(f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode={mode}")
            async with database.held():
                seen[mode.partition("&")[0]] = (await Examination(database).server()).tls

    plain, encrypted, verified = seen.values()
    assert plain is None
    assert encrypted is not None
    assert encrypted.version.startswith("TLSv1")
    assert not encrypted.verified
    assert verified is not None
    assert verified.verified


async def test_a_proxy_that_keeps_a_connection_is_a_session_s(database_url: str, monkeypatch: pytest.MonkeyPatch):
    database = connect(direct(database_url))
    # Such a one tells a process number of its own when one signs in, and lends its connection to nobody else.
    monkeypatch.setattr(asyncpg.Connection, "get_server_pid", lambda _: 4711)

    async with database.held():
        assert await Examination(database).between() == "session"


async def test_the_owner_may_do_everything(examination: Examination):
    rights = await examination.rights()

    assert rights is not None
    assert (rights.enters, rights.closed, rights.hidden) == (True, (), ())


async def test_without_a_schema_there_are_no_rights_to_tell(empty_database_url: str):
    database = connect(empty_database_url)

    async with database.held():
        assert await Examination(database).rights() is None


async def test_what_a_role_may_not_do_is_seen(role: str, database_url: str, sql: asyncpg.Connection):
    url = direct(database_url)
    parts = urlsplit(url)
    login = f"{role}:secret@{parts.netloc.rpartition('@')[2]}"
    database = connect(parts._replace(netloc=login).geturl())

    async with database.held():
        examination = Examination(database)
        outside = await examination.rights()
        await sql.execute(f'GRANT USAGE ON SCHEMA wakebell TO "{role}"; GRANT SELECT ON wakebell.jobs TO "{role}"')
        inside = await examination.rights()
        await sql.execute(f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wakebell TO "{role}"')
        granted = await examination.rights()

    assert outside is not None
    assert inside is not None
    assert granted is not None
    assert (outside.role, outside.enters) == (role, False)
    assert inside.enters
    assert "wakebell.jobs" in inside.closed
    assert granted.closed == ()
    assert "wakebell.jobs" in granted.hidden


async def test_the_latest_ring_is_told_with_those_of_a_day(examination: Examination, sql: asyncpg.Connection):
    assert await examination.last_ring() is None

    await sql.execute(
        "INSERT INTO wakebell.ticks (trigger, started_at, status, finished_at) VALUES "
        "('http', now() - interval '2 days', 'ok', now()), ('http', now() - interval '5 hours', 'ok', now()), "
        "('http', now() - interval '1 hour', 'partial', now()), ('cli', now() - interval '10 minutes', NULL, NULL)"
    )
    last = await examination.last_ring()

    assert last is not None
    assert (last.trigger, last.status, last.rings) == ("cli", None, 3)
    assert timedelta(minutes=9) < last.now - last.started_at < timedelta(minutes=15)
    assert last.longest_gap_seconds == pytest.approx(4 * 3600, abs=5)
