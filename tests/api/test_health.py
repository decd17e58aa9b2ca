from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import httpx
import pytest

from app import main
from app.api import health
from app.context import Service
from tests.fakes.batches import API_TOKEN, CRON_SECRET, a_service

NOWHERE = "postgres://app:s3cr3t@127.0.0.1:1/name"


@asynccontextmanager
async def knocking(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(main.create_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://wakebell.test") as http:
        yield http


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_process_lives_whatever_the_database_does(tmp_path: Path, method: str):
    async with knocking(a_service(NOWHERE, tmp_path)) as http:
        response = await http.request(method, "/healthz")

    assert response.status_code == 200
    assert response.text == ('{"status":"ok"}' if method == "GET" else "")


async def test_that_the_process_lives_is_asked_of_no_database(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)  # noqa: FBT003 - its only way
        async with knocking(a_service(f"postgres://127.0.0.1:{listening.getsockname()[1]}/name", tmp_path)) as http:
            for _ in range(3):
                await http.get("/healthz")

        with pytest.raises(BlockingIOError):  # nobody has knocked there
            listening.accept()


@pytest.mark.parametrize("version", [None, "9999"])
async def test_it_is_ready_with_a_schema_that_is_new_enough(database_url: str, tmp_path: Path, version: str | None):
    if version is not None:
        connection = await asyncpg.connect(database_url)
        await connection.execute("UPDATE wakebell.alembic_version SET version_num = $1", version)
        await connection.close()

    async with knocking(a_service(database_url, tmp_path)) as http:
        response = await http.get("/readyz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_it_is_not_ready_without_one(empty_database_url: str, tmp_path: Path):
    async with knocking(a_service(empty_database_url, tmp_path)) as http:
        response = await http.get("/readyz")

    assert (response.status_code, response.json()) == (503, {"status": "unavailable"})


async def test_it_is_not_ready_without_a_database_and_says_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(health, "READY_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgres://app:s3cr3t@127.0.0.1:{silent.getsockname()[1]}/name"
        async with knocking(a_service(url, tmp_path)) as http:
            response = await http.get("/readyz")

    assert (response.status_code, response.text) == (503, '{"status":"unavailable"}')


async def test_readiness_keeps_no_connection(database_url: str, tmp_path: Path):
    service = a_service(database_url, tmp_path)
    async with knocking(service) as http:
        await http.get("/readyz")

    assert service.stores.database.pool.open == 0


@pytest.mark.parametrize("token", [None, CRON_SECRET, "wrong"])
async def test_health_tells_strangers_a_status_alone(database_url: str, tmp_path: Path, token: str | None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with knocking(a_service(database_url, tmp_path)) as http:
        response = await http.get("/api/health", headers=headers)

    assert response.headers["Content-Type"] == "application/health+json"
    assert list(response.json()) == ["status"]


async def test_health_tells_why_to_those_who_may_know(database_url: str, tmp_path: Path):
    async with knocking(a_service(database_url, tmp_path)) as http:
        response = await http.get("/api/health", headers={"Authorization": f"Bearer {API_TOKEN}"})

    assert {"status", "version", "checks"} == set(response.json())


async def test_health_fails_without_a_database(tmp_path: Path):
    async with knocking(a_service(NOWHERE, tmp_path)) as http:
        response = await http.get("/api/health", headers={"Authorization": f"Bearer {API_TOKEN}"})

    assert response.status_code == 503
    assert response.json()["status"] == "fail"
    assert "s3cr3t" not in response.text
