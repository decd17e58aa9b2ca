"""Alerts as programs see them, take them on and mute them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.doors import API_TOKEN, NOWHERE, built, calling


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def ids(database_url: str) -> list[int]:
    connection = await asyncpg.connect(database_url)
    rows = await connection.fetch(
        "INSERT INTO wakebell.alerts (key, kind, subject, reason, failed_at, told_at, resolved_at) VALUES "
        "('source_failing:board', 'source_failing', 'board', 'no feed', now(), now(), NULL), "
        "('job_failed:mail', 'job_failed', 'mail', NULL, now(), now(), now()) RETURNING id"
    )
    await connection.close()
    return [row["id"] for row in rows]


async def test_alerts_are_listed_the_newest_first(client: httpx.AsyncClient, ids: list[int]):
    listed = (await client.get("/api/alerts", params={"limit": 1})).json()
    rest = (await client.get("/api/alerts", params={"cursor": listed["next_cursor"]})).json()
    opened = (await client.get("/api/alerts", params={"status": "open"})).json()
    jobs = (await client.get("/api/alerts", params={"kind": "job_failed"})).json()

    assert [alert["key"] for alert in listed["alerts"]] == ["job_failed:mail"]
    assert [alert["key"] for alert in rest["alerts"]] == ["source_failing:board"]
    assert rest["next_cursor"] is None
    [board] = opened["alerts"]
    assert (board["id"], board["reason"], board["muted_until"], board["acknowledged_at"]) == (
        ids[0],
        "no feed",
        None,
        None,
    )
    assert [alert["subject"] for alert in jobs["alerts"]] == ["mail"]
    assert (await client.get(f"/api/alerts/{ids[0]}")).json() == board


async def test_one_is_taken_on_once_and_a_second_time_changes_nothing(client: httpx.AsyncClient, ids: list[int]):
    first = await client.post(f"/api/alerts/{ids[0]}/acknowledge")
    second = await client.post(f"/api/alerts/{ids[0]}/acknowledge")
    over = await client.post(f"/api/alerts/{ids[1]}/acknowledge")

    assert first.status_code == second.status_code == 200
    assert first.json()["acknowledged_at"].endswith("Z")
    assert first.json() == second.json()
    assert (over.status_code, over.json()["title"]) == (409, "Conflict")


@pytest.mark.parametrize("path", ["/api/alerts/99", "/api/alerts/0", "/api/alerts/99999999999999999999"])
async def test_one_that_is_not_there_is_a_404(client: httpx.AsyncClient, path: str):
    answers = [
        await client.get(path),
        await client.post(f"{path}/acknowledge"),
        await client.post(f"{path}/mute", json={"for": "8h"}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 3


async def test_one_is_muted_by_its_id_and_the_next_with_its_key_too(client: httpx.AsyncClient, ids: list[int]):
    muted = await client.post(f"/api/alerts/{ids[0]}/mute", json={"for": "8h"})
    [mute] = (await client.get("/api/mutes")).json()["mutes"]

    assert muted.status_code == 200
    assert muted.json()["muted_until"] == mute["until"]
    assert mute["pattern"] == "source_failing:board"


async def test_what_is_not_open_yet_is_muted_by_a_pattern_until_that_is_taken_back(client: httpx.AsyncClient):
    added = await client.post("/api/mutes", json={"pattern": "source_*:board", "until": "2099-01-01T00:00:00Z"})
    gone = await client.delete("/api/mutes", params={"pattern": "source_*:board"})
    again = await client.delete("/api/mutes", params={"pattern": "source_*:board"})

    assert added.json() == {"pattern": "source_*:board", "until": "2099-01-01T00:00:00Z"}
    assert (gone.status_code, again.status_code) == (204, 404)
    assert (await client.get("/api/mutes")).json() == {"mutes": []}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "for"),
        ({"pattern": "job_failed:mail"}, "for"),
        ({"pattern": "job_failed:mail", "for": "8h", "until": "2099-01-01T00:00:00Z"}, "for"),
        ({"pattern": "job_failed:mail", "for": "soon"}, "for"),
        ({"pattern": "job_failed:mail", "for": 8}, "for"),
        ({"pattern": "job_failed:mail", "until": "2001-01-01T00:00:00Z"}, "until"),
        ({"pattern": "job_failed:mail", "until": "tomorrow"}, "until"),
        ({"pattern": "", "for": "8h"}, "pattern"),
        ({"pattern": "board", "for": "8h"}, "pattern"),
        ({"pattern": "source_failin:board", "for": "8h"}, "source_failing"),
        ({"pattern": "source_failing", "for": "8h"}, "source_failing:*"),
        ({"pattern": "source_failing:", "for": "8h"}, "source_failing:*"),
        ({"pattern": "*" * 501, "for": "8h"}, "pattern"),
        ({"pattern": "a\x00:*", "for": "8h"}, "pattern"),
        ({"pattern": "*", "for": "8h", "why": "x"}, "why"),
    ],
)
async def test_what_means_nothing_is_refused_by_its_field(client: httpx.AsyncClient, body: dict[str, Any], told: str):
    answer = await client.post("/api/mutes", json=body)

    assert answer.status_code == 422
    assert told in answer.json()["detail"]


async def test_a_pattern_beside_an_id_is_refused(client: httpx.AsyncClient, ids: list[int]):
    answer = await client.post(f"/api/alerts/{ids[0]}/mute", json={"for": "8h", "pattern": "*"})

    assert answer.status_code == 422


async def test_nobody_without_the_token_is_told(tmp_path: Path):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN)) as client:
        client.headers.pop("Authorization", None)
        answers = [await client.get("/api/alerts"), await client.get("/api/mutes")]

    assert [answer.status_code for answer in answers] == [401, 401]
