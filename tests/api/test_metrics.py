"""The numbers as a monitor fetches them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests.api.doors import API_TOKEN, NOWHERE, built, calling
from tests.fakes.exposition import parsed

QUEUE = 'งาน "ด่วน"\n\\'


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_what_is_told_can_be_read_line_by_line(client: httpx.AsyncClient, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) VALUES ('mail', $1)", QUEUE)
    await client.post("/api/cron/tick")

    answer = await client.get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = parsed(answer.text)
    assert found["wakebell_jobs"].samples[(("queue", QUEUE), ("state", "due"))] == 1
    assert all(name.startswith("wakebell_") and family.help for name, family in found.items())


@pytest.mark.parametrize("token", ["", "Bearer wrong"])
async def test_nobody_else_is_told(client: httpx.AsyncClient, token: str):
    answer = await client.get("/metrics", headers={"Authorization": token})

    assert answer.status_code == 401


async def test_a_database_that_is_away_is_a_503(tmp_path: Path):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        answer = await client.get("/metrics")

    assert answer.status_code == 503
