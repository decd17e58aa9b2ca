"""The service's own door: a short drain of one queue, or of all queues of users."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app import drain, handlers, main
from app.context import Context, Service
from app.domain.errors import DatabaseUnavailable
from app.domain.jobs import Done
from app.handlers import Runnable
from tests.fakes.batches import API_TOKEN, CRON_SECRET, a_service, runnable

NOWHERE = "postgres://app:s3cr3t-password@127.0.0.1:1/name"
DRAIN = "/api/cron/drain"
RIGHT = {"Authorization": f"Bearer {CRON_SECRET}"}
NOTHING = {"claimed": 0, "done": 0, "retrying": 0, "snoozed": 0, "failed": 0, "remaining": 0}


async def done(payload: Any, ctx: Context) -> Done:
    return Done()


@asynccontextmanager
async def knocking(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(main.create_app(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://wakebell.test", headers=RIGHT) as http:
        yield http


def with_handlers(service: Service, *made_up: Runnable) -> Service:
    return dataclasses.replace(service, handlers={each.type: each for each in made_up})


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Service:
    return with_handlers(a_service(database_url, tmp_path), runnable("greet", done, timeout=4))


@pytest.fixture
async def http(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with knocking(service) as http:
        yield http


@pytest.fixture
async def nowhere(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A service whose database does not answer."""
    async with knocking(a_service(NOWHERE, tmp_path)) as http:
        yield http


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


def told(response: httpx.Response, status: int) -> dict[str, Any]:
    """The problem document of an answer."""
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/problem+json")
    assert CRON_SECRET not in response.text
    assert "s3cr3t" not in response.text
    found: dict[str, Any] = response.json()
    return found


async def test_one_queue_is_drained_and_nothing_else(
    http: httpx.AsyncClient, service: Service, sql: asyncpg.Connection
):
    for queue in ("a", "b", "b", "c"):
        await service.stores.jobs.enqueue(type="greet", queue=queue)

    answer = await http.post(DRAIN, params={"queue": "b"})

    assert answer.status_code == 200
    found = answer.json()
    assert list(found) == ["status", "queue", "duration_ms", "budget_exhausted", "jobs", "errors"]
    assert isinstance(found.pop("duration_ms"), int)
    jobs = {**NOTHING, "claimed": 2, "done": 2}
    assert found == {"status": "ok", "queue": "b", "budget_exhausted": False, "jobs": jobs, "errors": []}
    left = await sql.fetch("SELECT queue FROM wakebell.jobs WHERE status = 'pending' ORDER BY queue")
    assert [row["queue"] for row in left] == ["a", "c"]


async def test_without_a_name_all_queues_of_users_are_drained_and_none_of_the_services_own(
    http: httpx.AsyncClient, service: Service, sql: asyncpg.Connection
):
    for queue in ("a", "b"):
        await service.stores.jobs.enqueue(type="greet", queue=queue)
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) VALUES ('prune_rows', 'wakebell.prune')")

    found = (await http.post(DRAIN)).json()

    assert (found["queue"], found["jobs"]) == (None, {**NOTHING, "claimed": 2, "done": 2})
    assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE type = 'prune_rows'") == "pending"


async def test_nothing_is_planned_judged_or_kept(http: httpx.AsyncClient, service: Service, sql: asyncpg.Connection):
    await service.stores.jobs.enqueue(type="greet")

    await http.post(DRAIN)

    tables = ("ticks", "jobs", "alerts")
    kept = [await sql.fetchval(f"SELECT count(*) FROM wakebell.{table}") for table in tables]
    assert kept == [0, 1, 0]


async def test_its_bounds_are_kept_and_what_is_left_is_counted(http: httpx.AsyncClient, service: Service):
    for queue in ("a", "a", "a", "b"):
        await service.stores.jobs.enqueue(type="greet", queue=queue)

    found = (await http.post(DRAIN, params={"queue": "a", "max_jobs": 2, "budget": 5})).json()

    assert found["jobs"] == {**NOTHING, "claimed": 2, "done": 2, "remaining": 1}
    assert not found["budget_exhausted"]


async def test_a_queue_that_is_not_there_is_empty(http: httpx.AsyncClient):
    found = (await http.post(DRAIN, params={"queue": "none"})).json()

    assert (found["status"], found["jobs"]) == ("ok", NOTHING)


async def test_what_a_killed_process_left_is_done(http: httpx.AsyncClient, service: Service, sql: asyncpg.Connection):
    await service.stores.jobs.enqueue(type="greet")
    await sql.execute(
        "UPDATE wakebell.jobs SET status = 'running', lease_token = 1, lease_until = now() - interval '1 second', "
        "attempts = 1, started_at = now()"
    )

    assert (await http.post(DRAIN)).json()["jobs"]["done"] == 1


async def test_a_queue_of_the_services_own_is_drained_alone(
    database_url: str, tmp_path: Path, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    ran: list[str] = []

    async def handle(payload: Any, ctx: Context) -> Done:
        ran.append(ctx.current_job.queue)
        return Done()

    replies = runnable("reply", handle, own=True)
    monkeypatch.setattr(handlers, "own", lambda: {"reply": replies})
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, queue) "
        "VALUES ('reply', 'wakebell.replies'), ('reply', 'wakebell.others'), ('greet', 'default')"
    )
    async with knocking(with_handlers(a_service(database_url, tmp_path), runnable("greet", done))) as http:
        found = (await http.post(DRAIN, params={"queue": "wakebell.replies"})).json()

    assert ran == ["wakebell.replies"]
    assert found["jobs"] == NOTHING
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'pending'") == 2


async def test_many_drains_at_once_in_one_process_share_what_is_due(database_url: str, tmp_path: Path):
    service = a_service(database_url, tmp_path)

    async def handle(payload: Any, ctx: Context) -> None:
        async with ctx.transaction():
            await asyncio.sleep(0)

    for _ in range(120):
        await service.stores.jobs.enqueue(type="greet")

    async with knocking(with_handlers(service, runnable("greet", handle))) as http:
        answers = await asyncio.gather(*(http.post(DRAIN, params={"max_jobs": 30}) for _ in range(5)))

    assert [answer.status_code for answer in answers] == [200] * 5
    assert sum(answer.json()["jobs"]["done"] for answer in answers) == 120


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "")],
        [("Authorization", "Bearer wrong")],
        [("Authorization", f"Basic {CRON_SECRET}")],
        [("Authorization", f"Bearer {API_TOKEN}")],
        [("Authorization", f"Bearer {CRON_SECRET}"), ("Authorization", "Bearer wrong")],
        [("Authorization", "Bearer wrong"), ("Wakebell-Depth", "1")],
    ],
)
async def test_nobody_else_rings(nowhere: httpx.AsyncClient, headers: list[tuple[str, str]]):
    del nowhere.headers["Authorization"]

    response = await nowhere.post(f"{DRAIN}?budget=nonsense", headers=headers)

    told(response, 401)
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="wakebell"'


@pytest.mark.parametrize(
    "query",
    [
        *("budget=0", "budget=301", "budget=nan", "budget=soon"),
        *("max_jobs=0", "max_jobs=1001", "max_jobs=many"),
        *("queue=", "queue=" + "q" * 201, "queue=%00", "queue=%ED%A0%80%00"),
    ],
)
async def test_bad_parameters_are_refused_by_name(nowhere: httpx.AsyncClient, query: str):
    problem = told(await nowhere.post(f"{DRAIN}?{query}"), 422)

    assert problem["errors"][0]["field"] == f"query.{query.partition('=')[0]}"


async def test_an_unknown_parameter_is_refused_by_name(nowhere: httpx.AsyncClient):
    problem = told(await nowhere.post(f"{DRAIN}?queues=a"), 422)

    assert problem["detail"] == "query.queues: there is no such parameter; a drain takes queue, budget and max_jobs"


@pytest.mark.parametrize("depth", [["2"], ["0"], ["-1"], ["one"], [""], ["1", "1"]])
async def test_a_ring_that_comes_from_a_rung_drain_is_refused(nowhere: httpx.AsyncClient, depth: list[str]):
    problem = told(await nowhere.post(DRAIN, headers=[*RIGHT.items(), *(("Wakebell-Depth", d) for d in depth)]), 422)

    assert problem["detail"] == "header.Wakebell-Depth: must be 1 or left out: what was rung rings nobody"


async def test_a_ring_of_depth_one_is_taken(http: httpx.AsyncClient):
    assert (await http.post(DRAIN, headers={"Wakebell-Depth": "1"})).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_a_visit_is_no_ring(nowhere: httpx.AsyncClient, method: str):
    response = await nowhere.request(method, DRAIN)

    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


async def test_a_database_that_is_lost_is_to_be_tried_again(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch):
    async def losing(*_: Any, **__: Any) -> None:
        raise DatabaseUnavailable("the database 127.0.0.1/s3cr3t could not be reached")

    monkeypatch.setattr(drain, "until_idle", losing)

    response = await http.post(DRAIN)

    assert "ring again" in told(response, 503)["detail"]
    assert int(response.headers["Retry-After"]) > 0


async def test_a_database_without_our_schema_is_told(empty_database_url: str, tmp_path: Path):
    async with knocking(a_service(empty_database_url, tmp_path)) as http:
        response = await http.post(DRAIN)

    assert "wakebell migrate" in told(response, 503)["detail"]


async def test_a_drain_that_crashes_is_answered_with_what_it_did(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    async def crashing(*_: Any, **__: Any) -> None:
        raise KeyError("s3cr3t")

    monkeypatch.setattr(drain, "until_idle", crashing)

    response = await http.post(DRAIN)

    assert (response.status_code, response.json()["status"]) == (500, "failed")
    assert response.json()["errors"] == ["the drain crashed; the log has its traceback"]
    assert "s3cr3t" not in response.text


async def test_a_drain_that_is_told_to_stop_says_what_it_left(database_url: str, tmp_path: Path):
    service = a_service(database_url, tmp_path)

    async def handle(payload: Any, ctx: Context) -> None:
        service.stopping.request()

    for _ in range(30):
        await service.stores.jobs.enqueue(type="stop")

    async with knocking(with_handlers(service, runnable("stop", handle))) as http:
        found = (await http.post(DRAIN)).json()

    assert (found["status"], found["jobs"]["remaining"] > 0) == ("partial", True)
    assert found["errors"] == ["the process was told to stop; what it had not started is still due"]
