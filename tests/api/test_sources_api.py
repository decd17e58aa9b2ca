from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from app.context import Service
from tests.api.doors import API_TOKEN, built, calling

ADD = """
INSERT INTO wakebell.sources (
    name, fingerprint, every_seconds, due_at, primed_at, last_round_at, last_success_at, failures, last_failure_at,
    last_error)
VALUES (
    $1, $2, 1800, '2026-11-30 09:30Z', '2026-11-01Z', '2026-11-29Z', '2026-11-30Z', 2, '2026-11-30 09:00Z',
    'jobs.example answered 500')
"""
ITEMS = "INSERT INTO wakebell.items (source, key, title) SELECT $1, n, 'a gig' FROM generate_series(1, $2::int) AS n"

UNSEEN = {
    "due_at": None,
    "primed": False,
    "last_round_at": None,
    "last_success_at": None,
    "failures": 0,
    "last_failure_at": None,
    "last_error": None,
    "items": 0,
}


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Service:
    return built(tmp_path, database_url, API_TOKEN=API_TOKEN)


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(service) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_every_configured_source_is_told_and_no_other_and_no_address(
    client: httpx.AsyncClient, service: Service, sql: asyncpg.Connection
):
    await sql.execute(ADD, "gigs", service.settings.sources["gigs"].fingerprint)
    await sql.execute(ADD, "removed", "x")
    await sql.execute(ITEMS, "gigs", 3)
    await sql.execute(ITEMS, "removed", 5)

    answer = await client.get("/api/sources")

    assert answer.status_code == 200
    assert answer.json() == {
        "sources": [
            {
                "name": "gigs",
                "kind": "feed",
                "every_minutes": 30,
                "due_at": "2026-11-30T09:30:00Z",
                "primed": True,
                "last_round_at": "2026-11-29T00:00:00Z",
                "last_success_at": "2026-11-30T00:00:00Z",
                "failures": 2,
                "last_failure_at": "2026-11-30T09:00:00Z",
                "last_error": "jobs.example answered 500",
                "items": 3,
            },
            {"name": "board", "kind": "feed", "every_minutes": 0.5, **UNSEEN},
        ]
    }
    assert "hidden-in-the-address" not in answer.text


async def test_a_source_that_was_given_another_address_is_not_primed_and_due_with_the_next_tick(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    await sql.execute(ADD, "gigs", "of-the-address-before")

    [gigs, _] = (await client.get("/api/sources")).json()["sources"]

    assert (gigs["primed"], gigs["due_at"], gigs["failures"], gigs["last_error"]) == (False, None, 0, None)
    assert gigs["last_round_at"] == "2026-11-29T00:00:00Z"
