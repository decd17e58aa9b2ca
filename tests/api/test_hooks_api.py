from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app import main, settings
from app.api import bodies, hooks
from app.context import Service
from app.stores import database
from tests.api.doors import NOWHERE, calling
from tests.hooks import senders
from tests.hooks.senders import GITHUB, STANDARD, STRIPE

CONFIGURATION = """
[hooks.events]
kind = "standard"
secret = ["env:OLD", "env:STANDARD"]
job = "told"

[hooks.shop]
kind = "stripe"
secret = "env:STRIPE"
job = "invoice_paid"
events = ["invoice.paid"]
queue = "money"

[hooks.code]
kind = "github"
secret = "env:GITHUB"
job = "pushed"
"""
EVENT = {"id": "evt_1", "type": "invoice.paid", "data": {"amount": 7}}


def built(folder: Path, database_url: str) -> Service:
    (folder / "wakebell.toml").write_text(CONFIGURATION)
    given = {
        "DATABASE_URL": database_url,
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "STANDARD": STANDARD,
        "OLD": "whsec_" + "A" * 32,
        "STRIPE": STRIPE,
        "GITHUB": GITHUB,
    }
    return main.build(settings.load(given))


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url), token=None) as client:
        yield client


@pytest.fixture
async def client_alone(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Of a service whose database does not answer."""
    async with calling(built(tmp_path, NOWHERE), token=None) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def send(client: httpx.AsyncClient, hook: str, signed: tuple[Any, dict[str, str]], **more: Any) -> httpx.Response:
    body, headers = signed
    return await client.post(f"/api/hooks/{hook}", content=body, headers=headers, **more)


def told(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["detail"]


async def job_of(sql: asyncpg.Connection, answer: httpx.Response) -> dict[str, Any]:
    row = dict(await sql.fetchrow("SELECT * FROM wakebell.jobs WHERE id = $1", answer.json()["job_id"]))
    return {**row, "payload": json.loads(row["payload"])}


@pytest.mark.parametrize(
    ("hook", "signed", "expected"),
    [
        ("events", partial(senders.standard, EVENT), ("told", "default", "msg_1", "invoice.paid")),
        ("shop", partial(senders.stripe, EVENT), ("invoice_paid", "money", "evt_1", "invoice.paid")),
        ("code", partial(senders.github, EVENT), ("pushed", "default", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "push")),
    ],
)
async def test_an_event_becomes_one_job(
    client: httpx.AsyncClient, sql: asyncpg.Connection, hook: str, signed: Any, expected: tuple[str, ...]
):
    event = signed()  # now: one that was signed with the others, long ago by the time this runs, is too old
    first = await send(client, hook, event)
    again = await send(client, hook, event)

    job = await job_of(sql, first)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == again.json() == {"event_id": expected[2], "job_id": job["id"]}
    assert (job["type"], job["queue"], job["payload"]["id"], job["payload"]["type"]) == expected
    assert (job["payload"]["source"], job["payload"]["data"]) == (hook, EVENT)
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 1


async def test_of_many_at_once_one_is_kept(client: httpx.AsyncClient, sql: asyncpg.Connection):
    signed = senders.standard(EVENT)

    answers = await asyncio.gather(*(send(client, "events", signed) for _ in range(6)))

    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [202]
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 1


async def test_an_event_that_is_not_among_those_asked_for_is_kept_and_does_nothing(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    signed = senders.stripe({"id": "evt_2", "type": "customer.created"})

    answers = [await send(client, "shop", signed) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [202, 200]
    assert [answer.json() for answer in answers] == [{"event_id": "evt_2", "job_id": None}] * 2
    assert await sql.fetchval("SELECT count(*) FROM wakebell.events") == 1
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 0


@pytest.mark.parametrize(
    ("hook", "signed", "why"),
    [
        ("events", partial(senders.standard, EVENT, secret="whsec_" + "B" * 32), "none of its signatures is right"),
        ("events", lambda: senders.standard(EVENT, at=time.time() - 3600), "its timestamp is too old"),
        ("events", lambda: senders.standard(EVENT, at=time.time() + 3600), "its timestamp is too far in the future"),
        ("events", partial(senders.stripe, EVENT), "the header webhook-id must be there, once"),
        (
            "shop",
            partial(senders.stripe, EVENT, secret="another-secret-of-thirty-letters"),
            "none of its signatures is right",
        ),
        ("shop", partial(senders.stripe, EVENT, at=1), "its timestamp is too old"),
        (
            "code",
            partial(senders.github, EVENT, secret="another-secret-of-thirty-letters"),
            "its signature is not right",
        ),
        ("code", lambda: (b"{}", {}), "the header x-hub-signature-256 must be there, once"),
    ],
)
async def test_what_is_not_signed_rightly_is_refused_and_wakes_no_database(
    client_alone: httpx.AsyncClient, hook: str, signed: Any, why: str
):
    answer = await send(client_alone, hook, signed())

    assert told(answer)[0] == 401
    assert told(answer)[1].startswith(why)
    assert f"[hooks.{hook}]" in told(answer)[1]
    assert answer.headers["www-authenticate"] == 'Signature realm="wakebell"'


@pytest.mark.parametrize(
    ("hook", "headers"),
    [
        ("events", {}),
        ("events", {"webhook-id": "a", "webhook-timestamp": "1"}),
        ("events", {"webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1,short"}),
        ("events", {"webhook-id": "a", "webhook-timestamp": "now", "webhook-signature": "v1," + "A" * 43 + "="}),
        ("shop", {}),
        ("shop", {"stripe-signature": "t=1"}),
        ("shop", {"stripe-signature": "t=1,v1=abc"}),
        ("shop", {"stripe-signature": "v1=" + "a" * 64}),
        ("code", {}),
        ("code", {"x-hub-signature-256": "sha256=abc"}),
        ("code", {"x-hub-signature": "sha1=" + "a" * 40}),
    ],
)
async def test_a_body_that_nobody_can_have_signed_is_not_read(
    client_alone: httpx.AsyncClient, hook: str, headers: dict[str, str]
):
    read = False

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        read = True
        yield b"{}"

    answer = await send(client_alone, hook, (body(), headers))

    assert (told(answer)[0], read) == (401, False)


async def test_bodies_on_their_way_in_are_bounded_together(
    client_alone: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hooks, "STRANGERS", bodies.Room(3 * 65_536))
    _, headers = senders.standard(EVENT)
    come, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 65_536
        yield b"x" * 65_536
        come.set()
        await go_on.wait()

    first = asyncio.create_task(send(client_alone, "events", (slow(), headers)))
    await come.wait()
    refused = await send(client_alone, "events", (b"x" * 100_000, headers))
    go_on.set()
    await first
    later = await send(client_alone, "events", (b"x" * 100_000, headers))

    assert told(refused) == (503, "too many bodies are on their way in; nothing of this one is kept, send it again")
    assert int(refused.headers["retry-after"]) > 0
    assert (told(await first)[0], told(later)[0]) == (401, 401)


async def test_a_signature_that_comes_twice_counts_as_none(client_alone: httpx.AsyncClient):
    body, headers = senders.standard(EVENT)

    answer = await client_alone.post(
        "/api/hooks/events", content=body, headers=[*headers.items(), ("webhook-signature", "v1,AAAA")]
    )

    assert told(answer)[0] == 401


async def test_both_secrets_count_while_one_is_changed(client: httpx.AsyncClient):
    old = await send(client, "events", senders.standard(EVENT, name="a", secret="whsec_" + "A" * 32))
    new = await send(client, "events", senders.standard(EVENT, name="b"))

    assert (old.status_code, new.status_code) == (202, 202)


@pytest.mark.parametrize("hook", ["nothing", "EVENTS", "a%2Fb", "%00"])
async def test_an_unknown_hook_is_404_whoever_has_signed(client_alone: httpx.AsyncClient, hook: str):
    assert (await send(client_alone, hook, senders.standard(EVENT))).status_code == 404


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b'{"a": NaN}', "the body is not JSON"),
        (b'{"a": "\x00"}', "the body is not JSON"),
        (b'{"a": "\xff\xfe"}', "the body is not JSON"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "the body is nested too deeply"),
    ],
    ids=["nothing", "half", "nan", "nul", "latin", "bytes", "deep"],
)
async def test_what_is_signed_and_yet_no_event_is_malformed(client_alone: httpx.AsyncClient, body: bytes, why: str):
    answer = await send(client_alone, "events", senders.standard(body))

    assert told(answer)[0] == 400
    assert told(answer)[1].startswith(why)


async def test_stripes_event_without_an_id_is_malformed(client_alone: httpx.AsyncClient):
    assert told(await send(client_alone, "shop", senders.stripe({"type": "a"})))[0] == 400


@pytest.mark.parametrize(
    "data",
    [{"text": "x" * 1_000_000}, {"text": "a\x00b"}, {"text": "\ud83d"}, {"a": {"b": [1e999]}}],
    ids=["long", "nul", "surrogate", "infinite"],
)
async def test_no_event_is_lost_for_what_a_payload_cannot_hold(
    client: httpx.AsyncClient, sql: asyncpg.Connection, data: Any
):
    body = json.dumps(data).replace("Infinity", "1e999").encode()

    answer = await send(client, "events", senders.standard(body))

    job = await job_of(sql, answer)
    assert answer.status_code == 202
    assert job["payload"]["data"] is None
    assert job["payload"]["omitted"]
    assert await sql.fetchval("SELECT body FROM wakebell.events") == body


async def test_a_mebibyte_is_enough_whatever_is_said_of_its_length(client_alone: httpx.AsyncClient):
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 65_536

    _, headers = senders.standard(EVENT)
    said = await send(client_alone, "events", (b"x" * (1024 * 1024 + 1), headers))
    unsaid = await send(client_alone, "events", (endless(), headers))

    assert told(said) == told(unsaid) == (413, "the body must be at most 1024 KiB")
    assert read <= 17


async def test_a_body_that_does_not_come_is_not_waited_for(
    client_alone: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.01)

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    _, headers = senders.standard(EVENT)

    assert told(await send(client_alone, "events", (slow(), headers))) == (
        408,
        "the body must come within 0.01 seconds",
    )


async def test_a_compressed_body_is_refused(client_alone: httpx.AsyncClient):
    body, headers = senders.standard(EVENT)

    answer = await client_alone.post("/api/hooks/events", content=body, headers={**headers, "Content-Encoding": "gzip"})

    assert told(answer)[0] == 415


async def test_without_a_database_the_provider_is_to_come_again(
    client_alone: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database, "CONNECT_WAITS", ())

    answer = await send(client_alone, "events", senders.standard(EVENT))

    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert told(answer)[1] == "the database cannot be reached now; this has not been kept, send it again"


async def test_githubs_form_is_understood(client: httpx.AsyncClient, sql: asyncpg.Connection):
    body, headers = senders.github(b"payload=%7B%22zen%22%3A%22Speak+like+a+human.%22%7D", event="ping")

    answer = await send(client, "code", (body, {**headers, "Content-Type": "application/x-www-form-urlencoded"}))

    assert (await job_of(sql, answer))["payload"]["data"] == {"zen": "Speak like a human."}


async def test_only_a_post_is_an_event(client_alone: httpx.AsyncClient):
    assert (await client_alone.get("/api/hooks/events")).status_code == 405
