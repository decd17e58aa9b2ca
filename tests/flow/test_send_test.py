"""`wakebell send-test` as a person runs it: one message, and one sentence that says what came of it."""

from __future__ import annotations

import asyncio
import base64
import email
import email.policy
import json

import pytest
from standardwebhooks import Webhook

from tests.channels.smtp_server import Mailbox, listening
from tests.fakes.http_server import HttpServer, Request, for_ever, send
from tests.flow.service import free_port
from tests.flow.stage import USER, Stage

MONTHLY = "You have reached your monthly limit."
RATE = "The API rate limit has been exceeded. Try again later."

WEBHOOK_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()

LINE = """
[channels.stub]
kind = "line"
token = "env:LINE_TOKEN"
base_url = "{url}"

[recipients.tested]
channel = "stub"
to = "env:LINE_USER"
"""
WEBHOOK = """
[channels.hook]
kind = "webhook"
url = "{url}/in?key=hidden-in-the-address"
secret = "env:HOOK_SECRET"

[recipients.tested]
channel = "hook"
"""
EMAIL = """
[channels.post]
kind = "email"
host = "127.0.0.1"
port = {port}
sender = "Wakebell <bell@example.com>"
security = "none"

[recipients.tested]
channel = "post"
to = "someone@example.com"
language = "th"
"""


class Stub(HttpServer):
    """Answers every request alike."""

    def __init__(self, status: int | str, message: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__()
        self.status = status
        self.message = message
        self.headers = headers or {}
        self.requests: list[Request] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        if self.status == "hang up":
            wire.transport.abort()
        elif self.status == "hang":
            await for_ever()
        else:
            assert isinstance(self.status, int)
            told = {"Content-Type": "application/json", "X-Line-Request-Id": "the-request-id", **self.headers}
            await send(wire, self.status, json.dumps({"message": self.message}).encode(), headers=told)


async def send_test(stage: Stage, name: str = "tested", **environ: str) -> tuple[int, str]:
    """The exit status, and all that is said: one sentence, without a traceback or a secret."""
    process = stage.bear("send-test", name, **environ)
    status = await process.ended()
    said = process.log.strip()
    assert len(said.splitlines()) == 1, said
    for private in ("Traceback", stage.environ["LINE_TOKEN"], USER, WEBHOOK_SECRET, "hidden-in-the-address"):
        assert private not in said
    return status, said


@pytest.mark.parametrize(
    ("answer", "message", "headers", "words"),
    [
        (
            400,
            "The property, 'to', in the request body is invalid",
            {},
            ["answered 400", "`to` must be the id of a user"],
        ),
        (401, "Authentication failed", {}, ["answered 401", "issue a new one in the LINE Developers console"]),
        (403, "Access to this API is not available for your account", {}, ["answered 403", "look at its plan"]),
        (404, "Not found", {}, ["answered 404", "check the channel's `base_url`"]),
        (429, RATE, {}, ["answered 429", "rate limit", "try again in a minute"]),
        (429, RATE, {"Retry-After": "30"}, ["answered 429", "left alone for 30 seconds"]),
        (429, MONTHLY, {}, ["used up", "wait for the next month or change the plan"]),
        (500, "Internal error", {}, ["answered 500", "try again in a minute", "status page"]),
        ("hang up", "", {}, ["did not answer", "it may have arrived all the same", "before you try again"]),
    ],
)
async def test_what_line_refuses_is_told_with_what_to_do(
    stage: Stage, answer: int | str, message: str, headers: dict[str, str], words: list[str]
):
    async with Stub(answer, message, headers) as stub:
        stage.more = LINE.format(url=stub.url)
        status, said = await send_test(stage)

    assert status == 1
    assert len(stub.requests) == 1
    assert [word for word in words if word not in said] == [], said
    if message == MONTHLY:
        assert "in a minute" not in said


async def test_what_line_takes_is_told_with_its_name_for_it(stage: Stage):
    async with Stub(200) as stub:
        stage.more = LINE.format(url=stub.url)
        status, said = await send_test(stage)

    assert status == 0
    assert said == (
        "the channel stub took the message for tested (it calls it the-request-id): look whether it has arrived"
    )
    [request] = stub.requests
    pushed = json.loads(request.body)
    assert pushed["to"] == USER
    assert [message["text"] for message in pushed["messages"]] == [
        "This is a test message from wakebell. Notifications will arrive here."
    ]


async def test_where_nobody_listens_the_address_is_to_be_checked(stage: Stage):
    stage.more = LINE.format(url=f"http://127.0.0.1:{free_port()}")

    status, said = await send_test(stage)

    assert status == 1
    assert "127.0.0.1 could not be reached" in said
    assert "check the channel's address" in said


async def test_a_name_that_is_none_is_told_with_those_that_are(stage: Stage):
    status, said = await send_test(stage, "nobody")

    assert status == 1
    assert said == 'wakebell: the configuration has no recipient "nobody"; it has me, inbox'


async def test_a_database_that_is_down_is_no_matter_to_a_channel(stage: Stage):
    status, _ = await send_test(stage, "me", DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")

    assert status == 0
    assert len(stage.line.accepted) == 1


async def test_the_inbox_keeps_it(stage: Stage):
    assert await send_test(stage, "inbox") == (0, "the message is in the inbox")

    assert await stage.notes() == ["This is a test message from wakebell. Notifications will arrive here."]


async def test_the_inbox_needs_a_database_and_a_schema(stage: Stage, empty_database_url: str):
    down = await send_test(stage, "inbox", DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    empty = await send_test(stage, "inbox", DATABASE_URL=empty_database_url)

    assert (down[0], empty[0]) == (1, 1)
    assert "DATABASE_URL" in down[1] or "database" in down[1]
    assert "run `wakebell migrate`" in empty[1]


async def test_a_webhook_is_signed_as_the_specification_wants_it(stage: Stage):
    async with Stub(204) as stub:
        stage.more = WEBHOOK.format(url=stub.url)
        status, said = await send_test(stage, HOOK_SECRET=WEBHOOK_SECRET)

    assert (status, said.partition(" (")[0]) == (0, "the channel hook took the message for tested")
    [request] = stub.requests
    event = Webhook(WEBHOOK_SECRET).verify(request.body, dict(request.headers))
    assert event["type"] == "service.note"
    assert event["data"]["text"].startswith("This is a test message")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (401, "check that both sides have the same secret"),
        (410, "the receiver said that it is gone"),
        (308, "redirects are not followed"),
        (500, "try again in a minute"),
        ("hang up", "it may have arrived all the same"),
    ],
)
async def test_what_a_webhook_refuses_is_told_with_what_to_do(stage: Stage, answer: int | str, words: str):
    async with Stub(answer, headers={"Location": "https://elsewhere.example/"}) as stub:
        stage.more = WEBHOOK.format(url=stub.url)
        status, said = await send_test(stage, HOOK_SECRET=WEBHOOK_SECRET)

    assert status == 1
    assert words in said


async def test_a_mail_arrives_at_a_real_server_and_parses(stage: Stage):
    mailbox = Mailbox()
    async with listening(mailbox) as port:
        stage.more = EMAIL.format(port=port)
        status, said = await send_test(stage)

    assert (status, said.partition(" (")[0]) == (0, "the channel post took the message for tested")
    [envelope] = mailbox.envelopes
    mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
    assert (envelope.mail_from, envelope.rcpt_tos) == ("bell@example.com", ["someone@example.com"])
    assert (mail["From"], mail["To"]) == ("Wakebell <bell@example.com>", "someone@example.com")
    assert mail["Subject"] == "นี่คือข้อความทดสอบจาก wakebell การแจ้งเตือนจะส่งมาที่นี่"
    assert mail.get_content().strip() == mail["Subject"]
    assert mail.defects == []
    assert mail["Message-ID"]
    assert mail["Date"]


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ({"rcpt": "550 no such user"}, ["answered 550", "check the recipient's `to`"]),
        ({"mail": "553 not yours"}, ["answered 553", "the channel's `sender`"]),
        ({"rcpt": "451 greylisted"}, ["answered 451", "try again in a minute"]),
        ({"data": "hang up"}, ["did not say whether it took the mail", "it may have arrived all the same"]),
    ],
)
async def test_what_a_mail_server_refuses_is_told_with_what_to_do(
    stage: Stage, replies: dict[str, str], words: list[str]
):
    async with listening(Mailbox(**replies)) as port:
        stage.more = EMAIL.format(port=port)
        status, said = await send_test(stage)

    assert status == 1
    assert [word for word in words if word not in said] == [], said


async def test_a_mail_server_that_is_not_there(stage: Stage):
    stage.more = EMAIL.format(port=free_port())

    status, said = await send_test(stage)

    assert status == 1
    assert "127.0.0.1 could not be reached" in said
    assert "check the channel's address" in said


async def test_nothing_of_it_is_queued(stage: Stage):
    await send_test(stage, "me")

    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.messages") == 0
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 0
