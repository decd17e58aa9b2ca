from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.doors import API_TOKEN, built, calling

ADD = """
INSERT INTO wakebell.messages (recipient, channel, status, body, text, attempts)
VALUES ($1, $2, $3, '{"token": "raw-body"}', 'two new gigs', 1) RETURNING id
"""
FAILED = """
UPDATE wakebell.messages SET
    status = 'uncertain', first_tried_at = '2026-11-30 09:00Z', finished_at = '2026-11-30 09:05:00.25Z',
    last_error = 'api.line.me did not answer', provider_id = 'r-1', repeated = true, kind = 'items'
WHERE id = $1
"""
OWED = """
WITH item AS (
    INSERT INTO wakebell.items (source, key, title, link)
    VALUES ('gigs', $2, $2, 'https://jobs.example/' || $2) RETURNING id
)
INSERT INTO wakebell.owed (item_id, recipient, subscriptions, message_id)
SELECT item.id, 'me', '["budget", "python"]', $1 FROM item
"""


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_a_message_is_told_with_its_story_and_its_items_but_not_its_body(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    message = await sql.fetchval(ADD, "me", "line", "sending")
    await sql.execute(FAILED, message)
    for key in ("b", "a"):
        await sql.execute(OWED, message, key)

    answer = await client.get(f"/api/messages/{message}")

    told = answer.json()
    assert told.pop("created_at").endswith("Z")
    assert told == {
        "id": message,
        "recipient": "me",
        "channel": "line",
        "kind": "items",
        "status": "uncertain",
        "text": "two new gigs",
        "attempts": 1,
        "last_error": "api.line.me did not answer",
        "provider_id": "r-1",
        "repeated": True,
        "first_tried_at": "2026-11-30T09:00:00Z",
        "sent_at": None,
        "finished_at": "2026-11-30T09:05:00.250000Z",
        "items": [
            {
                "title": key,
                "link": f"https://jobs.example/{key}",
                "source": "gigs",
                "subscriptions": ["budget", "python"],
            }
            for key in ("b", "a")
        ],
    }
    assert "raw-body" not in answer.text


async def test_pages_show_every_message_once_while_more_are_composed(
    client: httpx.AsyncClient, sql: asyncpg.Connection
):
    before = [await sql.fetchval(ADD, "me", "line", "sent") for _ in range(3)]

    first = (await client.get("/api/messages", params={"limit": 2})).json()
    await sql.execute(ADD, "me", "line", "queued")
    second = (await client.get("/api/messages", params={"limit": 2, "cursor": first["next_cursor"]})).json()

    assert [message["id"] for page in (first, second) for message in page["messages"]] == before[::-1]
    assert second["next_cursor"] is None


async def test_filters_narrow_the_listing(client: httpx.AsyncClient, sql: asyncpg.Connection):
    mine = await sql.fetchval(ADD, "me", "line", "sent")
    failed = await sql.fetchval(ADD, "me", "mail", "failed")
    yours = await sql.fetchval(ADD, "you", "mail", "sent")

    assert await seen(client) == [yours, failed, mine]
    assert await seen(client, recipient="me") == [failed, mine]
    assert await seen(client, channel="mail") == [yours, failed]
    assert await seen(client, status="sent") == [yours, mine]
    assert await seen(client, status="sent", recipient="me", channel="line") == [mine]
    assert await seen(client, recipient="nobody") == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"limit": "many"}, "query.limit"),
        ({"status": "done"}, "query.status"),
        ({"recipient": "\x00"}, "query.recipient"),
        ({"to": "me"}, "query.to"),
        ({"cursor": "am9iczo1"}, "cursor"),  # of jobs
    ],
)
async def test_a_query_that_means_nothing_is_refused_by_name(
    client: httpx.AsyncClient, query: dict[str, Any], told: str
):
    refused = await client.get("/api/messages", params=query)

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith(f"{told}: ")


@pytest.mark.parametrize("message_id", ["7", "0", "99999999999999999999"])
async def test_a_message_that_is_not_there_is_404(client: httpx.AsyncClient, message_id: str):
    missing = await client.get(f"/api/messages/{message_id}")

    assert missing.status_code == 404
    assert missing.headers["Content-Type"] == "application/problem+json"


async def seen(client: httpx.AsyncClient, **query: str) -> list[int]:
    answer = await client.get("/api/messages", params=query)
    assert answer.status_code == 200, answer.text
    return [message["id"] for message in answer.json()["messages"]]
