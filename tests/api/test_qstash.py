"""QStash at the scheduler's doors."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app import main, short_drain, tick
from tests.fakes.batches import CRON_SECRET, a_service
from tests.fakes.qstash import CURRENT, NEXT, claims, token

NOWHERE = "postgres://app:s3cr3t-password@127.0.0.1:1/name"
PUBLIC = "https://bell.example"
RING = "/api/cron/tick"
KEYS = {"QSTASH_CURRENT_SIGNING_KEY": CURRENT, "QSTASH_NEXT_SIGNING_KEY": NEXT, "PUBLIC_URL": f"{PUBLIC}/"}


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the batches were asked for that were run."""
    asked: list[dict[str, Any]] = []

    async def run(service: object, **bounds: Any) -> dict[str, Any]:
        asked.append(bounds)
        return {"status": "ok"}

    monkeypatch.setattr(tick, "run", run)
    monkeypatch.setattr(short_drain, "run", run)
    return asked


def door(folder: Path, **environ: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(main.create_app(a_service(NOWHERE, folder, **environ)))
    return httpx.AsyncClient(transport=transport, base_url="http://10.0.0.7:8080")  # not the address that was called


@pytest.fixture
async def http(tmp_path: Path, rung: list[dict[str, Any]]) -> AsyncIterator[httpx.AsyncClient]:
    async with door(tmp_path, **KEYS) as http:
        yield http


def signed(path: str, body: bytes = b"", key: str = CURRENT, **other: Any) -> dict[str, str]:
    return {"Upstash-Signature": token(claims(f"{PUBLIC}{path}", body, **other), key)}


def refused(answer: httpx.Response) -> None:
    """As everybody else is."""
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="wakebell"'
    assert answer.json()["detail"] == "send the header `Authorization: Bearer <CRON_SECRET>`"


@pytest.mark.parametrize("key", [CURRENT, NEXT])
@pytest.mark.parametrize("path", [RING, f"{RING}?budget=60", "/api/cron/drain?queue=mail&budget=20"])
@pytest.mark.parametrize("body", [b"", b'{"any": "thing"}'])
async def test_a_signature_rings_in_place_of_the_token(
    http: httpx.AsyncClient, rung: list[dict[str, Any]], key: str, path: str, body: bytes
):
    answer = await http.post(path, content=body, headers=signed(path, body, key))

    assert answer.status_code == 200, answer.text
    assert len(rung) == 1


async def test_a_repeat_of_a_ring_is_a_ring(http: httpx.AsyncClient, rung: list[dict[str, Any]]):
    headers = signed(RING)

    assert [(await http.post(RING, headers=headers)).status_code for _ in range(2)] == [200, 200]


async def test_the_token_rings_on_and_needs_no_signature(http: httpx.AsyncClient, rung: list[dict[str, Any]]):
    bearer = {"Authorization": f"Bearer {CRON_SECRET}"}

    assert (await http.post(RING, headers=bearer)).status_code == 200
    assert (await http.post(RING, headers={**bearer, "Upstash-Signature": "nonsense"})).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers", "reason"),
    [
        (RING, lambda: signed(f"{RING}?budget=60"), "another address"),
        (f"{RING}?budget=60", lambda: signed(RING), "another address"),
        ("/api/cron/drain", lambda: signed(RING), "another address"),
        (RING, lambda: signed(RING, b"another body"), "another body"),
        (RING, lambda: signed(RING, at=1_700_000_000), "expired"),
        (RING, lambda: {"Upstash-Signature": token(claims(PUBLIC + RING), alg="none")}, "algorithm"),
        (RING, lambda: signed(RING, key="a-key-that-is-nobodys"), None),
        (RING, lambda: {"Upstash-Signature": "nonsense"}, None),
        (RING, lambda: {"Upstash-Signature": "a" * 9000}, None),
        (RING, lambda: {"Authorization": f"Bearer {CURRENT}"}, None),
        (RING, lambda: {"Authorization": f"Bearer {signed(RING)['Upstash-Signature']}"}, None),
    ],
)
async def test_any_other_signature_is_refused_and_the_log_says_why_where_qstash_signed(  # noqa: PLR0917
    http: httpx.AsyncClient,
    rung: list[dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
    path: str,
    headers: Callable[[], dict[str, str]],
    reason: str | None,
):
    caplog.set_level(logging.INFO)

    refused(await http.post(path, headers=headers()))

    assert rung == []
    told = [vars(record)["reason"] for record in caplog.records if record.name == "app.api.auth"]
    assert len(told) == (reason is not None)
    assert all(reason is not None and reason in text for text in told)
    assert CURRENT not in caplog.text


async def test_two_signatures_are_none(http: httpx.AsyncClient, rung: list[dict[str, Any]]):
    right = signed(RING)["Upstash-Signature"]

    refused(await http.post(RING, headers=[("Upstash-Signature", right), ("Upstash-Signature", right)]))


async def test_a_body_of_a_stranger_is_not_read(http: httpx.AsyncClient, rung: list[dict[str, Any]]):
    read = []

    async def body() -> AsyncIterator[bytes]:
        read.append(1)
        yield b""

    refused(await http.post(RING, content=body(), headers={"Upstash-Signature": token({}, "a-key-that-is-nobodys")}))
    assert read == []


async def test_a_signed_body_is_read_to_64_kib(http: httpx.AsyncClient, rung: list[dict[str, Any]]):
    most = b"x" * 65536

    assert (await http.post(RING, content=most, headers=signed(RING, most))).status_code == 200
    assert (await http.post(RING, content=most + b"x", headers=signed(RING, most + b"x"))).status_code == 413


async def test_without_keys_no_signature_counts(tmp_path: Path, rung: list[dict[str, Any]]):
    async with door(tmp_path, PUBLIC_URL=PUBLIC) as http:
        refused(await http.post(RING, headers=signed(RING)))
        refused(await http.post(RING, headers=signed(RING, key="")))


async def test_one_key_alone_is_enough(tmp_path: Path, rung: list[dict[str, Any]]):
    async with door(tmp_path, PUBLIC_URL=PUBLIC, QSTASH_NEXT_SIGNING_KEY=NEXT) as http:
        assert (await http.post(RING, headers=signed(RING, key=NEXT))).status_code == 200
        refused(await http.post(RING, headers=signed(RING, key=CURRENT)))
