"""What is told of PUBLIC_URL."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.clients import front_door
from app.clients.front_door import Met, meet
from app.clients.reaching import Secured
from app.clients.reasons import why
from app.doctor import address
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.findings import Finding, Status
from app.settings import Settings
from tests.fakes.secured import certificate, listening

FILE = """
[chats.page]
kind = "messenger"
secret = "an-app-secret"
verify_token = "the-right-word"
token = "EAAtoken"
"""
URL = "https://bell.test"
WELL = httpx.Response(200, json={"status": "ok"})


def problem(status: int) -> httpx.Response:
    return httpx.Response(status, json={"status": status}, headers={"Content-Type": "application/problem+json"})


async def looked(settings: Settings, answers: dict[str, httpx.Response | Exception]) -> dict[str, Finding]:
    """By the findings' names. `answers` by method and path; what is missing there is refused as the service refuses."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        usual = problem(401 if request.method == "POST" else 403)
        told = answers.get(f"{request.method} {request.url.path}", WELL if request.url.path == "/healthz" else usual)
        if isinstance(told, Exception):
            raise told
        return told

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        found = await address._look(settings, http)
    sent = b"".join(request.content for request in asked) + " ".join(str(request.headers) for request in asked).encode()
    assert not any(secret in sent for secret in (b"an-app-secret", b"the-right-word", b"EAAtoken", b"a1b2c3d4"))
    return {one.name: one for one in found}


async def test_a_service_that_refuses_what_it_should_is_well(configured: Callable[..., Settings]):
    found = await looked(configured(FILE, PUBLIC_URL=URL), {})

    assert {name: one.status for name, one in found.items() if name != "tls"} == {
        "": "ok",
        "tick": "ok",
        "chat page": "ok",
        "chat page question": "ok",
    }
    assert found["chat page question"].found == "it refuses whoever does not prove who they are (403), as it should"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            httpx.Response(200, text="<html>parked</html>"),
            "what answers there (200) is not this service; PUBLIC_URL must",
        ),
        (httpx.Response(404), "what answers there (404) is not this service"),
        (
            httpx.Response(502),
            "answered 502: somebody is there for the service, and does not reach it; look whether it",
        ),
        (httpx.Response(503), "answered 503: somebody is there for the service"),
        (
            httpx.Response(301, headers={"Location": "https://www.bell.test/"}),
            "answered 301 and leads elsewhere; write",
        ),
    ],
)
async def test_where_this_service_does_not_answer_no_door_is_tried(
    configured: Callable[..., Settings], answer: httpx.Response, words: str
):
    found = await looked(configured(FILE, PUBLIC_URL=URL), {"GET /healthz": answer})

    assert found[""].status == "fail"
    assert words in found[""].sentence
    assert set(found) <= {"", "tls"}


@pytest.mark.parametrize(
    ("path", "answer", "name", "words"),
    [
        ("POST /api/webhooks/page", problem(404), "chat page", "has no such door; deploy this release and this config"),
        ("POST /api/webhooks/page", httpx.Response(404), "chat page", "not by this service's own words; look at what"),
        (
            "POST /api/webhooks/page",
            httpx.Response(200),
            "chat page",
            "it takes what comes from anybody (200): that is",
        ),
        (
            "POST /api/webhooks/page",
            httpx.Response(403),
            "chat page",
            "answered 403, and not by this service's own words",
        ),
        ("POST /api/webhooks/page", httpx.Response(401), "chat page", "protection against bots, its passwords"),
        ("POST /api/webhooks/page", problem(503), "chat page", "answered 503"),
        (
            "POST /api/webhooks/page",
            httpx.Response(308, headers={"Location": "/x/"}),
            "chat page",
            "answered 308 and leads elsewhere",
        ),
        ("POST /api/webhooks/page", httpx.ConnectError("x"), "chat page", "could not be reached"),
        (
            "GET /api/webhooks/page",
            httpx.Response(200, text="1"),
            "chat page question",
            "it takes what comes from anybody",
        ),
        ("POST /api/cron/tick", httpx.Response(200, json={}), "tick", "it takes what comes from anybody"),
    ],
)
async def test_a_door_that_does_not_refuse_as_it_should_is_told(
    configured: Callable[..., Settings], path: str, answer: httpx.Response | Exception, name: str, words: str
):
    found = await looked(configured(FILE, PUBLIC_URL=URL), {path: answer})

    assert found[name].status == "fail"
    assert words in found[name].sentence


@pytest.mark.parametrize(("file", "status"), [("", "skipped"), (FILE, "warn")])
async def test_without_an_address_it_depends_on_who_needs_one(
    configured: Callable[..., Settings], file: str, status: Status
):
    found = await looked(configured(file), {})

    assert found[""].status == status
    assert found[""].change == "set it to the address of this service"


def met(**more: Any) -> Met:
    usual: dict[str, Any] = {
        "status": 200,
        "headers": httpx.Headers(),
        "told": {"status": "ok"},
        "seconds": 0.2,
        "tls": None,
    }
    return Met(**(usual | more))


@pytest.mark.parametrize(
    ("days", "status", "words"),
    [(60, "ok", "TLSv1.3, and the certificate is good for 60 days more"), (5, "warn", "5 days more; see that it is")],
)
def test_a_certificate_that_ends_soon_is_told(days: int, status: Status, words: str):
    until = datetime.now(UTC) + timedelta(days=days, hours=1)

    [found] = address._tls(met(tls=Secured(version="TLSv1.3", until=until)))

    assert found.status == status
    assert words in found.sentence


def test_an_address_without_tls_is_told():
    [found] = address._tls(met())

    assert found.status == "warn"
    assert found.change == "take the https address"


def test_an_answer_that_took_long_is_told():
    found = address._healthz(met(seconds=12.0))

    assert (found.status, found.found) == ("warn", "this service, or one like it, answers in 12.0 s")


async def test_it_is_met_by_tls_and_its_certificate_read(tmp_path: Path):
    tls, cert = certificate(tmp_path)
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{"status":"ok"}'

    async with listening(answer, tls=tls) as (port, heard):
        async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=str(cert))) as http:
            found = await meet(http, "GET", f"https://127.0.0.1:{port}/healthz")
        async with httpx.AsyncClient() as http:
            with pytest.raises(TemporaryFailure) as caught:
                await meet(http, "GET", f"https://127.0.0.1:{port}/healthz")

    assert (found.status, found.told) == (200, {"status": "ok"})
    assert found.tls is not None
    assert found.tls.until is not None
    assert len(heard) == 1
    assert caught.value.__cause__ is not None
    assert why(caught.value.__cause__)[0] == "its certificate is signed by itself"


async def test_one_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(front_door, "SECONDS", 0.05)

    async with listening() as (port, _), httpx.AsyncClient() as http:
        with pytest.raises(TemporaryFailure):
            await meet(http, "GET", f"http://127.0.0.1:{port}/")
        with pytest.raises(PermanentFailure):
            await meet(http, "GET", "gopher://x")
