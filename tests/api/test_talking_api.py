"""What people say, and how much of it, for how long and by whom it is answered: on each of the two memories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
import respx
from redis.asyncio import Redis

from app import main, settings, talking, tick
from app.context import Service
from app.domain.chats import Said
from app.domain.errors import DatabaseUnavailable
from app.stores.reach import Reach
from tests.api.chatting import NOK, NURSE, event, line, said, signed
from tests.api.doors import API_TOKEN, NOWHERE, calling

MODEL = "https://models.test/v1/chat/completions"
MODEL_TOKEN = "the-token-of-the-model"
WORDS = "words-of-a-stranger"

CONFIGURATION = """
[service]
handlers = "handlers"

[channels.line]
kind = "line"
token = "token-of-line"

[recipients.nurse]
channel = "line"
to = "U000000000000000000000000000000a1"

[chats.clinic]
kind = "line"
secret = "the-channel-secret"
channel = "line"
{answers}

[memory]
turns = 4

[alerts]
to = ["inbox"]
"""
BY_MODEL = """
[chats.clinic.model]
url = "https://models.test/v1"
model = "small"
token = "the-token-of-the-model"
replies_per_day = 3
tokens_per_day = 1000
"""
BY_JOB = 'job = "answer_person"'
ANSWER = """
from pydantic import BaseModel
from app.domain.jobs import Done


class Payload(BaseModel):
    text: str
    turns: list[dict]


async def handle(payload, ctx):
    if payload.text.startswith("crash"):
        try:
            raise KeyError(payload.text)
        except KeyError as error:
            raise ValueError(payload.text) from error
    return Done(" / ".join([*(turn["text"] for turn in payload.turns), payload.text]))
"""
EVERYWHERE = """
SELECT string_agg(words, ' ') FROM (
    SELECT to_jsonb(jobs)::text AS words FROM wakebell.jobs
    UNION ALL SELECT to_jsonb(alerts)::text FROM wakebell.alerts
    UNION ALL SELECT to_jsonb(messages)::text FROM wakebell.messages
) AS kept
"""


@pytest.fixture
def answers() -> str:
    return BY_JOB


def built(folder: Path, url: str, answers: str, **environ: str) -> Service:
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "answer_person.py").write_text(ANSWER)
    (folder / "wakebell.toml").write_text(CONFIGURATION.format(answers=answers), encoding="utf-8")
    given = {"DATABASE_URL": url, "WAKEBELL_CONFIG": str(folder / "wakebell.toml"), "CRON_SECRET": "c" * 20}
    return main.build(settings.load(given | {"API_TOKEN": API_TOKEN} | environ))


@pytest.fixture
def service(tmp_path: Path, database_url: str, memory: dict[str, str], answers: str) -> Service:
    return built(tmp_path, database_url, answers, **memory)


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(service) as client:
        yield client


@pytest.fixture
def passed(sql: asyncpg.Connection, memory: dict[str, str]) -> Callable[[int], Awaitable[None]]:
    """So many days have gone by, in both memories."""

    async def passed(days: int) -> None:
        for table, columns in (
            ("turns", ["said_at"]),
            ("said", ["said_at", "received_at"]),
            ("conversations", ["last_at"]),
        ):
            sets = ", ".join(f"{column} = {column} - make_interval(days => $1)" for column in columns)
            await sql.execute(f"UPDATE wakebell.{table} SET {sets}", days)
        if memory:
            async with Redis.from_url(memory["REDIS_URL"], decode_responses=True) as redis:
                for key in await redis.keys("*:turns:*"):
                    left = await redis.pttl(key) - days * 86_400_000
                    turns = [json.loads(one) for one in await redis.lrange(key, 0, -1)]
                    await redis.delete(key)
                    if left > 0:
                        older = [
                            (*rest, (datetime.fromisoformat(at) - timedelta(days=days)).isoformat())
                            for *rest, at in turns
                        ]
                        await redis.rpush(key, *map(json.dumps, older))
                        await redis.pexpire(key, left)

    return passed


async def due(sql: asyncpg.Connection) -> None:
    await sql.execute("UPDATE wakebell.jobs SET run_after = now() - interval '1 second' WHERE status = 'pending'")


async def in_group(client: httpx.AsyncClient, service: Service, number: int, group: str) -> None:
    """Somebody who talks to the bot elsewhere says something to it in a group."""
    told = event(number, "@bot hello")
    told["source"] = {"type": "group", "groupId": group, "userId": NOK}
    told["message"]["mention"] = {"mentionees": [{"index": 0, "length": 4, "type": "user", "isSelf": True}]}
    await line(client, service, told)


class TestAModel:
    """Its limits, and what is told of it."""

    @pytest.fixture
    def answers(self) -> str:
        return BY_MODEL

    @pytest.fixture
    def model(self, provider: respx.MockRouter) -> respx.Route:
        told = {"choices": [{"message": {"content": "We open at nine."}}], "usage": {"total_tokens": 20}}
        return provider.post(MODEL, name="model").respond(200, json=told)

    async def test_its_limits_are_of_a_person_wherever_they_write(
        self, client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, model: respx.Route
    ):
        await line(client, service, event(1))
        await in_group(client, service, 2, "C" + "0" * 32)
        await in_group(client, service, 3, "C" + "1" * 32)

        await in_group(client, service, 4, "C" + "1" * 32)
        await line(client, service, event(5))
        await line(client, service, event(6, person=NURSE))

        assert model.call_count == 4
        told = [text for [text] in said(provider["reply"])]
        assert [text == "We open at nine." for text in told] == [True, True, True, False, False, True]

    @pytest.mark.parametrize("memory", ["postgres"], indirect=True)
    @pytest.mark.parametrize(
        ("answer", "tries"),
        [
            (httpx.Response(500, json={"error": {"message": WORDS}, "usage": {"total_tokens": 10}}), 3),
            (httpx.Response(400, json={"error": {"message": WORDS, "type": "bad_request"}}), 3),
            (httpx.Response(200, json={"choices": [], "usage": {"total_tokens": 600}}), 2),
            (httpx.Response(503, json={"usage": {"total_tokens": 1000}}), 1),
            (httpx.ReadTimeout("too long"), 3),
        ],
    )
    async def test_one_that_fails_is_not_asked_without_end(  # noqa: PLR0917 - fixtures
        self,
        client: httpx.AsyncClient,
        service: Service,
        model: respx.Route,
        sql: asyncpg.Connection,
        caplog: pytest.LogCaptureFixture,
        answer: httpx.Response | Exception,
        tries: int,
    ):
        model.mock(side_effect=lambda _: _raised(answer))

        for number in range(1, 6):
            await line(client, service, event(number, WORDS))
        await due(sql)
        await tick.run(service, budget=service.settings.tick.budget, max_jobs=10, trigger="test")

        assert model.call_count == tries
        assert WORDS not in caplog.text
        assert WORDS not in (await sql.fetchval(EVERYWHERE) or "")

    async def test_what_it_says_holds_no_secret_of_ours(
        self,
        client: httpx.AsyncClient,
        service: Service,
        provider: respx.MockRouter,
        model: respx.Route,
        sql: asyncpg.Connection,
    ):
        secrets = [MODEL_TOKEN, "token-of-line", "the-channel-secret", API_TOKEN, "c" * 20]
        told = {"choices": [{"message": {"content": f"Take {', '.join(secrets)}; or come at nine."}}]}
        model.respond(200, json=told)

        await line(client, service, event(1, "hello"))
        model.respond(200, json={"choices": [{"message": {"content": f"You guess {MODEL_TOKEN}"}}]})
        await line(client, service, event(2, f"Is it {MODEL_TOKEN}?"))

        first, second = [text for [text] in said(provider["reply"])]
        assert first == f"Take {', '.join(['[secret]'] * 5)}; or come at nine."
        assert second == f"You guess {MODEL_TOKEN}", "what they have said themselves is no oracle"
        asked = json.loads(model.calls[1].request.content)["messages"]
        assert [one["content"] for one in asked] == ["hello", first, f"Is it {MODEL_TOKEN}?"]


def _raised(answer: httpx.Response | Exception) -> httpx.Response:
    if isinstance(answer, Exception):
        raise answer
    return httpx.Response(answer.status_code, content=answer.content)


@pytest.mark.parametrize("memory", ["postgres"], indirect=True)
async def test_a_crash_is_told_without_what_was_said(
    client: httpx.AsyncClient, service: Service, sql: asyncpg.Connection, caplog: pytest.LogCaptureFixture
):
    await line(client, service, event(1, f"crash {WORDS}"))
    for _ in range(7):
        await due(sql)
        await tick.run(service, budget=service.settings.tick.budget, max_jobs=10, trigger="test")

    [*_, record] = [one for one in caplog.records if one.message == "chat handler crashed"]
    assert (vars(record)["error"], "answer_person.py" in vars(record)["traceback"]) == ("ValueError", True)
    assert WORDS not in caplog.text
    assert not any(WORDS in str(vars(one)) for one in caplog.records)
    assert WORDS not in await sql.fetchval(EVERYWHERE)


async def test_a_conversation_is_forgotten_as_a_whole_and_so_long_after_its_last_word(
    client: httpx.AsyncClient,
    service: Service,
    provider: respx.MockRouter,
    passed: Callable[[int], Awaitable[None]],
):
    for number, (text, days) in enumerate([("a", 5), ("b", 5), ("c", 8), ("d", 0)]):
        await line(client, service, event(number, text))
        await passed(days)

    assert [text for [text] in said(provider["reply"])] == ["a", "a / a / b", "a / a / b / a / a / b / c", "d"]


async def test_a_reply_is_sent_with_the_token_that_came_last(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
):
    async def fails(*_: Any, **__: Any) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as broken:
        broken.setattr(service.stores.conversations, "read", fails)
        await line(client, service, event(1))
    await line(client, service, event(1) | {"replyToken": "another"})

    assert [json.loads(call.request.content)["replyToken"] for call in provider["reply"].calls] == ["another"]


@pytest.mark.parametrize("memory", ["postgres"], indirect=True)
@pytest.mark.parametrize("first", ["follow", "unfollow"])
async def test_of_two_at_once_the_one_counts_that_the_provider_dates_later(
    client: httpx.AsyncClient,
    service: Service,
    sql: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
):
    second = {"follow": "unfollow", "unfollow": "follow"}[first]
    name = {"follow": "unblock", "unfollow": "block"}[first]
    real = getattr(Reach, name)

    async def slowly(self: Reach, **told: Any) -> Any:
        """While the first is heeded, another replica keeps and heeds the second."""
        monkeypatch.setattr(Reach, name, real)
        await line(client, service, event(2, kind=second, person=NURSE))
        return await real(self, **told)

    monkeypatch.setattr(Reach, name, slowly)
    answer = await client.post("/api/webhooks/clinic", **signed(event(1, kind=first, person=NURSE)))

    blocked = await sql.fetchval("SELECT count(*) FROM wakebell.recipients WHERE blocked_at IS NOT NULL")
    assert (answer.status_code, blocked) == (200, int(second == "unfollow"))


@pytest.mark.parametrize("memory", ["redis"], indirect=True)
async def test_what_is_answered_needs_no_database_where_redis_knows_it(
    client: httpx.AsyncClient,
    service: Service,
    provider: respx.MockRouter,
    tmp_path: Path,
    memory: dict[str, str],
):
    await line(client, service, event(1))

    async with calling(built(tmp_path, NOWHERE, BY_JOB, **memory)) as elsewhere:
        answer = await elsewhere.post("/api/webhooks/clinic", **signed(event(1)))

    assert (answer.status_code, provider["reply"].call_count) == (200, 1)


@pytest.mark.parametrize("memory", ["postgres"], indirect=True)
async def test_what_staff_say_is_remembered_by_the_clock_of_the_database(service: Service, sql: asyncpg.Connection):
    told = Said(id="e1", kind="staff", conversation="bot:U1", address="U1", text="I am here")
    await talking.hear(service, service.settings.chats["clinic"], [told])
    await service.stores.database.dispose()

    exact = (
        "SELECT c.paused_until - interval '12 hours' = t.said_at "
        "FROM wakebell.conversations AS c JOIN wakebell.turns AS t ON t.conversation_id = c.id"
    )
    assert await sql.fetchval(exact)


class TestLookingAtThem:
    """Who is talked with; a pause that ends early; a person who is forgotten."""

    async def test_they_are_listed_without_what_was_said(
        self, client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
    ):
        assert not provider.calls
        for number, person in enumerate([NOK, NOK, NURSE]):
            await line(client, service, event(number, WORDS, person=person))

        first = (await client.get("/api/conversations", params={"limit": 1})).json()
        rest = (await client.get("/api/conversations", params={"cursor": first["next_cursor"]})).json()

        told = [*first["conversations"], *rest["conversations"]]
        assert [(one["person"], one["turns"], one["chat"]) for one in told] == [
            (NURSE, 2, "clinic"),
            (NOK, 4, "clinic"),
        ]
        assert all(one["last_at"] for one in told)
        assert WORDS not in str([first, rest])
        one = (await client.get(f"/api/conversations/{told[1]['id']}")).json()
        assert one | {"last_turns": []} == told[1] | {"last_turns": []}
        assert [turn["side"] for turn in one["last_turns"]] == ["person", "service"] * 2
        assert (await client.get("/api/conversations", params={"chat": "other"})).json()["conversations"] == []

    async def test_what_is_forgotten_is_not_counted(
        self,
        client: httpx.AsyncClient,
        service: Service,
        provider: respx.MockRouter,
        passed: Callable[[int], Awaitable[None]],
    ):
        await line(client, service, event(1))
        assert provider["reply"].call_count == 1
        await passed(8)

        [one] = (await client.get("/api/conversations")).json()["conversations"]
        assert (one["turns"], one["last_at"]) == (0, None)

    async def test_a_pause_ends_early(self, client: httpx.AsyncClient, service: Service, provider: respx.MockRouter):
        await line(client, service, event(1, "I want a human"))
        await line(client, service, event(2, "hello?"))
        [one] = (await client.get("/api/conversations", params={"paused": True})).json()["conversations"]

        ended = await client.delete(f"/api/conversations/{one['id']}/pause")
        await line(client, service, event(3, "thanks"))

        assert (ended.status_code, ended.json()["paused_until"]) == (200, None)
        assert provider["reply"].call_count == 2
        assert said(provider["reply"])[-1][0].endswith("hello? / thanks")

    async def test_a_person_is_forgotten_in_both_memories(
        self,
        client: httpx.AsyncClient,
        service: Service,
        provider: respx.MockRouter,
        sql: asyncpg.Connection,
        memory: dict[str, str],
    ):
        await line(client, service, event(1, WORDS))
        await line(client, service, event(2, "mine", person=NURSE))
        provider["reply"].respond(500)
        await line(client, service, event(3, f"{WORDS} that wait"))
        provider["reply"].respond(200, json={})
        talk = await sql.fetchval("SELECT id FROM wakebell.conversations WHERE address = $1", NOK)

        assert (await client.delete(f"/api/conversations/{talk}")).status_code == 204
        assert (await client.delete(f"/api/conversations/{talk}")).status_code == 404

        tables = ("turns", "said", "jobs", "conversations")
        kept = [await sql.fetchval(f"SELECT string_agg(to_jsonb(t)::text, ' ') FROM wakebell.{t} AS t") for t in tables]
        if memory:
            async with Redis.from_url(memory["REDIS_URL"], decode_responses=True) as redis:
                kept += [str(await redis.lrange(key, 0, -1)) for key in await redis.keys("*:turns:*")]
        assert WORDS not in str(kept)
        await due(sql)
        await tick.run(service, budget=service.settings.tick.budget, max_jobs=10, trigger="test")
        await line(client, service, event(4, "hello again"), event(5, "me too", person=NURSE))
        assert sorted(text for [text] in said(provider["reply"])[-2:]) == ["hello again", "mine / mine / me too"]


@pytest.mark.parametrize("memory", ["redis"], indirect=True)
async def test_nothing_is_forgotten_while_redis_is_away(  # noqa: PLR0917 - fixtures
    client: httpx.AsyncClient,
    service: Service,
    provider: respx.MockRouter,
    tmp_path: Path,
    database_url: str,
    sql: asyncpg.Connection,
):
    await line(client, service, event(1))
    talk = await sql.fetchval("SELECT id FROM wakebell.conversations")

    async with calling(built(tmp_path, database_url, BY_JOB, REDIS_URL="redis://127.0.0.1:9/0")) as elsewhere:
        refused = await elsewhere.delete(f"/api/conversations/{talk}")
        listed = await elsewhere.get("/api/conversations")
        shown = await elsewhere.get(f"/api/conversations/{talk}")

    assert (refused.status_code, "nothing was forgotten" in refused.json()["detail"]) == (503, True)
    assert (listed.status_code, shown.json()["last_turns"]) == (200, [])
    assert await sql.fetchval("SELECT count(*) FROM wakebell.conversations") == 1


async def test_one_that_is_forgotten_while_it_is_answered_is_not_remembered(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    async def forget(_: httpx.Request) -> httpx.Response:
        talk = await sql.fetchval("SELECT id FROM wakebell.conversations")
        assert (await client.delete(f"/api/conversations/{talk}")).status_code == 204
        return httpx.Response(200, json={})

    provider["reply"].mock(side_effect=forget)
    await line(client, service, event(1, "a"))
    provider["reply"].mock(side_effect=None, return_value=httpx.Response(200, json={}))
    await line(client, service, event(2, "b"))

    assert said(provider["reply"]) == [["a"], ["b"]]


@pytest.mark.parametrize("memory", ["postgres"], indirect=True)
async def test_what_goes_on_is_cut_off_after_a_while(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.context.SETTLING_SECONDS", 0.01)
    monkeypatch.setattr("app.context.CUTTING_SECONDS", 0.01)
    stubborn, over = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stubborn.set()
            await over.wait()

    service.go_on(hang())
    await service.settle()

    assert stubborn.is_set()
    over.set()
