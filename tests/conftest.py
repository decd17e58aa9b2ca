"""What tests share: a database of each test's own, no setting of whoever runs them, and no test left out unseen."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import asyncpg
import hypothesis
import pytest

from tests.databases import POOLER, Databases, Run, address, ascii_options, database, past_the_pooler, template, way_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator

MAY_SKIP = "WAKEBELL_TESTS_MAY_SKIP"
"""0: a test that would skip fails, so that nothing is left out unseen."""

# A test reads no setting of the person who runs it; one that needs a setting gives it.
SETTINGS = (
    *("DATABASE_URL", "MIGRATION_DATABASE_URL", "REDIS_URL", "HEARTBEAT_URL", "PUBLIC_URL"),
    *("CRON_SECRET", "CRON_SECRET_PREVIOUS", "API_TOKEN", "WAKEBELL_CONFIG", "AUTO_MIGRATE"),
    *("QSTASH_CURRENT_SIGNING_KEY", "QSTASH_NEXT_SIGNING_KEY"),
    *("HOST", "PORT", "LOG_FORMAT", "LOG_LEVEL"),
)

hypothesis.settings.register_profile("wakebell", deadline=None)
hypothesis.settings.load_profile("wakebell")

databases = Databases()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "direct: a pooler's own users, limits or connections would be in its way")
    for name in SETTINGS:
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput"):
        run = Run()
        config.add_cleanup(run.end)
        run.begin()
    if POOLER in os.environ:
        asyncpg.connect = past_the_pooler(asyncpg.connect)


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
async def empty_database_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A database of the test's own with nothing in it."""
    async with database("template0") as name:
        yield _way(request, name)


@pytest.fixture
async def ascii_database_url() -> AsyncIterator[str]:
    """One whose encoding is none, as servers of old are set up."""
    async with database("template0", await ascii_options()) as name:
        yield way_to(name)


@pytest.fixture
async def database_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A database of the test's own with the schema of this release, empty."""
    async with databases.one() as name:
        yield _way(request, name)


@pytest.fixture(scope="module")
def module_database_url() -> Iterator[str]:
    """One for all tests of a module, which empty it themselves."""
    with asyncio.Runner() as runner:
        own = database(runner.run(template()))
        yield way_to(runner.run(own.__aenter__()))
        runner.run(own.__aexit__(None, None, None))


def _way(request: pytest.FixtureRequest, name: str) -> str:
    return address(name) if request.node.get_closest_marker("direct") else way_to(name)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get(MAY_SKIP) == "0":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{MAY_SKIP}=0, and this would have been left out: {reason}"
