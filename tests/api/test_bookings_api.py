from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.doors import API_TOKEN, CONFIGURATION, NOWHERE, built, calling

MORE = """
[service]
timezone = "Asia/Yangon"

[channels.line]
kind = "line"
token = "a-token-of-line"

[channels.hook]
kind = "slack"
webhook_url = "https://hooks.slack.com/services/T/B/X"

[recipients.me]
channel = "line"
to = "U0123456789abcdef0123456789abcdef"
timezone = "Asia/Bangkok"
language = "th"

[reminders.day_before]
before = "24h"

[reminders.theirs]
before = "1h"
query = "SELECT 1"
"""
USER = "Uabcdefabcdefabcdefabcdefabcdefab"
BODY = {"title": "Haircut", "starts_at": "2036-12-24T09:00:00+07:00", "timezone": "Asia/Bangkok", "to": "me"}


@pytest.fixture
async def client(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setattr("tests.api.doors.CONFIGURATION", CONFIGURATION + MORE)
    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        yield client


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def put(client: httpx.AsyncClient, ref: str = "b-1", **changes: Any) -> httpx.Response:
    return await client.put(f"/api/bookings/{ref}", json=BODY | changes)


async def test_a_booking_is_made_changed_read_and_deleted(client: httpx.AsyncClient):
    made = await put(client)
    same = await put(client)
    moved = await put(client, starts_at="2036-12-25T09:00:00+07:00")
    read = await client.get("/api/bookings/b-1")
    deleted = await client.delete("/api/bookings/b-1")
    again = await client.delete("/api/bookings/b-1")
    gone = await client.get("/api/bookings/b-1")

    assert [answer.status_code for answer in (made, same, moved, read, deleted, again, gone)] == [
        *(201, 200, 200, 200, 204, 404, 404),
    ]
    assert same.json() == made.json()
    assert read.json() == moved.json()
    assert deleted.content == b""
    told = made.json()
    assert told.pop("created_at") == told.pop("updated_at")
    assert told == {
        "ref": "b-1",
        "title": "Haircut",
        "starts_at": "2036-12-24T02:00:00Z",
        "all_day": False,
        "timezone": "Asia/Bangkok",
        "to": "me",
        "language": None,
        "reminders": [{"reminder": "day_before", "due_at": "2036-12-23T02:00:00Z", "message": None}],
    }
    assert again.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("changes", "starts_at", "timezone", "all_day"),
    [
        ({"starts_at": "2036-12-24T09:00"}, "2036-12-24T02:00:00Z", "Asia/Bangkok", False),
        ({"starts_at": "2036-12-24T09:00", "timezone": None}, "2036-12-24T02:00:00Z", "Asia/Bangkok", False),
        (
            {"starts_at": "2036-12-24T09:00", "timezone": None, "to": {"channel": "inbox"}},
            "2036-12-24T02:30:00Z",
            "Asia/Yangon",
            False,
        ),
        ({"starts_at": "2036-12-24"}, "2036-12-23T17:00:00Z", "Asia/Bangkok", True),
        ({"starts_at": "2036-12-24", "all_day": True}, "2036-12-23T17:00:00Z", "Asia/Bangkok", True),
        (
            {"starts_at": "2027-03-28T02:30", "timezone": "Europe/Berlin"},
            "2027-03-28T01:30:00Z",
            "Europe/Berlin",
            False,
        ),
        ({"starts_at": "2001-01-01T00:00Z"}, "2001-01-01T00:00:00Z", "Asia/Bangkok", False),
    ],
)
async def test_a_start_is_read_in_the_zone_that_is_nearest(
    client: httpx.AsyncClient, changes: dict[str, Any], starts_at: str, timezone: str, *, all_day: bool
):
    told = (await put(client, **changes)).json()

    assert (told["starts_at"], told["timezone"], told["all_day"]) == (starts_at, timezone, all_day)


async def test_an_address_on_a_channel_is_taken_and_told_only_here(client: httpx.AsyncClient):
    answer = await put(client, to={"channel": "line", "to": USER}, language="th")

    assert answer.status_code == 201
    assert (answer.json()["to"], answer.json()["language"]) == ({"channel": "line", "to": USER}, "th")
    assert (await put(client, ref="b-2", to={"channel": "hook"})).json()["to"] == {"channel": "hook", "to": ""}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"title": None}, "title: Field required"),
    ({"title": ""}, "title: "),
    ({"title": "  "}, "title: is empty"),
    ({"title": 7}, "title: "),
    ({"title": "x" * 501}, "title: "),
    ({"title": "a\x00b"}, "title: holds a NUL character"),
    ({"starts_at": None}, "starts_at: Field required"),
    ({"starts_at": "soon"}, "starts_at: is no time in ISO 8601"),
    ({"starts_at": 1796083200}, "starts_at: must be a text"),
    ({"starts_at": "2036-12-24", "all_day": False}, "starts_at: is a date alone"),
    ({"starts_at": "2036-12-24T09:00", "all_day": True}, "starts_at: must be a date alone"),
    ({"all_day": "yes"}, "all_day: "),
    ({"timezone": "Asia/Bankok"}, 'timezone: "Asia/Bankok" is no time zone'),
    ({"timezone": 7}, "timezone: "),
    ({"language": "de"}, "language: must be one of en, th, vi, my"),
    ({"to": None}, "to: Field required"),
    ({"to": ["me"]}, "to: must be a recipient's name, or {channel, to}"),
    ({"to": "mee"}, 'to: there is no recipient "mee"; did you mean "me"?'),
    ({"to": {"to": USER}}, "to.channel: Field required"),
    ({"to": {"channel": "lin", "to": USER}}, 'to: there is no channel "lin"; did you mean "line"?'),
    ({"to": {"channel": "line"}}, "to: whom to reach on the channel line is missing"),
    ({"to": {"channel": "line", "to": "+66 81 234 5678"}}, "to: is no id of LINE"),
    ({"to": {"channel": "hook", "to": "x"}}, "to: the channel hook says itself where its messages go"),
    ({"to": {"channel": "line", "to": USER, "name": "x"}}, "to.name: there is no such field"),
    ({"start": "x"}, "start: there is no such field; remove it"),
]


@pytest.mark.parametrize(("changes", "told"), REFUSED, ids=[told[:60] for _, told in REFUSED])
async def test_what_cannot_work_is_refused_by_the_name_of_its_field(
    client: httpx.AsyncClient, changes: dict[str, Any], told: str
):
    answer = await put(client, **changes)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"].startswith(told)
    assert "+66" not in answer.text


@pytest.mark.parametrize("ref", ["%00", "%20", "x" * 201, "a%09b"])
async def test_a_ref_that_cannot_be_one_is_refused(client: httpx.AsyncClient, ref: str):
    for method in ("GET", "PUT", "DELETE"):
        answer = await client.request(method, f"/api/bookings/{ref}", json=BODY if method == "PUT" else None)

        assert answer.status_code == 422, method
        assert answer.json()["detail"].startswith("ref: "), method


@pytest.mark.parametrize("ref", ["a%2Fb", "การจอง", "a.b:c", "2036-12-24"])
async def test_any_other_ref_is_taken(client: httpx.AsyncClient, ref: str):
    assert (await put(client, ref)).status_code == 201
    assert (await client.get(f"/api/bookings/{ref}")).status_code == 200


async def test_a_body_that_is_none_is_refused(client: httpx.AsyncClient):
    answers = [
        await client.put("/api/bookings/b", content=content, headers={"Content-Type": kind})
        for content, kind in (
            (b"{", "application/json"),
            (b"[]", "application/json"),
            (b" " * 16_385, "application/json"),
            (b"<b/>", "application/xml"),
        )
    ]

    assert [answer.status_code for answer in answers] == [400, 422, 413, 415]


async def test_bookings_are_listed_in_pages(client: httpx.AsyncClient):
    for number in range(3):
        await put(client, f"b-{number}")

    first = (await client.get("/api/bookings", params={"limit": 2})).json()
    second = (await client.get("/api/bookings", params={"limit": 2, "cursor": first["next_cursor"]})).json()

    assert [one["ref"] for one in first["bookings"]] == ["b-2", "b-1"]
    assert [one["ref"] for one in second["bookings"]] == ["b-0"]
    assert second["next_cursor"] is None
    assert (await client.get("/api/bookings", params={"limit": 0})).status_code == 422
    assert (await client.get("/api/bookings", params={"ref": "b"})).status_code == 422


async def test_what_was_told_is_named_with_its_message(client: httpx.AsyncClient, sql: asyncpg.Connection):
    await put(client)
    await sql.execute(
        "INSERT INTO wakebell.reminders (booking, reminder, starts_at, message_id) "
        "SELECT ref, 'day_before', starts_at, 17 FROM wakebell.bookings"
    )

    assert (await client.get("/api/bookings/b-1")).json()["reminders"][0]["message"] == 17


async def test_only_who_has_the_token_comes_in(tmp_path: Path, database_url: str):
    async with calling(
        built(tmp_path, database_url, API_TOKEN=API_TOKEN), token="another-token-of-thirty-chars"
    ) as client:
        refused = [await client.request(m, "/api/bookings/b", json={}) for m in ("GET", "PUT", "DELETE")]
    async with calling(built(tmp_path, NOWHERE)) as client:
        closed = await client.get("/api/bookings")

    assert [answer.status_code for answer in refused] == [401, 401, 401]
    assert closed.status_code == 503
