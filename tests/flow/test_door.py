"""The scheduler's door: who is let in, and what is asked of whom."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.flow.service import BEARER, SECRET, Service
from tests.flow.stage import Stage

PREVIOUS = "the-secret-that-is-on-its-way-out"

REFUSED: dict[str, list[tuple[str, bytes]]] = {
    "no header": [],
    "Basic": [("Authorization", b"Basic d2FrZWJlbGw6c2VjcmV0")],
    "Basic with the secret": [("Authorization", f"Basic {SECRET}".encode())],
    "no scheme": [("Authorization", SECRET.encode())],
    "a wrong token": [("Authorization", b"Bearer the-cron-secret-of-somebody-else")],
    "a longer token": [("Authorization", f"Bearer {SECRET}s".encode())],
    "a shorter token": [("Authorization", f"Bearer {SECRET[:-1]}".encode())],
    "no token": [("Authorization", b"Bearer")],
    "an empty token": [("Authorization", b"Bearer ")],
    "None": [("Authorization", b"Bearer None")],
    "null": [("Authorization", b"Bearer null")],
    "undefined": [("Authorization", b"Bearer undefined")],
    "bytes of no text": [("Authorization", b"Bearer \xff\xfe\xe0\xb8")],
    "letters beyond ASCII": [("Authorization", "Bearer กขค".encode())],
    "two headers": [("Authorization", f"Bearer {SECRET}".encode()), ("Authorization", b"Bearer other")],
    "twice the right one": [("Authorization", f"Bearer {SECRET}".encode())] * 2,
}


async def test_nobody_comes_in_without_the_right_token(stage: Stage):
    service = await stage.serve(CRON_SECRET_PREVIOUS=PREVIOUS)

    for who, headers in REFUSED.items():
        answer = await knock(service, headers)

        assert answer.status_code == 401, who
        assert answer.headers["www-authenticate"].startswith("Bearer"), who
        assert answer.headers["content-type"] == "application/problem+json", who
        assert SECRET not in answer.text, who
        assert PREVIOUS not in answer.text, who
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks") == 0


async def test_the_token_is_taken_with_any_spelling_of_its_scheme_and_the_previous_one_too(stage: Stage):
    service = await stage.serve(CRON_SECRET=f" {SECRET}\n", CRON_SECRET_PREVIOUS=PREVIOUS)

    for value in (
        f"Bearer {SECRET}",
        f"bearer {SECRET}",
        f"BEARER {SECRET}",
        f"Bearer   {SECRET} ",
        f"Bearer {PREVIOUS}",
    ):
        answer = await knock(service, [("Authorization", value.encode())])

        assert answer.status_code == 200, value


async def test_a_token_may_hold_letters_beyond_ascii(stage: Stage):
    secret = "กุญแจของตัวตั้งเวลา"
    service = await stage.serve(CRON_SECRET=secret)

    answer = await knock(service, [("Authorization", f"Bearer {secret}".encode())])

    assert answer.status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_only_a_post_rings(stage: Stage, method: str):
    service = await stage.serve()

    answer = await service.ask(method, "/api/cron/tick", headers=BEARER)

    assert answer.status_code == 405
    assert "POST" in answer.headers["allow"]


async def test_bounds_out_of_range_are_refused_as_problems(stage: Stage):
    service = await stage.serve()
    wrong: list[dict[str, Any]] = [
        *({"budget": value} for value in ("0", "0.5", "301", "-1", "nan", "inf", "soon", "")),
        *({"max_jobs": value} for value in ("0", "1001", "-5", "2.5", "many", "")),
    ]

    for params in wrong:
        answer = await service.ring(**params)

        assert answer.status_code == 422, params
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == 422
        assert next(iter(params)) in problem["detail"]
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks") == 0


async def test_bounds_at_their_ends_are_taken(stage: Stage):
    service = await stage.serve()

    for params in ({"budget": 1, "max_jobs": 1}, {"budget": 300, "max_jobs": 1000}):
        assert (await service.ring(**params)).status_code == 200, params


async def test_what_is_not_there_is_a_problem_document_too(stage: Stage):
    service = await stage.serve()

    answer = await service.ask("GET", "/nothing")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("secret", [None, "", "   ", "\n", "tiny", "fifteen-letters", "undefined"])
async def test_without_a_secret_the_service_does_not_start(stage: Stage, secret: str | None):
    process = stage.bear("serve", CRON_SECRET=secret)

    status = await process.ended()

    assert status == 1
    [sentence] = process.log.splitlines()
    assert sentence.startswith("CRON_SECRET: ")
    assert not (secret or "").strip() or (secret or "") not in sentence


async def knock(service: Service, headers: list[tuple[str, bytes]]) -> httpx.Response:
    """By hand: an HTTP client would refuse to send some of these."""
    reader, wire = await asyncio.open_connection("127.0.0.1", service.port)
    lines = [b"POST /api/cron/tick HTTP/1.1", b"Host: localhost", b"Content-Length: 0", b"Connection: close"]
    lines += [name.encode() + b": " + value for name, value in headers]
    wire.write(b"\r\n".join(lines) + b"\r\n\r\n")
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    wire.close()
    await wire.wait_closed()
    first, *told = head.decode("latin-1").split("\r\n")
    answered = [(name, value.strip()) for name, _, value in (line.partition(":") for line in told)]
    return httpx.Response(int(first.split()[1]), headers=answered, content=body)
