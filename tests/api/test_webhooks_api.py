"""What people say to a chat, delivered by its provider, on each of the two memories."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest
import respx

from app import main, settings, tick
from app.context import Service
from app.domain.errors import DatabaseUnavailable
from app.stores.conversations import MAX_ATTEMPTS
from tests.api.chatting import NURSE, SECRET, event, line, said, signed, telegram
from tests.api.doors import NOWHERE, calling

CONFIGURATION = """
[service]
handlers = "handlers"

[channels.line]
kind = "line"
token = "token-of-line"

[channels.bot]
kind = "telegram"
token = "123456:AAHtoken-of-the-telegram-bot-abcdefgh"

[recipients.nurse]
channel = "line"
to = "U000000000000000000000000000000a1"

[chats.clinic]
kind = "line"
secret = "the-channel-secret"
channel = "line"
job = "answer_person"

[chats.desk]
kind = "telegram"
secret = "secret-of-the-webhook"
channel = "bot"
job = "answer_person"

[chats.plain]
kind = "telegram"
secret = "secret-of-the-webhook"
channel = "bot"

[chats.quick]
kind = "telegram"
secret = "secret-of-the-webhook"
channel = "bot"
job = "answer_slowly"
reply_budget_seconds = 1

[memory]
turns = 4

[alerts]
to = ["inbox"]
"""
ANSWER = """
from pydantic import BaseModel
import asyncio
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.jobs import Done, Snooze
from datetime import timedelta

TIMEOUT = timedelta(seconds=0.2)


class Payload(BaseModel):
    text: str
    turns: list[dict]


async def handle(payload, ctx):
    if payload.text == "nothing":
        return None
    if payload.text == "later":
        return Snooze(timedelta(hours=1))
    if payload.text == "break":
        raise TemporaryFailure("not now")
    if payload.text == "crash":
        raise ValueError(payload.text)
    if payload.text == "refuse":
        raise PermanentFailure("not this")
    if payload.text == "odd":
        return 5
    if payload.text == "hang":
        await asyncio.Event().wait()
    return Done(" / ".join([*(turn["text"] for turn in payload.turns), payload.text]))
"""


SLOWLY = """
import asyncio
from datetime import timedelta
from pydantic import BaseModel
from app.domain.jobs import Done

TIMEOUT = timedelta(seconds=2)


class Payload(BaseModel):
    text: str


async def handle(payload, ctx):
    await asyncio.sleep(1.6)
    return Done(payload.text)
"""


def built(folder: Path, url: str, **environ: str) -> Service:
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "answer_person.py").write_text(ANSWER)
    (folder / "handlers" / "answer_slowly.py").write_text(SLOWLY)
    (folder / "wakebell.toml").write_text(CONFIGURATION, encoding="utf-8")
    given = {"DATABASE_URL": url, "WAKEBELL_CONFIG": str(folder / "wakebell.toml"), "CRON_SECRET": "c" * 20}
    return main.build(settings.load(given | environ))


@pytest.fixture
def service(tmp_path: Path, database_url: str, memory: dict[str, str]) -> Service:
    return built(tmp_path, database_url, **memory)


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(service, token=None) as client:
        yield client


async def test_a_message_is_answered_with_its_token_and_costs_nothing(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
):
    await line(client, service, event(1, "hello"))

    assert said(provider["reply"]) == [["hello"]]
    assert json.loads(provider["reply"].calls[0].request.content)["replyToken"] == "token-1"
    assert provider["push"].call_count == 0
    assert provider["loading"].call_count == 1


async def test_an_answer_knows_the_last_turns_and_no_more(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
):
    for number, text in enumerate("abcd", 1):
        await line(client, service, event(number, text))

    assert [texts[0] for texts in said(provider["reply"])] == [
        "a",
        "a / a / b",
        "a / a / b / a / a / b / c",
        "b / a / a / b / c / a / a / b / a / a / b / c / d",  # the last four turns
    ]


async def test_each_person_is_remembered_alone(client: httpx.AsyncClient, service: Service, provider: respx.MockRouter):
    await line(client, service, event(1, "a"), event(2, "b", person=NURSE))
    await line(client, service, event(3, "c", person=NURSE))

    assert sorted(texts[0] for texts in said(provider["reply"])) == ["a", "b", "b / b / c"]


async def test_what_comes_again_is_answered_once(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    again = event(1) | {"deliveryContext": {"isRedelivery": True}, "replyToken": "another"}

    await line(client, service, event(1))
    await line(client, service, again, again)
    await line(client, service, again)

    assert said(provider["reply"]) == [["hello"]]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.said") == 1


async def test_fifty_copies_at_once_are_answered_once(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    await asyncio.gather(*(client.post("/api/webhooks/clinic", **signed(event(1))) for _ in range(50)))
    await service.settle()

    assert said(provider["reply"]) == [["hello"]]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'answer_message'") == 1


async def test_two_messages_at_once_are_answered_in_their_order(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
):
    await line(client, service, *(event(number, text) for number, text in enumerate("ab", 1)))

    assert said(provider["reply"]) == [["a"], ["a / a / b"]]


async def test_a_token_that_is_good_no_more_becomes_a_push(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
):
    provider["reply"].respond(400, json={"message": "Invalid reply token"})

    await line(client, service, event(1))

    assert said(provider["push"]) == [["hello"]]
    assert provider["push"].calls[0].request.headers["x-line-retry-key"]


async def test_a_reply_that_failed_is_made_when_the_message_comes_again(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    provider["reply"].respond(500)
    provider["push"].respond(500)
    await line(client, service, event(1))
    assert await sql.fetchval("SELECT answered_at FROM wakebell.said") is None

    provider["reply"].respond(200, json={})
    await line(client, service, event(1))

    assert await sql.fetchval("SELECT outcome FROM wakebell.said") == "replied"
    assert said(provider["reply"]) == [["hello"]] * provider["reply"].call_count


async def test_a_reply_that_failed_is_made_when_the_person_says_more(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
):
    provider["reply"].respond(500)
    await line(client, service, event(1, "a"))

    provider["reply"].respond(200, json={})
    await line(client, service, event(2, "b"))

    assert said(provider["reply"])[-2:] == [["a"], ["a / a / b"]]


async def test_whoever_writes_on_uses_up_no_tries(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    provider["reply"].respond(500)
    for number in range(1, MAX_ATTEMPTS + 3):
        await line(client, service, event(number, f"{number}"))
    provider["reply"].respond(200, json={})

    await line(client, service, event(99, "last"))

    assert await sql.fetchval("SELECT count(*) FROM wakebell.said WHERE outcome = 'replied'") == MAX_ATTEMPTS + 3


async def test_a_reply_that_failed_is_made_by_a_later_tick(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    provider["reply"].respond(500)
    await line(client, service, event(1))
    provider["reply"].respond(200, json={})
    await sql.execute("UPDATE wakebell.jobs SET run_after = now() - interval '1 second' WHERE status = 'pending'")

    await tick.run(service, budget=service.settings.tick.budget, max_jobs=10, trigger="test")

    assert await sql.fetchval("SELECT outcome FROM wakebell.said") == "replied"


@pytest.mark.parametrize("text", ["break", "crash", "refuse", "odd", "hang"])
async def test_a_reply_that_cannot_be_made_ends_with_a_polite_text_and_an_alert(
    client: httpx.AsyncClient,
    service: Service,
    provider: respx.MockRouter,
    sql: asyncpg.Connection,
    text: str,
):
    await line(client, service, event(1, text))
    for _ in range(MAX_ATTEMPTS):
        await sql.execute("UPDATE wakebell.jobs SET run_after = now() - interval '1 second' WHERE status = 'pending'")
        summary = await tick.run(service, budget=service.settings.tick.budget, max_jobs=10, trigger="test")
        if summary["alerts"]["opened"]:
            break

    [[told]] = said(provider["push"]) or said(provider["reply"])
    assert told.startswith("Thank you for your message.")
    assert summary["alerts"]["opened"] == 1
    assert await sql.fetchval("SELECT key FROM wakebell.alerts") == "job_failed:answer_message"


async def test_a_job_that_says_nothing_is_no_reply(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    await line(client, service, event(1, "nothing"), event(2, "a"))

    assert said(provider["reply"]) == [["nothing / a"]]
    assert [row["outcome"] for row in await sql.fetch("SELECT outcome FROM wakebell.said ORDER BY id")] == [
        "nothing to say",
        "replied",
    ]


async def test_a_job_may_be_asked_later(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    await line(client, service, event(1, "later"))

    assert provider["reply"].call_count == 0
    assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE run_after > now() + interval '50 minutes'") == (
        "pending"
    )


async def test_who_asks_for_a_person_waits_for_no_reply_that_cannot_be_made(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    await line(client, service, event(1, "crash"))
    assert provider["reply"].call_count == 0

    await line(client, service, event(2, "can I talk to a human?"))

    assert [texts[0][:9] for texts in said(provider["reply"])] == ["Thank you", "I am pass"]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status = 'pending'") == 0


async def test_a_person_who_asks_for_one_of_the_house_is_left_to_them(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    await line(client, service, event(1, "can I talk to a human?"))
    await line(client, service, event(2, "hello?"))

    assert [texts[0][:9] for texts in said(provider["reply"])] == ["I am pass"]
    told = await sql.fetch("SELECT recipient, status, text FROM wakebell.messages WHERE kind = 'alert'")
    assert [tuple(row) for row in told] == [  # without a tick
        ("inbox", "sent", "Somebody in the chat clinic asks for a person: can I talk to a human?")
    ]

    await sql.execute("UPDATE wakebell.conversations SET paused_until = now() - interval '1 second'")
    await line(client, service, event(3, "thanks"))

    assert re.fullmatch(r"can I .* / I am passing .* / hello\? / thanks", said(provider["reply"])[-1][0])


async def test_a_chat_without_a_job_answers_politely(client: httpx.AsyncClient, provider: respx.MockRouter):
    await telegram(client, 1, "hello", chat="plain")

    assert [text[:9] for [text] in said(provider["telegram"])] == ["Thank you"]


async def test_where_the_provider_waits_the_answer_is_made_in_its_request(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
):
    await telegram(client, 1, "a")
    await telegram(client, 1, "a")
    await telegram(client, 2, "b")

    assert not service.afterwards
    texts = [json.loads(call.request.content).get("text") for call in provider["telegram"].calls]
    assert [text for text in texts if text] == ["a", "a / a / b"]


async def test_what_one_request_had_no_time_for_is_answered_without_a_tick(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
):
    await asyncio.gather(*(telegram(client, number, f"{number}", chat="quick") for number in (1, 2)))
    await service.settle()

    texts = [json.loads(call.request.content).get("text") for call in provider["telegram"].calls]
    assert sorted(text for text in texts if text) == ["1", "2"]


async def test_a_provider_that_does_not_answer_costs_a_try_and_no_crash(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    async def hang(request: httpx.Request) -> httpx.Response:
        if b"text" in request.content:
            await asyncio.Event().wait()
        return httpx.Response(200, json={"ok": True, "result": True})

    provider["telegram"].side_effect = hang
    await telegram(client, 1, "a", chat="quick")
    await service.settle()

    job = await sql.fetchrow("SELECT attempts, crashes, last_error FROM wakebell.jobs WHERE type = 'answer_message'")
    assert (job["attempts"], job["crashes"]) == (1, 0)
    assert job["last_error"] == "the provider of chat quick did not answer in time"


async def test_what_was_kept_and_not_heeded_is_heeded_when_it_comes_again(
    client: httpx.AsyncClient, service: Service, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    async def fails(**_: object) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as broken:
        broken.setattr(service.stores.reach, "block", fails)
        answer = await client.post("/api/webhooks/clinic", **signed(event(1, kind="unfollow", person=NURSE)))
        assert answer.status_code == 503

    await line(client, service, event(1, kind="unfollow", person=NURSE))

    assert await sql.fetchval("SELECT count(*) FROM wakebell.recipients WHERE blocked_at IS NOT NULL") == 1


async def test_whoever_blocks_the_bot_is_written_to_no_more_until_they_follow_again(
    client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
):
    blocked = "SELECT count(*) FROM wakebell.recipients WHERE name = 'nurse' AND blocked_at IS NOT NULL"

    await line(client, service, event(1, kind="unfollow", person=NURSE))
    assert await sql.fetchval(blocked) == 1

    await line(client, service, event(3, kind="follow", person=NURSE))
    await line(client, service, event(2, kind="unfollow", person=NURSE))  # comes late, and was before
    assert await sql.fetchval(blocked) == 0
    assert provider.calls.call_count == 0


async def test_a_delivery_of_no_events_is_a_try_of_the_address(client: httpx.AsyncClient, provider: respx.MockRouter):
    answer = await client.post("/api/webhooks/clinic", **signed())

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("chat", ["clinic", "desk"])
@pytest.mark.parametrize("given", ["", "short", "ไทย"])
async def test_a_body_that_nobody_can_have_signed_is_not_read(client: httpx.AsyncClient, chat: str, given: str):
    read = False

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        read = True
        yield b"{}"

    headers = {b"x-line-signature": given.encode(), b"x-hub-signature-256": given.encode()}
    answer = await client.post(f"/api/webhooks/{chat}", content=body(), headers=headers)

    assert (answer.status_code, read) == (401, False)


async def test_a_kind_that_is_not_asked_says_so(client: httpx.AsyncClient):
    answer = await client.get("/api/webhooks/clinic")

    assert answer.status_code == 404


class TestADatabaseThatIsAway:
    """Nothing is looked at that is not signed; what is signed is to come again."""

    @pytest.fixture
    async def client(self, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
        async with calling(built(tmp_path, NOWHERE), token=None) as client:
            yield client

    @pytest.mark.parametrize("place", [0, 5, -1])
    async def test_a_body_that_was_changed_is_refused(self, client: httpx.AsyncClient, place: int):
        request = signed(event(1))
        content = bytearray(request["content"])
        content[place] ^= 1

        answer = await client.post("/api/webhooks/clinic", content=bytes(content), headers=request["headers"])

        assert answer.status_code == 401
        assert "www-authenticate" in answer.headers

    async def test_one_without_a_signature_is_refused(self, client: httpx.AsyncClient):
        answer = await client.post("/api/webhooks/clinic", content=signed(event(1))["content"])

        assert answer.status_code == 401

    async def test_one_that_is_signed_and_no_delivery_is_refused(self, client: httpx.AsyncClient):
        content = b'{"events": 1}'
        signature = base64.b64encode(hmac.digest(SECRET.encode(), content, hashlib.sha256)).decode()

        answer = await client.post("/api/webhooks/clinic", content=content, headers={"X-Line-Signature": signature})

        assert answer.status_code == 400

    async def test_one_that_is_signed_is_to_come_again(self, client: httpx.AsyncClient):
        answer = await client.post("/api/webhooks/clinic", **signed(event(1)))

        assert answer.status_code == 503
        assert "retry-after" in answer.headers

    async def test_an_unknown_chat_is_named_as_such(self, client: httpx.AsyncClient):
        answer = await client.post("/api/webhooks/nobody", **signed(event(1)))

        assert answer.status_code == 404
