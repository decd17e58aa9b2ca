"""What `/api/health` makes of the tables; its doors are tested with the others'."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app.api import health
from tests.api.doors import API_TOKEN, NOWHERE, built, calling

TICK = (
    "INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at) VALUES ('http', CAST($1 AS text), "
    "now() - make_interval(mins => $2), CASE WHEN CAST($1 AS text) IS NOT NULL THEN now() END)"
)
ALERT = (
    "INSERT INTO wakebell.alerts (key, kind, subject, failed_at) "
    "VALUES ('job_failed:mail', 'job_failed', 'mail', now())"
)
DUE = "INSERT INTO wakebell.jobs (type, run_after) VALUES ('mail', now() - interval '1 hour')"
FAILING = (
    "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, grid_from, due_at, failures) "
    "VALUES ('gigs', '', 60, now(), now(), 1), ('forgotten', '', 60, now(), now(), 9)"
)
PARKED = (
    "INSERT INTO wakebell.jobs (type, held, run_after) "
    "SELECT 'send_recipt' || n, true, now() - make_interval(hours => $1) FROM generate_series(1, 3) AS n"
)
TICKED = (TICK, "ok", 1)


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.mark.parametrize(
    ("rows", "status", "code", "part"),
    [
        ([TICKED], "pass", 200, None),
        ([], "warn", 200, "tick:age"),
        ([(TICK, "ok", 30)], "warn", 200, "tick:age"),
        ([TICKED, (ALERT,)], "warn", 200, "alerts:open"),
        ([TICKED, (DUE,)], "warn", 200, "jobs:oldest_due"),
        ([TICKED, (FAILING,)], "warn", 200, "sources:failing"),
        ([TICKED, (PARKED, 2)], "warn", 200, "jobs:held"),
        ([TICKED, (PARKED, 0)], "pass", 200, None),
        ([(TICK, "ok", 60)], "fail", 503, "tick:age"),
        ([(TICK, "failed", 1)], "fail", 503, "tick:age"),
        ([(TICK, None, 60), (TICK, None, 1)], "fail", 503, "tick:age"),
    ],
)
async def test_the_tables_decide(
    client: httpx.AsyncClient, sql: asyncpg.Connection, rows: list[Any], *, status: str, code: int, part: str | None
):
    for statement, *params in rows:
        await sql.execute(statement, *params)

    response = await client.get("/api/health")

    assert (response.status_code, response.json()["status"]) == (code, status)
    wrong = {name for name, [check] in response.json()["checks"].items() if check["status"] != "pass"}
    assert wrong == ({part} if part else set())
    assert response.headers["Content-Type"] == "application/health+json"
    assert response.headers["Cache-Control"] == "no-store"


async def test_the_detail_tells_what_the_contract_promises(client: httpx.AsyncClient, sql: asyncpg.Connection):
    for statement, *params in [(TICK, "ok", 30), (ALERT,), (DUE,), (FAILING,)]:
        await sql.execute(statement, *params)

    checks = (await client.get("/api/health")).json()["checks"]

    [tick] = checks["tick:age"]
    assert tick["overdue"] is True
    assert 1800 <= tick["observedValue"] < 1900
    assert tick["last_tick_at"].endswith("Z")
    assert checks["alerts:open"][0]["observedValue"] == ["job_failed:mail"]
    assert checks["jobs:oldest_due"][0]["observedValue"] >= 3600
    assert checks["sources:failing"][0]["observedValue"] == ["gigs"]


async def test_however_much_is_wrong_the_answer_is_short(client: httpx.AsyncClient, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, held, run_after) "
        "SELECT repeat('ที่', 300) || n, true, now() - interval '9 days' FROM generate_series(1, 2000) AS n"
    )
    await sql.execute(
        "INSERT INTO wakebell.alerts (key, kind, subject, failed_at) "
        "SELECT 'job_failed:' || repeat('ที่', 300) || n, 'job_failed', '', now() FROM generate_series(1, 50) AS n"
    )

    response = await client.get("/api/health")

    assert response.json()["checks"]["jobs:held"][0]["observedValue"] == 1000
    assert len(response.content) < 8192


@pytest.mark.parametrize(("age", "code"), [(1, 200), (60, 503)])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_strangers_and_monitors_that_send_head_learn_the_status(
    tmp_path: Path, database_url: str, sql: asyncpg.Connection, *, method: str, age: int, code: int
):
    await sql.execute(TICK, "ok", age)

    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN), token=None) as stranger:
        response = await stranger.request(method, "/api/health")

    expected = '{"status":"pass"}' if code == 200 else '{"status":"fail"}'
    assert (response.status_code, response.text) == (code, expected if method == "GET" else "")
    assert response.headers["Content-Type"] == "application/health+json"


async def test_without_an_api_token_nobody_is_told_more(tmp_path: Path, database_url: str):
    async with calling(built(tmp_path, database_url), token="") as client:
        assert set((await client.get("/api/health")).json()) == {"status"}


async def test_a_database_that_is_down_fails(tmp_path: Path):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        response = await client.get("/api/health")

    assert response.status_code == 503
    assert response.json()["checks"] == {"database": [{"status": "fail", "output": "cannot be reached"}]}


async def test_a_database_that_does_not_answer_fails_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(health, "HEALTH_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://app@127.0.0.1:{silent.getsockname()[1]}/name"
        async with calling(built(tmp_path, url, API_TOKEN=API_TOKEN)) as client:
            response = await client.get("/api/health")

    assert response.status_code == 503
    assert response.json()["checks"]["database"][0]["output"] == "cannot be reached"


async def test_a_schema_that_is_behind_fails(tmp_path: Path, empty_database_url: str):
    async with calling(built(tmp_path, empty_database_url, API_TOKEN=API_TOKEN)) as client:
        response = await client.get("/api/health")

    assert response.status_code == 503
    assert response.json()["checks"] == {"database": [{"status": "fail", "output": "the schema is behind"}]}
