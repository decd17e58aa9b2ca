"""Many jobs at once, jobs that follow, jobs that replace, and keys by their other name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app import asked
from tests.api.doors import API_TOKEN, NOWHERE, built, calling

ASKED = {"type": "greet", "payload": {"user_id": 1}}
COUNT = "SELECT count(*) FROM wakebell.jobs"


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def client_alone(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Of a service whose database does not answer."""
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_a_thousand_jobs_are_put_in_at_once_and_answered_in_order(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    jobs = [{"type": "greet", "payload": {"user_id": number}} for number in range(1000)]

    added = await client.post("/api/jobs/batch", json={"jobs": jobs})

    assert added.status_code == 201
    assert {one["created"] for one in added.json()} == {True}
    rows = await sql.fetch("SELECT id, CAST(payload ->> 'user_id' AS integer) AS number FROM wakebell.jobs")
    numbers = {row["id"]: row["number"] for row in rows}
    assert [numbers[one["id"]] for one in added.json()] == list(range(1000))


async def test_a_job_of_a_batch_has_all_its_sides(client: httpx.AsyncClient):
    asked = {
        **ASKED,
        "run_after": "2027-01-02T02:00:00Z",
        "queue": "people",
        "priority": 5,
        "unique_key": "one",
        "serial_key": "line",
        "max_attempts": 9,
    }

    added = (await client.post("/api/jobs/batch", json={"jobs": [asked, {**ASKED, "delay_seconds": 60}]})).json()

    told = (await client.get(f"/api/jobs/{added[0]['id']}")).json()
    assert {name: told[name] for name in asked} == asked
    later = (await client.get(f"/api/jobs/{added[1]['id']}")).json()
    assert later["run_after"] > later["created_at"]


async def test_a_key_that_is_taken_gets_the_job_that_has_it(client: httpx.AsyncClient, sql: asyncpg.Connection):
    keyed = {**ASKED, "unique_key": "one"}
    there = (await client.post("/api/jobs", json=keyed)).json()["id"]

    first, second, third = (await client.post("/api/jobs/batch", json={"jobs": [keyed, ASKED, keyed]})).json()

    assert first == third == {"id": there, "created": False}
    assert second["created"] is True
    assert await sql.fetchval(COUNT) == 2


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"type": "greet", "payload": {}}, "jobs.17.payload.user_id: Field required"),
        ({"type": "gret", "payload": {}}, 'jobs.17.type: there is no handler "gret"; the types are: greet, mail'),
        ({**ASKED, "queue": "wakebell.send"}, 'jobs.17.queue: names that begin with "wakebell."'),
        ({**ASKED, "priority": 101}, "jobs.17.priority: Input should be less than or equal to 100"),
        ({**ASKED, "colour": "red"}, "jobs.17.colour: there is no such field; remove it"),
        ({**ASKED, "replace": True}, "jobs.17.replace: there is no such field; remove it"),
        ({"type": "greet", "payload": {"user_id": 1, "a": ["\x00"]}}, "jobs.17.payload.a[0]: holds a NUL character"),
        ({**ASKED, "then": [ASKED, {**ASKED, "type": 1}]}, "jobs.17.then.1.type: Input should be a valid string"),
        (7, "jobs.17: must be a JSON object"),
        (
            {**ASKED, "delay_seconds": 1, "run_after": "2027-01-01T00:00:00Z"},
            "jobs.17.delay_seconds: excludes run_after",
        ),
    ],
)
async def test_one_that_cannot_be_run_refuses_all_by_its_place(client_alone: httpx.AsyncClient, wrong: Any, told: str):
    refused = await client_alone.post("/api/jobs/batch", json={"jobs": [*[ASKED] * 17, wrong, ASKED]})

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(told)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"queue": ""}, "jobs.2: queue must not be empty"),
        ({"then": [ASKED, {**ASKED, "unique_key": ""}]}, "jobs.2.then.1: unique_key must be from 1 to 1000 bytes"),
    ],
)
async def test_what_the_database_refuses_is_told_by_its_place_and_nothing_is_put_in(
    client: httpx.AsyncClient, sql: asyncpg.Connection, change: dict[str, Any], told: str
):
    refused = await client.post("/api/jobs/batch", json={"jobs": [ASKED, ASKED, {**ASKED, **change}]})

    assert refused.status_code == 422
    assert refused.json()["detail"] == told
    assert await sql.fetchval(COUNT) == 0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "jobs: must be a list of 1 to 1000 jobs"),
        ({"jobs": []}, "jobs: must be a list of 1 to 1000 jobs"),
        ({"jobs": [ASKED] * 1001}, "jobs: must be a list of 1 to 1000 jobs"),
        ({"jobs": {"0": ASKED}}, "jobs: must be a list of 1 to 1000 jobs"),
        ({"jobs": [ASKED], "queue": "x"}, "queue: there is no such field; remove it"),
    ],
)
async def test_what_is_no_batch_is_refused(client_alone: httpx.AsyncClient, body: dict[str, Any], told: str):
    refused = await client_alone.post("/api/jobs/batch", json=body)

    assert refused.status_code == 422
    assert refused.json()["detail"] == told


async def test_a_batch_is_bounded_in_bytes(client_alone: httpx.AsyncClient):
    long = {"type": "greet", "payload": {"user_id": 1, "text": "x" * 250_000}}

    too_long = await client_alone.post("/api/jobs/batch", json={"jobs": [long] * 20})
    one = {"type": "greet", "payload": {"user_id": 1, "text": "x" * 300_000}}
    one_too_long = await client_alone.post("/api/jobs/batch", json={"jobs": [ASKED, one]})

    assert (too_long.status_code, one_too_long.status_code) == (413, 413)
    assert too_long.json()["detail"] == "the body must be at most 4096 KiB"
    assert one_too_long.json()["detail"].startswith("jobs.1.payload: must be at most 256 KiB")


async def test_a_payload_that_grows_in_the_database_is_told_by_its_place(client: httpx.AsyncClient):
    grows = b'{"type": "greet", "payload": {"user_id": 1, "numbers": [' + b"1e300," * 1000 + b"1]}}"

    refused = await client.post("/api/jobs/batch", content=b'{"jobs": [' + grows + b"]}")

    assert refused.status_code == 413
    assert refused.json()["detail"].startswith("jobs.0.payload: must be at most 256 KiB")


async def test_a_batch_takes_no_key_for_all_of_it(client_alone: httpx.AsyncClient):
    refused = await client_alone.post("/api/jobs/batch", json={"jobs": [ASKED]}, headers={"Idempotency-Key": "x"})

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("Idempotency-Key: a batch takes none")


async def test_what_follows_is_kept_with_the_job(client: httpx.AsyncClient):
    last = {"type": "mail", "payload": {"user_id": 3}, "delay_seconds": 60}
    next_one = {"type": "mail", "payload": {"user_id": 2}, "queue": "people", "then": [last]}

    added = await client.post("/api/jobs", json={**ASKED, "then": [next_one]})

    assert added.status_code == 201
    [following] = added.json()["then"]
    assert (following["payload"], following["queue"]) == ({"user_id": 2}, "people")
    assert following["then"][0]["delay_seconds"] == 60
    assert (await client.get(added.headers["Location"])).json() == added.json()


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ([{"type": "gret", "payload": {}}], 'then.0.type: there is no handler "gret"'),
        ([ASKED, {"type": "mail", "payload": {}}], "then.1.payload.user_id: Field required"),
        ([{**ASKED, "replace": True}], "then.0.replace: there is no such field"),
        ([ASKED] * 101, "then: List should have at most 100 items"),
        (ASKED, "then: Input should be a valid list"),
        (["mail"], "then.0: must be a JSON object"),
    ],
)
async def test_what_could_not_follow_is_refused_by_its_place(client_alone: httpx.AsyncClient, then: Any, told: str):
    refused = await client_alone.post("/api/jobs", json={**ASKED, "then": then})

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(told)


async def test_those_that_follow_count_too(client_alone: httpx.AsyncClient):
    many = {**ASKED, "then": [ASKED] * 100}
    told = "then: a request must hold at most 1000 jobs, those that follow counted; send several"

    batch = await client_alone.post("/api/jobs/batch", json={"jobs": [many] * 700})
    one = await client_alone.post("/api/jobs", json={**ASKED, "then": [many] * 10})
    odd = await client_alone.post("/api/jobs/batch", json={"jobs": [{**ASKED, "then": [1, {"then": 2}, None]}]})

    assert (batch.status_code, batch.json()["detail"]) == (422, told)
    assert (one.status_code, one.json()["detail"]) == (422, told)
    assert odd.json()["detail"].startswith("jobs.0.then.0: must be a JSON object")


async def test_others_have_their_turn_while_a_batch_is_checked(
    client_alone: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    turn, seen = 0, set()
    read = asked.read

    def noted(*given: Any, **how: Any) -> Any:
        seen.add(turn)
        return read(*given, **how)

    monkeypatch.setattr(asked, "read", noted)
    batch = asyncio.create_task(client_alone.post("/api/jobs/batch", json={"jobs": [*[ASKED] * 999, {}]}))
    while not batch.done():
        turn += 1
        await asyncio.sleep(0)

    assert (await batch).status_code == 422
    assert len(seen) >= 20


def line(length: int) -> dict[str, Any]:
    """A job that so many follow, one on the other."""
    job: dict[str, Any] = ASKED
    for _ in range(length):
        job = {**ASKED, "then": [job]}
    return job


async def test_ten_jobs_may_follow_one_on_the_other(client: httpx.AsyncClient):
    ten = await client.post("/api/jobs", json=line(10))
    eleven = await client.post("/api/jobs", json=line(11))

    assert ten.status_code == 201
    assert eleven.status_code == 422
    assert eleven.json()["detail"] == ".".join(["then.0"] * 10) + ".then: must not follow more than 10 others"


async def test_a_pending_job_is_replaced_when_that_is_asked_for(client: httpx.AsyncClient):
    first = (await client.post("/api/jobs", json={**ASKED, "unique_key": "one"})).json()
    new = {"type": "greet", "payload": {"user_id": 2}, "unique_key": "one", "replace": True}

    payload = await client.post("/api/jobs", json=new)
    time = await client.post("/api/jobs", json={**new, "run_after": "2027-01-01T00:00:00Z"})

    assert (payload.status_code, time.status_code) == (200, 200)
    assert payload.json()["replaced"] is True
    assert payload.json()["id"] == time.json()["id"] == first["id"]
    assert (payload.json()["payload"], payload.json()["run_after"]) == ({"user_id": 2}, first["run_after"])
    assert time.json()["run_after"] == "2027-01-01T00:00:00Z"


async def test_a_running_job_is_never_replaced(client: httpx.AsyncClient, sql: asyncpg.Connection):
    await client.post("/api/jobs", json={**ASKED, "unique_key": "one"})
    await sql.execute(
        "UPDATE wakebell.jobs SET status = 'running', attempts = 1, lease_token = 1, "
        "lease_until = now() + interval '1 h'"
    )

    left = await client.post(
        "/api/jobs", json={"type": "greet", "payload": {"user_id": 2}, "unique_key": "one", "replace": True}
    )

    assert left.status_code == 200
    assert (left.json()["replaced"], left.json()["payload"]) == (False, {"user_id": 1})


async def test_replacing_nothing_creates_the_job(client: httpx.AsyncClient):
    created = await client.post("/api/jobs", json={**ASKED, "unique_key": "one", "replace": True})

    assert created.status_code == 201
    assert created.json()["replaced"] is False


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"replace": True}, "replace: needs a unique_key"),
        ({"replace": 1}, "replace: must be true or false"),
        ({"replace": "yes"}, "replace: must be true or false"),
        ({"replace": True, "unique_key": "a", "delay_seconds": 5}, "delay_seconds: does not go with replace"),
        ({"delay_seconds": -1}, "delay_seconds: Input should be greater than or equal to 0"),
    ],
)
async def test_what_cannot_replace_is_refused_and_wakes_no_database(
    client_alone: httpx.AsyncClient, change: dict[str, Any], told: str
):
    refused = await client_alone.post("/api/jobs", json={**ASKED, **change})

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(told)


async def test_a_job_may_wait_so_many_seconds(client: httpx.AsyncClient, sql: asyncpg.Connection):
    added = await client.post("/api/jobs", json={**ASKED, "delay_seconds": 3600, "then": [ASKED]})
    refused = await client.post("/api/jobs", json={**ASKED, "delay_seconds": 3600, "queue": ""})

    assert added.status_code == 201
    assert await sql.fetchval("SELECT run_after - created_at BETWEEN '3590 s' AND '3610 s' FROM wakebell.jobs")
    assert refused.json()["detail"] == "queue must not be empty"


@pytest.mark.parametrize("key", ["8e03978e-40d5-43dd", '"8e03978e-40d5-43dd"'])
async def test_an_idempotency_key_is_a_unique_key(client: httpx.AsyncClient, key: str):
    answers = [await client.post("/api/jobs", json=ASKED, headers={"Idempotency-Key": key}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 200]
    assert {answer.json()["unique_key"] for answer in answers} == {"8e03978e-40d5-43dd"}


async def test_the_bodys_unique_key_is_the_one_that_counts(client: httpx.AsyncClient):
    added = await client.post("/api/jobs", json={**ASKED, "unique_key": "a"}, headers={"Idempotency-Key": "b"})

    assert added.json()["unique_key"] == "a"


@pytest.mark.parametrize("key", [b"", b'""', b"\xc3\xa9", b"a\tb"])
async def test_a_key_that_cannot_be_one_is_refused_by_its_header(client_alone: httpx.AsyncClient, key: bytes):
    refused = await client_alone.post("/api/jobs", json=ASKED, headers=[(b"Idempotency-Key", key)])

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("Idempotency-Key: must be one text of visible ASCII characters")
