"""Queues as programs see, pause and limit them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.doors import API_TOKEN, NOWHERE, built, calling

EMPTY = {
    "name": "mail",
    "due": 0,
    "running": 0,
    "max_running": None,
    "max_starts": None,
    "period_seconds": None,
    "paused_until": None,
    "reason": None,
}


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def put_in(client: httpx.AsyncClient, queue: str) -> None:
    added = await client.post("/api/jobs", json={"type": "greet", "payload": {"user_id": 1}, "queue": queue})
    assert added.status_code == 201


async def test_queues_are_listed_with_their_backlog(client: httpx.AsyncClient, sql: asyncpg.Connection):
    await put_in(client, "mail")
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send')")

    listed = await client.get("/api/queues")
    own = await client.get("/api/queues", params={"own": "true"})

    assert listed.json() == {"queues": [EMPTY | {"due": 1}]}
    assert [queue["name"] for queue in own.json()["queues"]] == ["mail", "wakebell.send"]


async def test_a_pause_says_until_when_and_why_and_is_ended_by_null(client: httpx.AsyncClient):
    await put_in(client, "mail")

    paused = await client.put(
        "/api/queues/mail", json={"paused_until": "2099-01-01T07:00:00+07:00", "reason": " the provider is down "}
    )
    resumed = await client.put("/api/queues/mail", json={"paused_until": None})

    assert paused.status_code == 200
    assert paused.json() == EMPTY | {
        "due": 1,
        "paused_until": "2099-01-01T00:00:00Z",
        "reason": "the provider is down",
    }
    assert resumed.json() == EMPTY | {"due": 1}


async def test_a_pause_may_be_for_as_long_as_nobody_ends_it(client: httpx.AsyncClient):
    paused = await client.put("/api/queues/mail", json={"paused_until": "forever", "reason": "tired"})

    assert paused.json() == EMPTY | {"paused_until": "forever", "reason": "tired"}
    assert (await client.get("/api/queues/mail")).json() == paused.json()


async def test_what_is_left_out_stays_as_it_is_and_null_takes_away(client: httpx.AsyncClient):
    await client.put("/api/queues/mail", json={"max_running": 3, "max_starts": 10, "period_seconds": 60})
    await client.put("/api/queues/mail", json={"paused_until": "forever", "reason": "tired"})

    changed = await client.put("/api/queues/mail", json={"max_running": None, "max_starts": 5, "period_seconds": 0.5})
    freed = await client.put("/api/queues/mail", json={"max_starts": None})
    nothing = await client.put("/api/queues/mail", json={})

    limits = {"max_starts": 5, "period_seconds": 0.5}
    assert changed.json() == EMPTY | limits | {"paused_until": "forever", "reason": "tired"}
    assert freed.json() == nothing.json() == EMPTY | {"paused_until": "forever", "reason": "tired"}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"paused_until": "forever"}, "reason: is missing; say why the queue is paused"),
        ({"paused_until": "forever", "reason": "  "}, "reason: is missing"),
        ({"paused_until": "forever", "reason": ""}, "reason: String should have at least 1 character"),
        ({"paused_until": "forever", "reason": "x" * 501}, "reason: String should have at most 500"),
        ({"paused_until": "forever", "reason": "\x00"}, "reason: holds a NUL character"),
        ({"reason": "tired"}, "reason: belongs to a pause"),
        ({"paused_until": None, "reason": "tired"}, "reason: belongs to a pause"),
        ({"paused_until": "soon", "reason": "x"}, "paused_until: must be an instant in ISO 8601"),
        ({"paused_until": "2099-01-01T00:00:00", "reason": "x"}, "paused_until: has no time zone"),
        ({"max_running": 0}, "max_running: Input should be greater than or equal to 1"),
        ({"max_running": "3"}, "max_running: Input should be a valid integer"),
        ({"max_starts": 10}, "period_seconds: is missing; max_starts and period_seconds go together"),
        ({"period_seconds": 10}, "max_starts: is missing"),
        ({"max_starts": 10001, "period_seconds": 1}, "max_starts: "),
        ({"max_starts": 1, "period_seconds": 0}, "period_seconds: "),
        ({"max_starts": 1, "period_seconds": None}, "period_seconds: is missing"),
        ({"name": "other"}, "name: there is no such field; remove it"),
    ],
)
async def test_what_means_nothing_is_refused_by_its_field_and_wakes_no_database(
    tmp_path: Path, body: dict[str, Any], told: str
):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        refused = await client.put("/api/queues/mail", json=body)

    assert refused.status_code == 422
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["detail"].startswith(told)


async def test_a_pause_that_would_be_over_already_is_refused(client: httpx.AsyncClient):
    refused = await client.put("/api/queues/mail", json={"paused_until": "2020-01-01T00:00:00Z", "reason": "late"})

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("paused_until: has passed already")


async def test_the_services_own_queues_can_be_looked_at_and_not_changed(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send')")

    looked = await client.get("/api/queues/wakebell.send")
    refused = await client.put("/api/queues/wakebell.send", json={"paused_until": "forever", "reason": "quiet"})

    assert (looked.status_code, looked.json()["due"]) == (200, 1)
    assert refused.status_code == 422
    assert "the service's own" in refused.json()["detail"]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.queues") == 0


@pytest.mark.parametrize("name", ["a/b", "งาน", "with space", "50%"])
async def test_any_name_that_jobs_can_have_can_be_paused(client: httpx.AsyncClient, name: str):
    path = f"/api/queues/{httpx.URL('http://x').copy_with(path='/' + name).raw_path.decode()[1:]}"

    paused = await client.put(path, json={"paused_until": "forever", "reason": "tired"})

    assert (paused.status_code, paused.json()["name"]) == (200, name)


@pytest.mark.parametrize("name", ["", "x" * 201, "%00"])
async def test_a_name_that_no_job_can_have_is_refused(tmp_path: Path, name: str):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        refused = [
            await client.get(f"/api/queues/{name}"),
            await client.put(f"/api/queues/{name}", json={"max_running": 1}),
        ]

    assert [answer.status_code for answer in refused] == [422, 422]
    assert all(answer.json()["detail"].startswith("the queue's name ") for answer in refused)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/queues"), ("GET", "/api/queues/mail"), ("PUT", "/api/queues/mail")]
)
async def test_only_the_right_token_opens_a_door(tmp_path: Path, method: str, path: str):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN), token="wrong") as client:
        refused = await client.request(method, path)
    async with calling(built(tmp_path, NOWHERE)) as client:
        closed = await client.request(method, path)

    assert (refused.status_code, closed.status_code) == (401, 503)
