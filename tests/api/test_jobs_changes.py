"""What programs do with jobs that are there: retry, cancel, another time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.doors import API_TOKEN, NOWHERE, built, calling

FAILURE = {"attempt": 1, "at": "2026-11-30T09:00:00.250000Z", "error": "no paper", "traceback": "Traceback …"}


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def put_in(client: httpx.AsyncClient, **more: Any) -> int:
    added = await client.post("/api/jobs", json={"type": "greet", "payload": {"user_id": 1}, **more})
    assert added.status_code in {200, 201}, added.text
    job_id: int = added.json()["id"]
    return job_id


async def become(sql: asyncpg.Connection, job_id: int, status: str) -> None:
    ended = {"done", "failed", "cancelled"}
    await sql.execute(
        "UPDATE wakebell.jobs SET status = $2, attempts = 1, finished_at = CASE WHEN $3 THEN now() END, "
        "lease_until = CASE WHEN $2 = 'running' THEN now() + interval '1 minute' END, lease_token = 1 WHERE id = $1",
        job_id,
        status,
        status in ended,
    )


async def test_a_job_shows_how_its_tries_failed(client: httpx.AsyncClient, sql: asyncpg.Connection):
    job_id = await put_in(client)
    await sql.execute("UPDATE wakebell.jobs SET failures = CAST($1 AS jsonb)", json.dumps([FAILURE]))

    job = (await client.get(f"/api/jobs/{job_id}")).json()

    assert job["failures"] == [FAILURE]


async def test_a_page_leaves_out_what_only_one_job_shows(client: httpx.AsyncClient):
    await put_in(client)

    [listed] = (await client.get("/api/jobs")).json()["jobs"]

    assert {"failures", "then"} & listed.keys() == set()


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_job_that_ended_badly_is_run_again(client: httpx.AsyncClient, sql: asyncpg.Connection, status: str):
    job_id = await put_in(client)
    await become(sql, job_id, status)

    retried = await client.post(f"/api/jobs/{job_id}/retry")

    assert retried.status_code == 200
    assert (retried.json()["id"], retried.json()["status"], retried.json()["attempts"]) == (job_id, "pending", 0)


async def test_a_job_that_waits_for_its_time_is_run_now(client: httpx.AsyncClient, sql: asyncpg.Connection):
    job_id = await put_in(client, run_after="2099-01-01T00:00:00Z")

    retried = await client.post(f"/api/jobs/{job_id}/retry")

    assert retried.status_code == 200
    assert await sql.fetchval("SELECT run_after <= now() FROM wakebell.jobs")


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("running", "is running; it is tried again by itself when this try fails"),
        ("done", "is done; put in a new one to have its work done once more"),
    ],
)
async def test_what_runs_or_is_done_is_not_run_again(
    client: httpx.AsyncClient, sql: asyncpg.Connection, status: str, told: str
):
    job_id = await put_in(client)
    await become(sql, job_id, status)

    refused = await client.post(f"/api/jobs/{job_id}/retry")

    assert refused.status_code == 409
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["detail"] == f"job {job_id} {told}"
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == status


async def test_a_job_whose_unique_key_another_one_has_is_not_run_again(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    first = await put_in(client, unique_key="one")
    await become(sql, first, "failed")
    await put_in(client, unique_key="one")

    refused = await client.post(f"/api/jobs/{first}/retry")

    assert refused.status_code == 409
    assert "another job has its unique_key" in refused.json()["detail"]


async def test_a_job_that_has_not_started_is_cancelled_and_stays_so(client: httpx.AsyncClient):
    job_id = await put_in(client)

    answers = [await client.delete(f"/api/jobs/{job_id}") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json()["status"] for answer in answers] == ["cancelled"] * 2


@pytest.mark.parametrize(
    ("status", "told"), [("running", "is running"), ("done", "is done already"), ("failed", "is failed already")]
)
async def test_what_runs_or_has_ended_is_neither_cancelled_nor_given_another_time(
    client: httpx.AsyncClient, sql: asyncpg.Connection, status: str, told: str
):
    job_id = await put_in(client)
    await become(sql, job_id, status)

    cancelled = await client.delete(f"/api/jobs/{job_id}")
    moved = await client.patch(f"/api/jobs/{job_id}", json={"run_after": "2027-01-01T00:00:00Z"})

    assert (cancelled.status_code, moved.status_code) == (409, 409)
    assert cancelled.json()["detail"] == f"job {job_id} {told}; only one that waits can be cancelled"
    assert moved.json()["detail"] == f"job {job_id} {told}; only one that waits can be given another time"
    assert await sql.fetchval("SELECT status FROM wakebell.jobs") == status


async def test_a_job_that_waits_is_given_another_time(client: httpx.AsyncClient):
    job_id = await put_in(client)

    moved = await client.patch(f"/api/jobs/{job_id}", json={"run_after": "2027-01-01T07:00:00+07:00"})

    assert moved.status_code == 200
    assert moved.json()["run_after"] == "2027-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "run_after: Field required"),
        ({"run_after": None}, "run_after: must be an instant in ISO 8601"),
        ({"run_after": "2027-01-01"}, "run_after: has no time zone"),
        ({"run_after": "2027-01-01T00:00:00Z", "priority": 5}, "priority: there is no such field; remove it"),
    ],
)
async def test_a_change_that_means_nothing_is_refused_by_its_field_and_wakes_no_database(
    tmp_path: Path, body: dict[str, Any], told: str
):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        refused = await client.patch("/api/jobs/1", json=body)

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(told)


@pytest.mark.parametrize("job_id", ["7", "0", "-1", "99999999999999999999"])
async def test_what_is_not_there_is_404(client: httpx.AsyncClient, job_id: str):
    answers = [
        await client.post(f"/api/jobs/{job_id}/retry"),
        await client.delete(f"/api/jobs/{job_id}"),
        await client.patch(f"/api/jobs/{job_id}", json={"run_after": "2027-01-01T00:00:00Z"}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 3


async def test_the_services_own_jobs_are_left_to_it(client: httpx.AsyncClient, sql: asyncpg.Connection):
    own = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send') RETURNING id"
    )

    answers = [
        await client.post(f"/api/jobs/{own}/retry"),
        await client.delete(f"/api/jobs/{own}"),
        await client.patch(f"/api/jobs/{own}", json={"run_after": "2027-01-01T00:00:00Z"}),
    ]

    assert [answer.status_code for answer in answers] == [409] * 3
    assert all("the service's own" in answer.json()["detail"] for answer in answers)


async def test_all_failed_jobs_of_a_type_are_run_again_as_many_as_asked_for(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    for type_ in ("greet", "greet", "greet", "mail"):
        await become(sql, await put_in(client, type=type_), "failed")

    first = await client.post("/api/jobs/retry", params={"type": "greet", "limit": 2})
    second = await client.post("/api/jobs/retry", params={"type": "greet"})

    assert (first.json(), second.json()) == ({"retried": 2}, {"retried": 1})
    assert await sql.fetch("SELECT type FROM wakebell.jobs WHERE status = 'failed'") == [("mail",)]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({}, "query.type: Field required"),
        ({"type": "gret"}, 'type: there is no handler "gret"; the types are: greet, mail'),
        ({"type": "greet", "limit": 1001}, "query.limit: "),
        ({"type": "greet", "queue": "x"}, "query.queue: "),
    ],
)
async def test_a_retry_of_nothing_is_refused_by_name(client: httpx.AsyncClient, query: dict[str, Any], told: str):
    refused = await client.post("/api/jobs/retry", params=query)

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(told)


async def test_failed_own_jobs_of_a_type_may_be_retried_too(client: httpx.AsyncClient, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, queue, status, finished_at) "
        "VALUES ('send_message', 'wakebell.send', 'failed', now())"
    )

    retried = await client.post("/api/jobs/retry", params={"type": "send_message"})

    assert retried.json() == {"retried": 1}


DOORS = [
    ("POST", "/api/jobs/batch"),
    ("POST", "/api/jobs/retry"),
    ("POST", "/api/jobs/1/retry"),
    ("DELETE", "/api/jobs/1"),
    ("PATCH", "/api/jobs/1"),
]


@pytest.mark.parametrize(("method", "path"), DOORS)
async def test_only_the_right_token_opens_a_door(tmp_path: Path, method: str, path: str):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN), token="wrong") as client:
        refused = await client.request(method, path)
    async with calling(built(tmp_path, NOWHERE)) as client:
        closed = await client.request(method, path)

    assert (refused.status_code, closed.status_code) == (401, 503)
