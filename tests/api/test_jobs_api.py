from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app.context import Service
from tests.api.doors import API_TOKEN, NOWHERE, built, calling

ASKED = {"type": "greet", "payload": {"user_id": 1}}


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Service:
    return built(tmp_path, database_url, API_TOKEN=API_TOKEN)


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(service) as client:
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


async def test_a_job_is_put_in_with_all_its_sides(client: httpx.AsyncClient):
    asked = {
        "type": "greet",
        "payload": {"user_id": 7, "name": "မြန်မာ"},
        "run_after": "2027-01-02T09:00:00.5+07:00",
        "queue": "people",
        "priority": 5,
        "unique_key": "seven",
        "serial_key": "line",
        "max_attempts": 9,
    }

    added = await client.post("/api/jobs", json=asked)

    told = added.json()
    assert added.status_code == 201
    assert {name: told[name] for name in asked} == {**asked, "run_after": "2027-01-02T02:00:00.500000Z"}
    assert (told["status"], told["attempts"], told["result"]) == ("pending", 0, None)
    assert told["created_at"].endswith("Z")
    assert (await client.get(added.headers["Location"])).json() == told


async def test_what_is_left_out_or_null_has_its_default(client: httpx.AsyncClient):
    left_out = (await client.post("/api/jobs", json=ASKED)).json()
    nothing = dict.fromkeys(["run_after", "queue", "priority", "unique_key", "serial_key", "max_attempts"])
    null = (await client.post("/api/jobs", json={**ASKED, **nothing})).json()

    for told in (left_out, null):
        assert (told["queue"], told["priority"], told["max_attempts"]) == ("default", 0, 4)
        assert (told["unique_key"], told["serial_key"]) == (None, None)


async def test_a_unique_key_that_is_taken_gets_the_job_that_has_it(client: httpx.AsyncClient):
    first = await client.post("/api/jobs", json={**ASKED, "unique_key": "one"})
    again = await client.post("/api/jobs", json={"type": "greet", "payload": {"user_id": 2}, "unique_key": "one"})
    other_type = await client.post("/api/jobs", json={**ASKED, "type": "mail", "unique_key": "one"})

    assert (first.status_code, again.status_code, other_type.status_code) == (201, 200, 201)
    assert again.json() == first.json()


async def test_of_many_at_once_with_one_unique_key_one_is_created(client: httpx.AsyncClient):
    answers = await asyncio.gather(*(client.post("/api/jobs", json={**ASKED, "unique_key": "one"}) for _ in range(6)))

    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"type": "gret"}, 'type: there is no handler "gret"; the types are: greet, mail'),
        ({"type": "send_message"}, 'type: "send_message" is one of the service\'s own, which it queues itself'),
        ({"type": None}, "type: Field required"),
        ({"type": 1}, "type: Input should be a valid string"),
        ({"type": "gr\x00"}, "type: holds a NUL character, which PostgreSQL cannot store"),
        ({"payload": None}, "payload: Field required"),
        ({"payload": [1]}, "payload: Input should be a valid dictionary"),
        ({"payload": {}}, "payload.user_id: Field required"),
        (
            {"payload": {"user_id": 1, "a": ["\x00"]}},
            "payload.a[0]: holds a NUL character, which PostgreSQL cannot store",
        ),
        ({"payload": {"user_id": 1, "\x00": 1}}, "payload: has the key '\\x00', which PostgreSQL cannot store"),
        ({"payload": {"user_id": 1, "password": "opensesame"}}, "payload.password: … is a word"),
        (
            {"payload": {"user_id": 1, "a": json.loads("[" * 199 + "1" + "]" * 199)}},
            "payload: is nested too deeply; it may have fewer than 200 levels",
        ),
        (
            {"then": [{**ASKED, "payload": {"user_id": 1, "a": json.loads('{"a":' * 199 + "1" + "}" * 199)}}]},
            "then.0.payload: is nested too deeply",
        ),
        ({"queue": "wakebell.send"}, 'queue: names that begin with "wakebell." are the service\'s own; choose another'),
        ({"priority": 101}, "priority: Input should be less than or equal to 100"),
        ({"priority": -1}, "priority: Input should be greater than or equal to 0"),
        ({"priority": "5"}, "priority: Input should be a valid integer"),
        ({"priority": True}, "priority: Input should be a valid integer"),
        ({"max_attempts": 0}, "max_attempts: Input should be greater than or equal to 1"),
        ({"max_attempts": 1001}, "max_attempts: Input should be less than or equal to 1000"),
        ({"run_after": "tomorrow"}, "run_after: must be an instant in ISO 8601, such as 2026-11-30T09:00:00Z"),
        ({"run_after": 1800000000}, "run_after: must be an instant in ISO 8601, such as 2026-11-30T09:00:00Z"),
        ({"run_after": "0001-01-01T00:00:00+14:00"}, "run_after: must be an instant in ISO 8601"),
        ({"run_after": "2026-11-30T09:00:00"}, "run_after: has no time zone; write 2026-11-30T09:00:00Z, or an offset"),
        ({"colour": "red"}, "colour: there is no such field; remove it"),
    ],
)
async def test_what_cannot_be_run_is_refused_by_its_field_and_wakes_no_database(
    client_alone: httpx.AsyncClient, change: dict[str, Any], told: str
):
    refused = await client_alone.post("/api/jobs", json={**ASKED, **change})

    assert refused.status_code == 422
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["detail"].startswith(told)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"queue": ""}, "queue must not be empty"),
        ({"queue": "ข" * 67}, "queue must be at most 200 bytes"),
        ({"unique_key": "x" * 1001}, "unique_key must be from 1 to 1000 bytes"),
        ({"serial_key": ""}, "serial_key must be from 1 to 1000 bytes"),
    ],
)
async def test_what_the_database_refuses_is_told_in_its_words(
    client: httpx.AsyncClient, sql: asyncpg.Connection, change: dict[str, Any], told: str
):
    refused = await client.post("/api/jobs", json={**ASKED, **change})

    assert refused.status_code == 422
    assert refused.json()["detail"] == told
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 0


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", 400, "the body is not JSON"),
        (b'{"type": ', 400, "the body is not JSON: Expecting value at line 1, column 10"),
        (b"\xff", 400, "the body is not JSON"),
        (b'{"type": NaN}', 400, "the body is not JSON"),
        pytest.param(b"[" * 100_000, 422, "the body is nested too deeply", id="deep"),
        (b"[]", 422, "the body must be a JSON object"),
        (b'{"type": "greet", "payload": {"user_id": 1e999}}', 422, "payload.user_id: is not a finite number"),
        (b'{"type": "greet", "payload": {"user_id": 1, "\\ud800": 1}}', 422, "payload: has the key '\\ud800'"),
        (b'{"type": "greet", "payload": {"user_id": 1, "a": "\\udfff"}}', 422, "payload.a: holds half of a surrogate"),
        (b'{"type": "gr\\ud800", "payload": {}}', 422, "type: holds half of a surrogate pair"),
        (b'{"type": "greet", "payload": {"user_id": 1}, "unique_key": "\\ud800"}', 422, "unique_key: holds half"),
        (b'{"type": "greet", "payload": {"user_id": 1}, "\\ud800": 1}', 422, "the body: "),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(
    client_alone: httpx.AsyncClient, body: bytes, status: int, told: str
):
    refused = await client_alone.post("/api/jobs", content=body)

    assert refused.status_code == status
    assert refused.json()["detail"].startswith(told)


@pytest.mark.parametrize("kind", ["text/xml", "multipart/form-data; boundary=x", "image/png"])
async def test_what_is_said_to_be_something_else_is_not_read(client_alone: httpx.AsyncClient, kind: str):
    refused = await client_alone.post("/api/jobs", content=json.dumps(ASKED), headers={"Content-Type": kind})

    assert refused.status_code == 415


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/vnd.x+json", "text/plain", ""])
async def test_json_is_taken_under_the_names_that_programs_give_it(client: httpx.AsyncClient, kind: str):
    added = await client.post("/api/jobs", content=json.dumps(ASKED), headers={"Content-Type": kind})

    assert added.status_code == 201


async def test_a_compressed_body_is_refused_by_name(client_alone: httpx.AsyncClient):
    refused = await client_alone.post("/api/jobs", content=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    assert refused.status_code == 415
    assert "Content-Encoding" in refused.json()["detail"]


async def test_a_payload_may_have_256_kib_and_no_more(client: httpx.AsyncClient):
    room = 256 * 1024 - len(json.dumps({"user_id": 1, "text": ""}))
    fits = await client.post("/api/jobs", json={"type": "greet", "payload": {"user_id": 1, "text": "x" * room}})
    too_long = await client.post(
        "/api/jobs", json={"type": "greet", "payload": {"user_id": 1, "text": "x" * (room + 1)}}
    )
    grows = await client.post("/api/jobs", content=_of_numbers_that_grow())

    assert fits.status_code == 201
    for refused in (too_long, grows):
        assert refused.status_code == 413
        assert refused.json()["detail"].startswith("payload: must be at most 256 KiB")


def _of_numbers_that_grow() -> bytes:
    """1e300 is five characters here and 301 in the database."""
    return b'{"type": "greet", "payload": {"user_id": 1, "numbers": [' + b"1e300," * 1000 + b"1]}}"


async def test_a_body_without_end_is_refused_before_it_has_come(client_alone: httpx.AsyncClient):
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 10 * 1024 * 1024:
            sent += 64 * 1024
            yield b" " * 64 * 1024

    refused = await client_alone.post("/api/jobs", content=endless())
    foretold = await client_alone.post("/api/jobs", content=b" " * (10 * 1024 * 1024))

    assert (refused.status_code, foretold.status_code) == (413, 413)
    assert refused.json()["detail"] == "the body must be at most 512 KiB"
    assert sent < 1024 * 1024


async def test_pages_show_every_job_once_while_more_are_put_in(client: httpx.AsyncClient):
    before = [(await client.post("/api/jobs", json=ASKED)).json()["id"] for _ in range(5)]

    first = (await client.get("/api/jobs", params={"limit": 2})).json()
    await client.post("/api/jobs", json=ASKED)
    second = (await client.get("/api/jobs", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    third = (await client.get("/api/jobs", params={"limit": 2, "cursor": second["next_cursor"]})).json()

    seen = [job["id"] for page in (first, second, third) for job in page["jobs"]]
    assert seen == before[::-1]
    assert third["next_cursor"] is None


@pytest.mark.parametrize("depth", [250, 900, 5_000])
async def test_what_sql_has_nested_too_deeply_is_listed_with_words_for_it(
    client: httpx.AsyncClient, sql: asyncpg.Connection, depth: int
):
    deep = '{"a":' + "[" * depth + "1" + "]" * depth + "}"
    job_id = await sql.fetchval("SELECT id FROM wakebell.enqueue('greet', $1)", deep)

    one, page = await client.get(f"/api/jobs/{job_id}"), await client.get("/api/jobs")

    assert (one.status_code, page.status_code) == (200, 200)
    assert one.json()["payload"] == page.json()["jobs"][0]["payload"] == "nested too deeply to be read"


@pytest.mark.parametrize("depth", [250, 900])
async def test_what_follows_and_is_nested_too_deeply_is_shown_with_words_for_it(
    client: httpx.AsyncClient, sql: asyncpg.Connection, depth: int
):
    deep = '{"type": "greet", "payload": {"a":' + "[" * depth + "1" + "]" * depth + "}}"
    jobs = f'[{{"type": "greet", "payload": {{}}, "then": [{deep}]}}]'
    job_id = await sql.fetchval("SELECT id FROM wakebell.enqueue_many($1)", jobs)

    [following] = (await client.get(f"/api/jobs/{job_id}")).json()["then"]

    assert following["payload"] == "nested too deeply to be read"


async def test_filters_narrow_the_listing(client: httpx.AsyncClient, sql: asyncpg.Connection):
    ids = {}
    for type_, queue in (("greet", "a"), ("greet", "b"), ("mail", "a")):
        added = await client.post("/api/jobs", json={**ASKED, "type": type_, "queue": queue})
        ids[type_ + queue] = added.json()["id"]
    await sql.execute("UPDATE wakebell.jobs SET status = 'failed' WHERE id = $1", ids["greetb"])

    assert await seen(client, type="greet") == [ids["greetb"], ids["greeta"]]
    assert await seen(client, queue="a") == [ids["maila"], ids["greeta"]]
    assert await seen(client, status="failed") == [ids["greetb"]]
    assert await seen(client, status="pending", type="greet", queue="a") == [ids["greeta"]]
    assert await seen(client, status="done") == []
    assert await seen(client, queue="\u0e17") == []


async def test_the_services_own_jobs_are_shown_when_they_are_asked_for(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    users = (await client.post("/api/jobs", json=ASKED)).json()["id"]
    own = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send') RETURNING id"
    )

    assert await seen(client) == [users]
    assert await seen(client, own="true") == [own, users]
    assert await seen(client, queue="wakebell.send") == [own]
    assert await seen(client, type="send_message") == [own]
    assert (await client.get(f"/api/jobs/{own}")).json()["queue"] == "wakebell.send"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"limit": 0}, "query.limit"),
        ({"limit": 201}, "query.limit"),
        ({"status": "retrying"}, "query.status"),
        ({"statuss": "failed"}, "query.statuss"),
        ({"type": "\x00"}, "query.type"),
        ({"cursor": "zz"}, "cursor"),
        ({"cursor": "bWVzc2FnZXM6NQ"}, "cursor"),  # of messages
        ({"cursor": "am9iczo5OTk5OTk5OTk5OTk5OTk5OTk5OQ"}, "cursor"),  # beyond any id
        ({"cursor": "é"}, "cursor"),
    ],
)
async def test_a_query_that_means_nothing_is_refused_by_name(
    client: httpx.AsyncClient, query: dict[str, Any], told: str
):
    refused = await client.get("/api/jobs", params=query)

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(f"{told}: ")


@pytest.mark.parametrize("job_id", ["7", "0", "-1", "99999999999999999999"])
async def test_a_job_that_is_not_there_is_404(client: httpx.AsyncClient, job_id: str):
    missing = await client.get(f"/api/jobs/{job_id}")

    assert missing.status_code == 404
    assert missing.headers["Content-Type"] == "application/problem+json"


DOORS = [("POST", "/api/jobs"), ("GET", "/api/jobs"), ("GET", "/api/jobs/1")]
OTHER_DOORS = [("GET", "/api/messages"), ("GET", "/api/messages/1"), ("GET", "/api/sources")]


@pytest.mark.parametrize(("method", "path"), DOORS + OTHER_DOORS)
@pytest.mark.parametrize("token", [None, "", "a-cron-secret-of-thirty-letters", API_TOKEN.upper(), API_TOKEN[:-1]])
async def test_only_the_right_token_opens_a_door(tmp_path: Path, method: str, path: str, token: str | None):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN), token=token) as client:
        refused = await client.request(method, path)

    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert refused.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(("method", "path"), DOORS + OTHER_DOORS)
async def test_without_a_token_set_the_doors_are_closed_to_all(tmp_path: Path, method: str, path: str):
    async with calling(built(tmp_path, NOWHERE)) as client:
        refused = await client.request(method, path)

    assert refused.status_code == 503
    assert refused.json()["detail"] == "API_TOKEN is not set"
    assert "Retry-After" not in refused.headers


async def test_a_schema_that_is_not_there_is_said_and_the_caller_may_come_again(
    tmp_path: Path, empty_database_url: str
):
    async with calling(built(tmp_path, empty_database_url, API_TOKEN=API_TOKEN)) as client:
        refused = await client.get("/api/jobs")

    assert refused.status_code == 503
    assert "wakebell migrate" in refused.json()["detail"]


async def test_no_connection_is_open_when_the_answer_leaves(
    client: httpx.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
):
    open_at_answer: list[int] = []
    app: Any = client._transport.app  # type: ignore[attr-defined]

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            open_at_answer.append(service.stores.database._users)
            await send(message)

        await app(scope, receive, sending)

    monkeypatch.setattr(client._transport, "app", watched)
    answers = [await client.post("/api/jobs", json=ASKED), await client.get("/api/jobs")]

    assert [answer.status_code for answer in answers] == [201, 200]
    assert set(open_at_answer) == {0}


async def seen(client: httpx.AsyncClient, **query: str) -> list[int]:
    answer = await client.get("/api/jobs", params=query)
    assert answer.status_code == 200, answer.text
    return [job["id"] for job in answer.json()["jobs"]]
