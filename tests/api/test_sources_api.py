from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest
import respx

from app.context import Service
from tests.api.doors import API_TOKEN, NOWHERE, built, calling

ADD = """
INSERT INTO wakebell.sources (
    name, fingerprint, every_seconds, due_at, primed_at, last_round_at, last_success_at, failures, last_failure_at,
    last_error)
VALUES (
    $1, $2, 1800, '2026-11-30 09:30Z', '2026-11-01Z', '2026-11-29Z', '2026-11-30Z', 2, '2026-11-30 09:00Z',
    'jobs.example answered 500')
"""
ITEMS = "INSERT INTO wakebell.items (source, key, title) SELECT $1, n, 'a gig' FROM generate_series(1, $2::int) AS n"

FEED = "<rss><channel><title>Board</title><item><title>A gig</title><guid>1</guid></item></channel></rss>"

UNSEEN: dict[str, object] = {
    "status": "new",
    "reason": None,
    "next_due_at": None,
    "warnings": [],
    "due_at": None,
    "primed": False,
    "last_round_at": None,
    "last_success_at": None,
    "failures": 0,
    "last_failure_at": None,
    "last_error": None,
    "items": 0,
}


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Service:
    return built(tmp_path, database_url, API_TOKEN=API_TOKEN)


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(service) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_every_configured_source_is_told_and_no_other_and_no_address(
    client: httpx.AsyncClient, service: Service, sql: asyncpg.Connection
):
    await sql.execute(ADD, "gigs", service.settings.sources["gigs"].fingerprint)
    await sql.execute(ADD, "removed", "x")
    await sql.execute(ITEMS, "gigs", 3)
    await sql.execute(ITEMS, "removed", 5)

    answer = await client.get("/api/sources")

    assert answer.status_code == 200
    assert answer.json() == {
        "sources": [
            {
                "name": "gigs",
                "kind": "feed",
                "every_minutes": 30,
                "status": "failing",
                "reason": "jobs.example answered 500",
                "next_due_at": "2026-11-30T09:30:00Z",
                "due_at": "2026-11-30T09:30:00Z",
                "primed": True,
                "last_round_at": "2026-11-29T00:00:00Z",
                "last_success_at": "2026-11-30T00:00:00Z",
                "failures": 2,
                "last_failure_at": "2026-11-30T09:00:00Z",
                "last_error": "jobs.example answered 500",
                "warnings": [],
                "items": 3,
            },
            {"name": "board", "kind": "feed", "every_minutes": 0.5, **UNSEEN},
        ]
    }
    assert "hidden-in-the-address" not in answer.text


async def test_a_source_that_was_given_another_address_is_not_primed_and_due_with_the_next_tick(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    await sql.execute(ADD, "gigs", "of-the-address-before")

    [gigs, _] = (await client.get("/api/sources")).json()["sources"]

    assert (gigs["primed"], gigs["due_at"], gigs["failures"], gigs["last_error"]) == (False, None, 0, None)
    assert gigs["last_round_at"] == "2026-11-29T00:00:00Z"


UNSTABLE = (
    "nearly all of its items have new keys and known titles, so nothing of it is told: say in ignore_params, id_regex "
    "or key what tells them apart"
)
WELL = "failures = 0, last_error = NULL, host = 'jobs.example'"


@pytest.mark.parametrize(
    ("change", "status", "reason", "next_due_at"),
    [
        (WELL, "ok", None, "2026-11-30T09:30:00Z"),
        (f"{WELL}, primed_at = NULL", "new", None, "2026-11-30T09:30:00Z"),
        (f"{WELL}, retry_at = '2026-11-30 09:05Z'", "ok", None, "2026-11-30T09:05:00Z"),
        (
            f"{WELL}, fresh_until = '2026-11-30 12:00Z'",
            "ok",
            "its server asks not to be read again before 2026-11-30T12:00:00Z",
            "2026-11-30T12:00:00Z",
        ),
        (
            "failures = 0, refusals = 1, last_error = 'answered 429', retry_at = '2099-01-01Z'",
            "waiting",
            "answered 429",
            "2026-11-30T09:30:00Z",
        ),
        ("host = 'busy.example'", "failing", "jobs.example answered 500", "2098-01-01T00:00:00Z"),
        (
            "failures = 0, host = 'busy.example'",
            "waiting",
            "its host has asked to be left alone until 2098-01-01T00:00:00Z: busy.example answered 503",
            "2098-01-01T00:00:00Z",
        ),
        ("gone_at = now()", "gone", "jobs.example answered 500", None),
        (
            f"{WELL}, state = 'blind', empty_rounds = 3",
            "blind",
            "it has listed nothing for 3 rounds in a row, and has listed items before: see whether its list has moved",
            "2026-11-30T09:30:00Z",
        ),
        (
            f"{WELL}, state = 'silent', last_news_at = now() - interval '15 days'",
            "silent",
            "it has listed nothing new for 15 days, longer than expect_news_days: see whether it still goes on",
            "2026-11-30T09:30:00Z",
        ),
        (
            f"{WELL}, state = 'unstable'",
            "unstable",
            UNSTABLE,
            "2026-11-30T09:30:00Z",
        ),
        (f"{WELL}, state = 'unstable', primed_at = NULL", "new", None, "2026-11-30T09:30:00Z"),
        ("state = 'blind'", "failing", "jobs.example answered 500", "2026-11-30T09:30:00Z"),
    ],
)
async def test_how_a_source_is_and_when_it_is_read_next(  # noqa: PLR0917
    client: httpx.AsyncClient,
    service: Service,
    sql: asyncpg.Connection,
    change: str,
    status: str,
    reason: str | None,
    next_due_at: str | None,
):
    await sql.execute(ADD, "gigs", service.settings.sources["gigs"].fingerprint)
    await sql.execute(
        "INSERT INTO wakebell.hosts (host, next_at, wait_until, refusals, reason) "
        "VALUES ('busy.example', now(), '2098-01-01Z', 1, 'busy.example answered 503')"
    )
    await sql.execute(f"UPDATE wakebell.sources SET {change}")

    [gigs, _] = (await client.get("/api/sources")).json()["sources"]

    assert (gigs["status"], gigs["reason"], gigs["next_due_at"]) == (status, reason, next_due_at)


async def test_what_a_person_should_change_is_told(
    client: httpx.AsyncClient, service: Service, sql: asyncpg.Connection
):
    await sql.execute(ADD, "gigs", service.settings.sources["gigs"].fingerprint)
    await sql.execute("UPDATE wakebell.sources SET moved_at = now(), moved_host = 'new.example', distrusted_at = now()")
    await sql.execute("UPDATE wakebell.sources SET key_rule = 'link'")

    [gigs, _] = (await client.get("/api/sources")).json()["sources"]

    assert gigs["warnings"] == [
        "it has moved for good to new.example: change its url",
        'its server has said "unchanged" when it was not: it is read whole each time',
        "its ids or links tell too few of its items apart: they are told apart by their links",
    ]


@respx.mock
async def test_a_preview_shows_items_and_messages_and_writes_nothing(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    respx.get("https://board.example/feed.xml").respond(text=FEED)

    answer = await client.post("/api/sources/board/preview")

    assert answer.status_code == 200
    told = answer.json()
    assert [told[name] for name in ("source", "status", "reason")] == ["board", "ok", None]
    [item] = told["items"]
    assert (item["title"], item["matches"][0]["subscription"]) == ("A gig", "everything")
    [message] = told["messages"]
    assert (message["recipient"], message["channel"]) == ("inbox", "inbox")
    assert message["parts"] == [{"text": "A gig\nboard · everything", "length": 24, "limit": None}]
    for table in ("sources", "items", "jobs", "messages", "owed"):
        assert await sql.fetchval(f"SELECT count(*) FROM wakebell.{table}") == 0


@respx.mock
async def test_a_source_that_fails_is_a_good_answer_of_a_preview(client: httpx.AsyncClient):
    respx.get("https://jobs.example/feed.xml").respond(404)

    answer = await client.post("/api/sources/gigs/preview")

    assert answer.status_code == 200
    assert answer.json()["status"] == "failed"
    assert answer.json()["reason"] == "jobs.example answered 404: Not Found"
    assert "hidden-in-the-address" not in answer.text


@respx.mock
async def test_a_preview_needs_no_database(tmp_path: Path):
    respx.get("https://board.example/feed.xml").respond(text=FEED)

    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        answer = await client.post("/api/sources/board/preview")

    assert answer.json()["status"] == "ok"


async def test_a_preview_of_no_source_is_404(client: httpx.AsyncClient):
    answer = await client.post("/api/sources/%00nope/preview")

    assert answer.status_code == 404
    assert answer.json()["detail"] == 'the configuration has no source "nope"; it has gigs, board'


async def test_a_preview_needs_the_token(service: Service):
    async with calling(service, token="wrong") as client:
        assert (await client.post("/api/sources/board/preview")).status_code == 401
