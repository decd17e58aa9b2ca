"""What each provider of a chat says of our door when it is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from app.channels import line as line_channel
from app.channels import telegram as telegram_channel
from app.chats import line, messenger, telegram
from app.clients.reasons import finding_of
from app.domain.errors import Failure
from app.domain.findings import Finding, Status
from tests.chats.test_all import OPTIONS_BY_KIND

BELL = "https://bell.test/api/webhooks"
TOKEN = "123456789:" + "A" * 35

ACCOUNTS: dict[str, Any] = {
    "line": line_channel.Options.model_validate({"token": "token"}),
    "telegram": telegram_channel.Options.model_validate({"token": TOKEN}),
    "messenger": messenger.Options.model_validate(OPTIONS_BY_KIND["messenger"]),
}
MODULES: dict[str, Any] = {"line": line, "messenger": messenger, "telegram": telegram}

Answers = Mapping[str, tuple[int, Any]]
"""By the end of a path: status and JSON."""


async def probed(kind: str, answers: Answers, *, door: str | None = BELL, account: Any = None) -> dict[str, Finding]:
    """By their names."""

    def answer(request: httpx.Request) -> httpx.Response:
        [(status, body)] = [answers[end] for end in answers if request.url.path.endswith(end)]
        return httpx.Response(status, json=body)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        try:
            found = await MODULES[kind].probe(door, account or ACCOUNTS[kind], http)
        except Failure as failure:
            found = [finding_of(failure)]
    return {one.name: one for one in found}


def told(found: Finding) -> tuple[Status, str]:
    return found.status, found.sentence


# ---------------------------------------------------------------------------------------------------------------- LINE

REGISTERED = (200, {"endpoint": BELL, "active": True})
TRIED = {"success": True, "timestamp": "2026-12-01T05:00:00Z", "statusCode": 200, "reason": "OK", "detail": "200"}


async def test_line_tries_the_door_where_it_delivers_to_it():
    found = await probed("line", {"/webhook/endpoint": REGISTERED, "/webhook/test": (200, TRIED)})

    assert {name: one.status for name, one in found.items()} == {"address": "ok", "delivery": "ok"}
    assert found["delivery"].found == "LINE has tried it, and was answered"


@pytest.mark.parametrize(
    ("endpoint", "name", "words"),
    [
        (
            (404, {"message": "Not found"}),
            "address",
            "has no address to deliver to; write the address into Webhook URL",
        ),
        ((200, {"endpoint": "https://old.test/x", "active": True}), "address", "another host, old.test; write the "),
        ((200, {"endpoint": BELL, "active": False}), "webhook", "is switched off; switch on Use webhook in the LINE"),
        ((401, {"message": "x"}), "", "issue a new one in the LINE Developers console"),
        ((403, {"message": "x"}), "", "look at its plan and permissions"),
    ],
)
async def test_where_line_does_not_deliver_here_nothing_is_tried(endpoint: tuple[int, Any], name: str, words: str):
    found = await probed("line", {"/webhook/endpoint": endpoint})

    assert found[name].status == "fail"
    assert words in found[name].sentence


@pytest.mark.parametrize(
    ("reason", "status", "words"),
    [
        ("COULD_NOT_CONNECT", "fail", "check that PUBLIC_URL is reached from outside, and its certificate"),
        ("REQUEST_TIMEOUT", "warn", "switch on webhook redelivery in the LINE Developers console"),
        ("ERROR_STATUS_CODE", "fail", "401 is the chat's `secret`, which is not this channel's; 404 a service"),
        ("UNCLASSIFIED", "fail", "look at the service's log"),
    ],
)
async def test_why_line_was_not_answered_is_told(reason: str, status: Status, words: str):
    tried = TRIED | {"success": False, "statusCode": 401, "reason": reason, "detail": "why it is so"}

    found = await probed("line", {"/webhook/endpoint": REGISTERED, "/webhook/test": (200, tried)})

    assert told(found["delivery"])[0] == status
    assert f"LINE has tried it in vain: {reason}, status 401 (why it is so); " in found["delivery"].sentence
    assert words in found["delivery"].change


async def test_line_asked_too_often_to_try_is_left_alone():
    found = await probed("line", {"/webhook/endpoint": REGISTERED, "/webhook/test": (429, {"message": "rate limit"})})

    assert found["address"].status == "ok"
    assert found["delivery"].status == "warn"
    assert "wait some minutes" in found["delivery"].sentence


# ------------------------------------------------------------------------------------------------------------ Telegram


def info(**more: Any) -> Answers:
    return {"/getWebhookInfo": (200, {"ok": True, "result": {"url": BELL, "pending_update_count": 0, **more}})}


@pytest.mark.parametrize(
    ("answers", "name", "status", "words"),
    [
        (info(), "address", "ok", f"the provider delivers to {BELL}"),
        (info(), "deliveries", "ok", "none waits"),
        (info(url=""), "address", "fail", "has no address to deliver to; tell Telegram by setWebhook"),
        (
            info(url="https://old.test/bot-token"),
            "address",
            "fail",
            "another host, old.test; tell Telegram by setWebhook",
        ),
        (info(pending_update_count=3), "deliveries", "warn", "3 events wait"),
        (
            info(pending_update_count=3, last_error_message="Wrong response from the webhook: 401 Unauthorized"),
            "deliveries",
            "fail",
            "401 Unauthorized; 401 is the secret_token, which is not the chat's `secret`",
        ),
        (info(allowed_updates=["callback_query"]), "events", "fail", "does not deliver message; tell Telegram"),
        (info(allowed_updates=["message", "callback_query"]), "events", "warn", "does not deliver my_chat_member"),
        (
            info(allowed_updates=["message", "callback_query", "my_chat_member"]),
            "events",
            "ok",
            "delivers all that is of use",
        ),
        ({"/getWebhookInfo": (401, {"ok": False})}, "", "fail", "ask @BotFather for the bot's current one"),
    ],
)
async def test_telegram_tells_where_it_delivers_to_and_how_that_went(
    answers: Answers, name: str, status: Status, words: str
):
    found = await probed("telegram", answers)

    assert found[name].status == status
    assert words in found[name].sentence
    assert "bot-token" not in found[name].sentence


async def test_without_an_address_of_ours_nobody_knows_whether_it_is_this_service():
    found = await probed("telegram", info(), door=None)

    assert found["address"].status == "warn"
    assert found["address"].change == "set PUBLIC_URL to the address of this service"


# ----------------------------------------------------------------------------------------------------------- Messenger

ALL = ["messages", "messaging_postbacks", "message_echoes"]
PAGE = (200, {"id": "1", "name": "My Clinic"})


def page(*apps: dict[str, Any]) -> Answers:
    return {"/me": PAGE, "/me/subscribed_apps": (200, {"data": list(apps)})}


def app(*fields: str, app_id: str = "77") -> dict[str, Any]:
    return {"id": app_id, "name": "Bell", "subscribed_fields": list(fields)}


@pytest.mark.parametrize(
    ("answers", "status", "words"),
    [
        (page(app(*ALL)), "ok", "delivers all that is of use"),
        (page(app("messages")), "warn", "does not deliver messaging_postbacks and message_echoes; subscribe the page"),
        (page(app("feed")), "fail", "does not deliver messages; subscribe the page to the app"),
        (page(), "fail", "the page is not subscribed to the app: nothing is delivered; subscribe the page"),
        (
            {"/me": PAGE, "/me/subscribed_apps": (403, {"error": {"code": 200, "message": "needs a permission"}})},
            "skipped",
            "not told to this token, which lacks pages_manage_metadata",
        ),
    ],
)
async def test_messenger_tells_what_the_page_is_subscribed_to(answers: Answers, status: Status, words: str):
    found = await probed("messenger", answers)

    assert told(found[""]) == ("ok", "the token is that of My Clinic")
    assert found["events"].status == status
    assert words in found["events"].sentence


async def test_of_several_apps_of_a_page_ours_counts():
    account = messenger.Options.model_validate(OPTIONS_BY_KIND["messenger"] | {"app_id": "77"})

    found = await probed("messenger", page(app(*ALL, app_id="1"), app("messages")), account=account)

    assert found["events"].status == "warn"


async def test_a_page_token_that_is_not_known_is_told_and_not_repeated():
    refused = {"error": {"code": 190, "message": "Malformed access token EAAtoken"}}

    found = await probed("messenger", {"/me": (400, refused)})

    assert found[""].status == "fail"
    assert "make a new token of the page" in found[""].sentence
    assert "EAAtoken" not in json.dumps([one.sentence for one in found.values()])
