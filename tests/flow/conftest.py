"""The stage, and what the processes on it have said when a test fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.fakes.feeds import Feeds
from tests.fakes.line import Line
from tests.flow.processes import Nursery
from tests.flow.stage import Stage

LINES = 60
"""The last ones of each process."""


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
async def stage(tmp_path: Path, database_url: str, nursery: Nursery) -> AsyncIterator[Stage]:
    sql = await asyncpg.connect(database_url)
    async with Feeds() as feeds, Line() as line:
        stage = Stage(
            folder=tmp_path,
            database_url=database_url,
            sql=sql,
            feeds=feeds,
            line=line,
            nursery=nursery,
        )
        try:
            yield stage
        finally:
            for process in stage.processes:
                process.clear_away()
            await sql.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    stage = getattr(item, "funcargs", {}).get("stage")
    if report.when == "call" and report.failed and isinstance(stage, Stage):
        for number, process in enumerate(stage.processes):
            report.sections.append((f"process {number}", "\n".join(process.log.splitlines()[-LINES:])))
    return report
