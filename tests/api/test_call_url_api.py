"""Jobs that call an address, as programs put them in and see them."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.doors import API_TOKEN, CONFIGURATION, NOWHERE, built, calling

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
SECTION = f'[call_url]\nhosts = ["api.example.com"]\nsecret = "{SECRET}"\n'
ASKED = {"type": "call_url", "payload": {"url": "https://api.example.com/v1", "body": {"a": 1}}}


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, more=SECTION, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def client_alone(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, NOWHERE, more=SECTION, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_it_is_put_in_and_listed_as_a_users_job(client: httpx.AsyncClient):
    added = await client.post("/api/jobs", json={**ASKED, "queue": "calls"})

    assert added.status_code == 201
    listed = (await client.get("/api/jobs")).json()["jobs"]
    assert [(job["id"], job["type"], job["queue"]) for job in listed] == [(added.json()["id"], "call_url", "calls")]
    assert (await client.post("/api/jobs/retry", params={"type": "call_url"})).json() == {"retried": 0}


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"url": "https://evil.example/"}, "payload.url: evil.example is none of the hosts in [call_url] hosts"),
        ({"url": "http://api.example.com/"}, "payload.url: must begin with https://"),
        ({"url": "nowhere"}, "payload.url: must be an address, such as https://api.example.com/path"),
        ({}, "payload.url: Field required"),
        ({"url": "https://api.example.com/", "headers": {"Cookie": "hidden-words"}}, "payload.headers: Cookie is for"),
        ({"url": "https://api.example.com/", "method": "HEAD", "body": 1}, "payload.body: a HEAD has none"),
        ({"url": "https://api.example.com/", "success": ["2xx"]}, "payload.success.0: must be a status such as 204"),
    ],
)
async def test_what_will_not_be_called_is_refused_by_its_field_and_wakes_no_database(
    client_alone: httpx.AsyncClient, payload: dict[str, Any], told: str
):
    answer = await client_alone.post("/api/jobs", json={"type": "call_url", "payload": payload})

    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(told)
    assert "hidden" not in answer.text


async def test_it_may_follow_on_others_and_is_looked_at_there_too(client_alone: httpx.AsyncClient):
    then = [{"type": "call_url", "payload": {"url": "https://evil.example/"}}]

    answer = await client_alone.post("/api/jobs", json={"type": "greet", "payload": {"user_id": 1}, "then": then})

    assert answer.json()["detail"].startswith("then.0.payload.url: evil.example is none of")


async def test_without_a_section_it_is_refused_with_what_to_write(tmp_path: Path):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        answer = await client.post("/api/jobs", json=ASKED)
        unknown = await client.post("/api/jobs", json={**ASKED, "type": "call"})

    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(
        'type: "call_url" needs a section in wakebell.toml: [call_url] with hosts'
    )
    assert "the types are: greet, mail" in unknown.json()["detail"]
    assert "call_url" not in CONFIGURATION


async def test_a_credential_that_came_by_sql_is_not_listed(client: httpx.AsyncClient, sql: asyncpg.Connection):
    payload = {"url": "https://api.example.com/", "headers": {"authorization": "Bearer hidden", "X-More": "shown"}}
    job_id = await sql.fetchval("SELECT id FROM wakebell.enqueue('call_url', $1)", json.dumps(payload))

    one, page = await client.get(f"/api/jobs/{job_id}"), await client.get("/api/jobs")

    assert one.json()["payload"]["headers"] == {"authorization": "…", "X-More": "shown"}
    assert "hidden" not in one.text + page.text


async def test_a_credential_of_what_follows_is_not_shown(client: httpx.AsyncClient, sql: asyncpg.Connection):
    payload = {"url": "https://user:hidden@api.example.com/", "headers": {"Private-Token": "hidden"}}
    last = {"type": "call_url", "payload": payload}
    jobs = [{"type": "greet", "payload": {}, "then": [{"type": "greet", "payload": {}, "then": [last]}]}]
    job_id = await sql.fetchval("SELECT id FROM wakebell.enqueue_many($1)", json.dumps(jobs))

    one = await client.get(f"/api/jobs/{job_id}")

    shown = one.json()["then"][0]["then"][0]["payload"]
    assert shown == {"url": "https://…@api.example.com/", "headers": {"Private-Token": "…"}}
    assert "hidden" not in one.text
