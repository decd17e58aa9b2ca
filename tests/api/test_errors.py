from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, HTTPException

from app.api import errors
from app.domain.errors import DatabaseUnavailable, SchemaOutdated


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    errors.install(app)
    raised: dict[str, Exception] = {
        "problem": errors.Problem(409, "Conflict", "it is there already", headers={"X-More": "1"}),
        "http": HTTPException(418, "short and stout", headers={"X-More": "2"}),
        "database": DatabaseUnavailable("the database db.example/s3cr3t is away"),
        "schema": SchemaOutdated("run `wakebell migrate`"),
        "bug": KeyError("s3cr3t"),
    }

    @app.get("/raise/{name}")
    async def raise_it(name: str) -> None:
        raise raised[name]

    @app.get("/many")
    async def many(a: int, b: int, c: int) -> None: ...

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://wakebell.test") as http:
        yield http


@pytest.mark.parametrize(
    ("name", "status", "title", "detail"),
    [
        ("problem", 409, "Conflict", "it is there already"),
        ("http", 418, "I'm a Teapot", "short and stout"),
        ("database", 503, "Service Unavailable", "the database cannot be reached now; nothing is lost, ring again"),
        ("schema", 503, "Service Unavailable", "run `wakebell migrate`"),
        ("bug", 500, "Internal Server Error", "a bug; the log has its traceback"),
    ],
)
async def test_every_error_is_a_problem_document(
    http: httpx.AsyncClient, name: str, status: int, title: str, detail: str
):
    response = await http.get(f"/raise/{name}")

    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json() == {"title": title, "status": status, "detail": detail}


async def test_headers_of_an_error_are_sent(http: httpx.AsyncClient):
    assert (await http.get("/raise/problem")).headers["X-More"] == "1"
    assert (await http.get("/raise/http")).headers["X-More"] == "2"


async def test_all_that_is_wrong_with_a_request_is_told(http: httpx.AsyncClient):
    response = await http.get("/many?a=x&b=1")

    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == ["query.a", "query.c"]


async def test_a_path_that_does_not_exist_is_a_problem_too(http: httpx.AsyncClient):
    response = await http.get("/nowhere")

    assert response.json() == {"title": "Not Found", "status": 404, "detail": "Not Found"}


async def test_a_schema_that_is_not_brought_up_is_logged_once(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
):
    for _ in range(3):
        assert (await http.get("/raise/schema")).headers["Retry-After"] == "60"

    [record] = caplog.records
    assert vars(record)["reason"] == "run `wakebell migrate`"
