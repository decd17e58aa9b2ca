"""The stage, and what the processes on it have said when a test fails."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from tests.databases import POOLER
from tests.fakes.feeds import Feeds
from tests.fakes.line import Line
from tests.fakes.pooler import Pooler, pooler
from tests.flow.processes import Nursery
from tests.flow.stage import PooledStage, Stage

LINES = 60
"""The last ones of each process."""


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
async def stage(tmp_path: Path, database_url: str, nursery: Nursery) -> AsyncIterator[Stage]:
    kind = PooledStage if POOLER in os.environ else Stage
    async with _set(kind, tmp_path, database_url, database_url, nursery) as stage:
        yield stage


@pytest.fixture
async def way(database_url: str) -> AsyncIterator[Pooler]:
    """A pooler with two connections to the database."""
    async with pooler(database_url) as way:
        yield way


@pytest.fixture
async def pooled(tmp_path: Path, database_url: str, nursery: Nursery, way: Pooler) -> AsyncIterator[Stage]:
    """A stage whose processes reach the database by that way."""
    async with _set(PooledStage, tmp_path, database_url, way.url, nursery) as stage:
        yield stage


@asynccontextmanager
async def _set(
    kind: type[Stage], folder: Path, database_url: str, given_url: str, nursery: Nursery
) -> AsyncIterator[Stage]:
    """`given_url` is what the processes are told."""
    sql = await asyncpg.connect(database_url)
    async with Feeds() as feeds, Line() as line:
        stage = kind(folder=folder, database_url=given_url, sql=sql, feeds=feeds, line=line, nursery=nursery)
        try:
            yield stage
        finally:
            for process in stage.processes:
                process.clear_away()
            await sql.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    stage = next((given for given in getattr(item, "funcargs", {}).values() if isinstance(given, Stage)), None)
    if report.when == "call" and report.failed and stage is not None:
        for number, process in enumerate(stage.processes):
            report.sections.append((f"process {number}", "\n".join(process.log.splitlines()[-LINES:])))
    return report
