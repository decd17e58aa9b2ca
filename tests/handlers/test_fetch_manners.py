"""What answers of a source's server mean for its next rounds, and for the other sources of its host."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app.clients.download import download
from app.context import Context
from app.domain.items import Fetched, Item, Unchanged
from app.plans import sources as plan
from app.sources import Reading
from tests.fakes.batches import a_batch, a_service, seen
from tests.handlers.conftest import Run

CONFIGURATION = """
[service]
host_gap_seconds = 0

[sources.board]
kind = "feed"
url = "http://board.example/feed?key=hush"
headers = { Authorization = "Bearer hush" }
every_minutes = 30

[sources.other]
kind = "feed"
url = "https://www.board.example/other"
every_minutes = 30
"""

MINUTE = timedelta(minutes=1)


class Web:
    """Everything outside: an answer for each address, by default an empty list."""

    def __init__(self) -> None:
        self.answers: dict[str, httpx.Response] = {}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        place = request.url.host + request.url.path
        answer = self.answers.get(f"{request.url.scheme}://{place}") or self.answers.get(place) or httpx.Response(200)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def says(self, address: str, status: int = 200, body: str = "", **headers: str) -> None:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[address] = httpx.Response(status, headers=told, text=body)

    @property
    def validators(self) -> list[str | None]:
        """What each request asked to be told the change of."""
        return [request.headers.get("if-none-match") for request in self.asked]


class Lines:
    """A kind: each line of the answer is an item."""

    ttl: timedelta | None = None

    async def fetch(self, options: Any, ctx: Reading) -> Fetched | Unchanged:
        sent = {name: value.get_secret_value() for name, value in options.headers.items()}
        if ctx.etag:
            sent["if-none-match"] = ctx.etag
        got = await download(ctx.http, options.url, headers=sent)
        if got is None:
            return Unchanged()
        items = tuple(Item(key=line, title=line) for line in got.body.decode().splitlines())
        return Fetched(items=items, etag=got.etag, last_modified=got.last_modified, ttl=self.ttl)


class World:
    def __init__(self, ctx: Context, sql: asyncpg.Connection, run: Run) -> None:
        self.ctx = ctx
        self.sql = sql
        self.run = run

    async def due(self, *names: str) -> None:
        """The slots of these sources have come, and of no other."""
        await self.sql.execute("UPDATE wakebell.sources SET due_at = now() + interval '20 minutes', retry_at = NULL")
        await self.sql.execute(
            "UPDATE wakebell.sources SET due_at = now(), fresh_until = NULL WHERE name = ANY ($1)", list(names)
        )
        await plan.plan(self.ctx, await seen(self.ctx))

    async def round(self, name: str = "board") -> Mapping[str, Any]:
        """One visit; its job afterwards."""
        await self.due(name)
        job: Mapping[str, Any] = await self.run("fetch_source")
        return job

    async def source(self, name: str = "board") -> Mapping[str, Any]:
        query = (
            "SELECT *, retry_at - now() AS retry, fresh_until - now() AS fresh FROM wakebell.sources WHERE name = $1"
        )
        found: Mapping[str, Any] = await self.sql.fetchrow(query, name)
        return found

    async def host(self, name: str = "board.example") -> Mapping[str, Any]:
        query = "SELECT *, wait_until - now() AS wait FROM wakebell.hosts WHERE host = $1"
        found: Mapping[str, Any] = await self.sql.fetchrow(query, name)
        return found

    async def passed(self, **time: float) -> None:
        """So much time has gone by."""
        for table, columns in {
            "sources": ("last_round_at", "last_success_at", "moved_since", "retry_at", "fresh_until"),
            "hosts": ("wait_until", "next_at"),
        }.items():
            for column in columns:
                await self.sql.execute(
                    f"UPDATE wakebell.{table} SET {column} = {column} - $1::interval", timedelta(**time)
                )

    async def notes(self) -> list[str]:
        found = await self.sql.fetch("SELECT text FROM wakebell.messages WHERE kind = 'note' ORDER BY id")
        return [row["text"] for row in found][2:]  # the first two tell that the sources are watched


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture
def source() -> Lines:
    return Lines()


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path, web: Web) -> AsyncIterator[Context]:
    async with (
        a_batch(a_service(database_url, tmp_path, CONFIGURATION)) as ctx,
        httpx.AsyncClient(transport=httpx.MockTransport(web)) as http,
    ):
        yield dataclasses.replace(ctx, http=http)


@pytest.fixture
async def world(ctx: Context, sql: asyncpg.Connection, run: Run, web: Web) -> World:
    """Both sources have had their silent first round."""
    world = World(ctx, sql, run)
    await plan.plan(ctx, await seen(ctx))
    for _ in range(2):
        assert (await run("fetch_source"))["status"] == "done"
    web.asked.clear()
    return world


# ------------------------------------------------------------------------------------------------- being left alone


@pytest.mark.parametrize("status", [429, 503])
async def test_a_host_that_asks_to_be_left_alone_is_with_all_of_its_sources(world: World, web: Web, status: int):
    web.says("board.example/feed", status, retry_after="600")
    await world.due("board", "other")

    first, second = await world.run("fetch_source"), await world.run("fetch_source")

    assert first["status"] == "cancelled"
    assert (second["status"], second["attempts"]) == ("pending", 0)
    assert timedelta(minutes=9) < second["wait"] <= timedelta(minutes=10)
    assert len(web.asked) == 1, "the other source was not read"
    board = await world.source()
    assert (board["failures"], board["refusals"]) == (0, 1)
    assert timedelta(minutes=9) < board["retry"] <= timedelta(minutes=10)
    assert f"answered {status}" in board["last_error"]
    assert world.ctx.tally.status == "ok"
    assert world.ctx.tally.errors == [
        "source board waits: its host has asked to be left alone",
        "source other waits: its host has asked to be left alone",
    ]


async def test_the_other_source_is_read_once_the_wait_is_over_and_all_is_well_then(world: World, web: Web):
    web.says("board.example/feed", 429, retry_after="600")
    await world.due("board", "other")
    await world.run("fetch_source")
    await world.passed(minutes=11)

    assert (await world.run("fetch_source"))["status"] == "done"
    assert [request.url.path for request in web.asked] == ["/feed", "/other"]
    host = await world.host()
    assert (host["wait_until"], host["refusals"], host["reason"]) == (None, 0, None)
    await plan.plan(world.ctx, await seen(world.ctx))
    assert (await world.run("fetch_source"))["payload"] == '{"host": "board.example", "source": "board"}'


@pytest.mark.parametrize("asked", [{}, {"retry_after": "soon"}, {"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}])
async def test_a_host_that_does_not_say_for_how_long_is_left_alone_for_longer_each_time(
    world: World, web: Web, asked: dict[str, str]
):
    web.says("board.example/feed", 429, **asked)
    waits = []
    for _ in range(4):
        await world.round()
        waits.append(round((await world.host())["wait"] / MINUTE))
        await world.passed(minutes=60)

    assert waits == [1, 5, 30, 30]


async def test_a_host_that_refuses_three_times_in_a_row_makes_its_source_a_failing_one(world: World, web: Web):
    web.says("board.example/feed", 503, retry_after="60")
    failures = []
    for _ in range(4):
        await world.round()
        failures.append((await world.source())["failures"])
        await world.passed(minutes=2)

    assert failures == [0, 0, 3, 4]
    assert world.ctx.tally["sources.failed"] == 2
    assert (await world.source())["last_failure_at"] is not None

    web.says("board.example/feed")
    await world.round()
    board = await world.source()
    assert (board["failures"], board["refusals"], board["last_error"]) == (0, 0, None)


async def test_who_refuses_behind_a_redirect_is_left_alone_itself(world: World, web: Web):
    web.says("board.example/feed", 302, location="https://cdn.example/feed")
    web.says("cdn.example/feed", 429, retry_after="600")

    await world.round()

    assert (await world.host("cdn.example"))["wait"] > timedelta(minutes=9)
    assert (await world.host())["wait"] is None
    assert (await world.source())["retry"] > timedelta(minutes=9)


async def test_a_host_that_cannot_be_reached_waits_no_shorter_for_it(world: World, web: Web, sql: asyncpg.Connection):
    web.says("board.example/feed", 429, retry_after="600")
    await world.round()
    await world.passed(minutes=11)

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as http:
        object.__setattr__(world.ctx, "http", http)
        await world.round()

    assert (await world.host())["refusals"] == 1


# ---------------------------------------------------------------------------------------------------------- intervals


async def test_an_interval_becomes_longer_when_the_server_asks_for_it(world: World, web: Web):
    web.says("board.example/feed", cache_control="max-age=7200")

    await world.round()

    assert timedelta(minutes=119) < (await world.source())["fresh"] <= timedelta(hours=2)
    await world.sql.execute("UPDATE wakebell.sources SET due_at = now() WHERE name = 'board'")
    await plan.plan(world.ctx, await seen(world.ctx))
    assert await world.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'pending'") == 0
    assert await world.ctx.stores.sources.next_due_at(["board"]) == (await world.source())["fresh_until"]

    await world.passed(minutes=118)
    await plan.plan(world.ctx, await seen(world.ctx))
    assert await world.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'pending'") == 1


async def test_it_never_becomes_shorter(world: World, web: Web):
    web.says("board.example/feed", cache_control="max-age=60")

    await world.round()

    assert (await world.source())["fresh_until"] is None


async def test_what_the_feed_itself_asks_for_holds_while_it_is_unchanged(world: World, web: Web, source: Lines):
    source.ttl = timedelta(hours=3)
    web.says("board.example/feed", etag='"1"')
    await world.round()
    assert timedelta(minutes=179) < (await world.source())["fresh"] <= timedelta(hours=3)

    web.says("board.example/feed", 304)
    await world.round()
    assert timedelta(minutes=179) < (await world.source())["fresh"] <= timedelta(hours=3)


# --------------------------------------------------------------------------------------------------------- validators


async def test_a_source_that_is_unchanged_for_a_week_is_read_whole_once(world: World, web: Web):
    web.says("board.example/feed", etag='"1"')
    await world.round()
    web.says("board.example/feed", 304)
    await world.round()
    await world.passed(days=7)
    web.says("board.example/feed", etag='"1"')

    await world.round()
    await world.round()

    assert web.validators == [None, '"1"', None, '"1"']
    assert await world.notes() == []


async def test_validators_of_a_server_that_said_unchanged_of_news_are_never_sent_again(world: World, web: Web):
    web.says("board.example/feed", body="a", etag='"1"')
    await world.round()
    web.says("board.example/feed", 304)
    await world.round()
    await world.passed(days=7)
    web.says("board.example/feed", body="a\nb", etag='"1"')

    await world.round()
    await world.round()
    await world.round()

    assert web.validators == [None, '"1"', None, None, None]
    [note] = await world.notes()
    assert "board" in note
    assert (await world.source())["distrusted_at"] is not None


async def test_news_after_a_week_of_failures_are_no_lie(world: World, web: Web):
    web.says("board.example/feed", body="a", etag='"1"')
    await world.round()
    await world.passed(days=8)
    web.says("board.example/feed", body="a\nb", etag='"2"')

    await world.round()

    assert (await world.source())["distrusted_at"] is None
    assert (await world.source())["etag"] == '"2"'


# -------------------------------------------------------------------------------------------------------------- moving


NEW = "https://new.example/feed"


async def test_a_permanent_redirect_is_believed_after_three_rounds_over_three_days(world: World, web: Web):
    web.says("board.example/feed", 301, location=NEW)
    for _ in range(3):
        await world.round()
        await world.passed(days=1)
    assert await world.notes() == []

    await world.round()  # three days after the first
    web.asked.clear()
    await world.round()

    [note] = await world.notes()
    assert "new.example" in note
    assert "hush" not in note
    [request] = web.asked
    assert str(request.url) == NEW
    assert "authorization" not in request.headers
    assert (await world.source())["host"] == "new.example", "whose turn it takes now"
    assert len(await world.notes()) == 1


async def test_days_alone_or_rounds_alone_are_no_proof(world: World, web: Web):
    web.says("board.example/feed", 308, location=NEW)
    for _ in range(5):
        await world.round()
    assert (await world.source())["moved_at"] is None

    web.says("board.example/feed", 308, location="https://third.example/")
    await world.round()
    await world.passed(days=9)
    await world.round()
    assert (await world.source())["moved_rounds"] == 2
    assert (await world.source())["moved_at"] is None


@pytest.mark.parametrize("status", [302, 303, 307])
async def test_another_redirect_is_never_kept(world: World, web: Web, status: int):
    web.says("board.example/feed", status, location=NEW)
    for _ in range(4):
        await world.round()
        await world.passed(days=2)

    assert (await world.source())["moved_to"] is None


async def test_a_captive_portal_moves_nothing(world: World, web: Web):
    web.says("board.example/feed", 301, location="https://login.test/")
    web.says("login.test/", 403)

    await world.round()

    board = await world.source()
    assert (board["failures"], board["moved_to"]) == (1, None)


async def test_a_move_to_https_is_believed_at_once(world: World, web: Web):
    web.says("http://board.example/feed", 301, location="https://board.example/feed?key=hush")

    await world.round()
    await world.round()

    assert [request.url.scheme for request in web.asked] == ["http", "https", "https"]
    assert {request.headers["authorization"] for request in web.asked} == {"Bearer hush"}


async def test_a_place_that_fails_is_left_for_the_configured_one(world: World, web: Web):
    await world.sql.execute(
        "UPDATE wakebell.sources SET moved_to = $1, moved_host = 'new.example', moved_since = now(), moved_at = now()",
        NEW,
    )
    web.says("new.example/feed", 410)

    await world.round()
    assert (await world.source())["failures"] == 1
    await world.round()

    assert [str(request.url.host) for request in web.asked] == ["new.example", "board.example"]
    board = await world.source()
    assert (board["moved_at"], board["gone_at"], board["host"], board["failures"]) == (None, None, "board.example", 0)


# ---------------------------------------------------------------------------------------------------------- being over


async def test_a_source_that_is_gone_is_not_read_again_and_says_so(world: World, web: Web):
    web.says("board.example/feed", 410)

    assert (await world.round())["status"] == "cancelled"

    board = await world.source()
    assert board["gone_at"] is not None
    assert "change its url or remove it" in board["last_error"]
    assert world.ctx.tally.errors == ["source board is gone"]
    for _ in range(3):
        await world.due("board")
    assert await world.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'pending'") == 0
    assert world.ctx.tally["sources.due"] == 3, "two first rounds and this one"
    assert await world.ctx.stores.sources.next_due_at(["board"]) is None


async def test_a_source_that_is_gone_begins_anew_with_another_address(world: World, web: Web):
    web.says("board.example/feed", 410)
    await world.round()
    web.says("board.example/feed")
    await world.sql.execute("UPDATE wakebell.sources SET fingerprint = 'of the address before' WHERE name = 'board'")

    await plan.plan(world.ctx, await seen(world.ctx))

    assert (await world.run("fetch_source"))["status"] == "done"
    board = await world.source()
    assert (board["gone_at"], board["failures"]) == (None, 0)


# ------------------------------------------------------------------------------------------------------- other replicas


async def test_a_source_that_only_another_replica_knows_is_left_to_it(world: World, web: Web):
    await world.due("board")
    await world.sql.execute(
        "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, host) "
        "VALUES ('theirs', 'x', 1800, now(), 'board.example')"
    )
    await world.sql.execute(
        "UPDATE wakebell.jobs SET payload = jsonb_build_object('source', 'theirs', 'host', 'board.example') "
        "WHERE status = 'pending'"
    )

    job = await world.run("fetch_source")

    assert job["status"] == "cancelled", "the next in line has its turn"
    assert timedelta(seconds=50) < (await world.source("theirs"))["retry"] <= MINUTE
    assert (world.ctx.tally.status, web.asked) == ("ok", [])


async def test_a_fetch_of_a_release_without_turns_is_put_in_line(world: World, web: Web):
    await world.due("board")
    await world.sql.execute(
        """UPDATE wakebell.jobs SET payload = '{"source": "board"}', serial_key = NULL WHERE status = 'pending'"""
    )

    assert (await world.run("fetch_source"))["status"] == "cancelled"

    assert web.asked == []
    assert (await world.run("fetch_source"))["serial_key"] == "wakebell.host:board.example"
    assert len(web.asked) == 1
