from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app import main, tick
from app.context import Context, Service
from app.domain.errors import DatabaseUnavailable
from tests.fakes.batches import API_TOKEN, CRON_SECRET, a_service

NOWHERE = "postgres://app:s3cr3t-password@127.0.0.1:1/name"
RING = "/api/cron/tick"
RIGHT = {"Authorization": f"Bearer {CRON_SECRET}"}


@asynccontextmanager
async def knocking(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(main.create_app(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://wakebell.test") as http:
        yield http


class Rung:
    """In place of the batch: what it was asked for, and what it comes to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: dict[str, Any] | Exception = {"tick": 1, "status": "ok"}

    async def run(self, service: Service, **bounds: Any) -> dict[str, Any]:
        self.asked.append(bounds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> Rung:
    rung = Rung()
    monkeypatch.setattr(tick, "run", rung.run)
    return rung


@pytest.fixture
async def http(tmp_path: Path, rung: Rung) -> AsyncIterator[httpx.AsyncClient]:
    service = a_service(NOWHERE, tmp_path, CRON_SECRET_PREVIOUS="the-secret-of-the-month-before")
    async with knocking(service) as http:
        yield http


def told(response: httpx.Response, status: int) -> dict[str, Any]:
    """The problem document of an answer."""
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "s3cr3t" not in response.text
    assert CRON_SECRET not in response.text
    assert "Traceback" not in response.text
    found: dict[str, Any] = response.json()
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    return found


async def test_a_ring_runs_one_batch_with_the_configured_bounds(http: httpx.AsyncClient, rung: Rung):
    response = await http.post(RING, headers=RIGHT)

    assert (response.status_code, response.json()) == (200, {"tick": 1, "status": "ok"})
    [asked] = rung.asked
    assert (asked["budget"].total_seconds(), asked["max_jobs"], asked["trigger"]) == (25, 100, "http")


async def test_a_ring_may_bring_its_own_bounds(http: httpx.AsyncClient, rung: Rung):
    await http.post(f"{RING}?budget=2.5&max_jobs=1000", headers=RIGHT)

    assert (rung.asked[0]["budget"].total_seconds(), rung.asked[0]["max_jobs"]) == (2.5, 1000)


async def test_the_former_secret_still_rings(http: httpx.AsyncClient, rung: Rung):
    response = await http.post(RING, headers={"Authorization": "Bearer the-secret-of-the-month-before"})

    assert response.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer wrong")],
        [("Authorization", f"Basic {CRON_SECRET}")],
        [("Authorization", f"Bearer {API_TOKEN}")],
        [("Authorization", f"Bearer {CRON_SECRET}"), ("Authorization", "Bearer wrong")],
        [("X-Cron-Secret", CRON_SECRET)],
    ],
)
async def test_nobody_else_rings(http: httpx.AsyncClient, rung: Rung, headers: list[tuple[str, str]]):
    response = await http.post(f"{RING}?budget=nonsense&secret={CRON_SECRET}", headers=headers)

    told(response, 401)
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="wakebell"'
    assert rung.asked == []


@pytest.mark.parametrize(
    "query",
    [
        *("budget=0", "budget=0.99", "budget=301", "budget=nan", "budget=inf", "budget=soon", "budget="),
        *("max_jobs=0", "max_jobs=1001", "max_jobs=1.5", "max_jobs=many", "max_jobs="),
    ],
)
async def test_bad_bounds_are_refused_by_name(http: httpx.AsyncClient, rung: Rung, query: str):
    problem = told(await http.post(f"{RING}?{query}", headers=RIGHT), 422)

    assert query.partition("=")[0] in problem["detail"]
    assert problem["errors"][0]["field"] == f"query.{query.partition('=')[0]}"
    assert rung.asked == []


@pytest.mark.parametrize("query", ["max_job=1", "max_jobs=1&max_job=1", "Budget=5", "budget=5&x=" + "y" * 9000])
async def test_an_unknown_bound_is_refused_by_name(http: httpx.AsyncClient, rung: Rung, query: str):
    response = await http.post(f"{RING}?{query}", headers=RIGHT)

    name = query.rpartition("&")[2].partition("=")[0]
    assert told(response, 422)["detail"] == (
        f"query.{name}: there is no such parameter; a tick takes budget and max_jobs"
    )
    assert len(response.content) < 1000
    assert rung.asked == []


async def test_many_unknown_bounds_are_a_short_answer(http: httpx.AsyncClient, rung: Rung):
    nul = "\x00" * 100
    response = await http.post(RING, params={f"{number}{nul}": "1" for number in range(100)}, headers=RIGHT)

    told(response, 422)
    assert len(response.content) < 8192
    assert rung.asked == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_a_visit_is_no_ring(http: httpx.AsyncClient, rung: Rung, method: str):
    response = await http.request(method, RING, headers=RIGHT)

    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert rung.asked == []


@pytest.mark.parametrize("path", [f"{RING}/", f"{RING}x", "/api/cron", "/docs", "/openapi.json", f"/{RING}"])
async def test_a_wrong_path_is_told_and_not_led_elsewhere(http: httpx.AsyncClient, rung: Rung, path: str):
    told(await http.post(f"http://wakebell.test{path}", headers=RIGHT), 404)

    assert rung.asked == []


@pytest.mark.parametrize(("status", "code"), [("ok", 200), ("partial", 200), ("failed", 500)])
async def test_only_a_batch_that_broke_is_an_error(http: httpx.AsyncClient, rung: Rung, status: str, code: int):
    rung.answer = {"tick": 1, "status": status}

    response = await http.post(RING, headers=RIGHT)

    assert (response.status_code, response.json()) == (code, rung.answer)


async def test_a_database_that_is_away_is_to_be_tried_again(http: httpx.AsyncClient, rung: Rung):
    rung.answer = DatabaseUnavailable("the database 127.0.0.1/s3cr3t could not be reached")

    response = await http.post(RING, headers=RIGHT)

    assert "ring again" in told(response, 503)["detail"]
    assert int(response.headers["Retry-After"]) > 0


async def test_a_bug_is_logged_and_not_shown(http: httpx.AsyncClient, rung: Rung, caplog: pytest.LogCaptureFixture):
    rung.answer = KeyError("s3cr3t")

    told(await http.post(RING, headers=RIGHT), 500)

    [record] = [record for record in caplog.records if record.name.startswith("app.")]
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "request crashed")
    assert record.exc_info


async def test_a_real_batch_over_http(database_url: str, tmp_path: Path):
    async with knocking(a_service(database_url, tmp_path)) as http:
        response = await http.post(RING, headers=RIGHT)

    assert response.status_code == 200
    assert response.json()["status"] == "ok"
    assert len(response.content) < 8192


async def test_a_database_without_our_schema_is_told(empty_database_url: str, tmp_path: Path):
    async with knocking(a_service(empty_database_url, tmp_path)) as http:
        response = await http.post(RING, headers=RIGHT)

    assert "wakebell migrate" in told(response, 503)["detail"]
    assert response.headers["Retry-After"] == "60"


async def test_a_batch_whose_plan_crashes_is_answered_with_its_summary(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def crashing(ctx: Context) -> None:
        raise KeyError("s3cr3t")

    monkeypatch.setattr(tick, "_plans", lambda: [crashing])
    async with knocking(a_service(database_url, tmp_path)) as http:
        response = await http.post(RING, headers=RIGHT)

    assert (response.status_code, response.json()["status"]) == (500, "failed")
    assert "s3cr3t" not in response.text
