"""What each channel says when its provider is asked whether it knows the account. Nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app import plugins
from app.channels import email, line
from app.clients.reasons import finding_of
from app.domain.errors import Failure
from app.domain.findings import Finding, Status
from tests.channels.smtp_server import Mailbox, listening
from tests.channels.test_all import KINDS, OPTIONS_BY_KIND

PROBED = ["discord", "email", "line", "ntfy", "telegram"]

Answer = Callable[[httpx.Request], httpx.Response]


def options(kind: str, **more: Any) -> Any:
    return plugins.load("app.channels", kind).Options.model_validate(OPTIONS_BY_KIND[kind] | more)


async def probed(kind: str, answer: Answer | httpx.Response, **more: Any) -> list[Finding]:
    """As the doctor tells it."""
    asked = answer if callable(answer) else lambda _: answer
    async with httpx.AsyncClient(transport=httpx.MockTransport(asked)) as http:
        try:
            found: list[Finding] = await plugins.load("app.channels", kind).probe(options(kind, **more), http)
        except Failure as failure:
            return [finding_of(failure)]
        return found


def test_which_channels_can_be_asked_without_sending():
    assert [kind for kind in KINDS if hasattr(plugins.load("app.channels", kind), "probe")] == PROBED


@pytest.mark.parametrize(
    ("kind", "origin"),
    [
        ("email", "smtp://mx.example.com:587"),
        ("slack", "https://hooks.slack.com"),
        ("webhook", "https://hooks.test:443"),
    ],
)
def test_where_messages_go_is_said_without_what_is_secret(kind: str, origin: str):
    assert plugins.load("app.channels", kind).origin(options(kind)) == origin


@pytest.mark.parametrize(
    ("kind", "path", "told", "words"),
    [
        ("telegram", f"/bot123456789:{'A' * 35}/getMe", {"ok": True, "result": {"username": "bell_bot"}}, "@bell_bot"),
        (
            "discord",
            f"/api/v10/webhooks/123456789012345678/{'t' * 68}",
            {"id": "1", "name": "Gigs"},
            'the webhook is there, and is called "Gigs"',
        ),
        ("ntfy", "/v1/health", {"healthy": True}, "the server is well"),
    ],
)
async def test_an_account_that_is_known_is_told_by_its_name(kind: str, path: str, told: dict[str, Any], words: str):
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json=told)

    more = {"token": "tk_abc"} if kind == "ntfy" else {}
    [found] = await probed(kind, answer, base_url="https://proxy.test/", **more)

    assert (found.status, words in found.found) == ("ok", True)
    [request] = requests
    assert (request.method, request.url.host, request.url.path) == ("GET", "proxy.test", path)
    assert request.headers.get("Authorization") == ("Bearer tk_abc" if kind == "ntfy" else None)


@pytest.mark.parametrize(
    ("kind", "status", "told", "severity", "words"),
    [
        ("line", 401, {}, "fail", "issue a new one in the LINE Developers console"),
        ("line", 403, {}, "fail", "look at its plan and permissions"),
        ("line", 404, {}, "fail", "check the channel's `base_url`"),
        ("line", 429, {}, "warn", "wait some minutes"),
        ("line", 500, {}, "warn", "it has trouble of its own"),
        ("telegram", 401, {"ok": False}, "fail", "ask @BotFather for the bot's current one"),
        ("telegram", 404, {"ok": False}, "fail", "copy it again from @BotFather"),
        ("telegram", 502, {}, "warn", "it has trouble of its own"),
        ("discord", 401, {"code": 50027}, "fail", "the webhook was deleted or its address is not whole"),
        ("discord", 403, {}, "warn", "Discord refuses this host's IP address for now"),
        ("discord", 404, {"code": 10015}, "fail", "the webhook was deleted or its address is not whole"),
        ("discord", 503, {}, "warn", "it has trouble of its own"),
        ("ntfy", 401, {"code": 40101}, "fail", "the access token is wrong or has expired"),
        ("ntfy", 404, {}, "fail", "there is no ntfy server at this address"),
        ("ntfy", 200, {}, "fail", "what answers there is no ntfy server"),
        ("ntfy", 302, {}, "fail", "check the channel's `base_url`"),
        ("ntfy", 500, {}, "warn", "it has trouble of its own"),
    ],
)
async def test_each_refusal_says_what_to_change(
    kind: str, status: int, told: dict[str, Any], severity: Status, words: str
):
    headers = {"Location": "https://elsewhere.test"} if status == 302 else {}

    [found] = await probed(kind, httpx.Response(status, json=told, headers=headers))

    assert found.status == severity
    assert words in found.sentence


def line_answers(*, quota: int | None = 200, used: int = 57, refused: int | None = None) -> Answer:
    told: dict[str, dict[str, Any]] = {
        "/v2/bot/info": {"displayName": "Bell", "basicId": "@bell"},
        "/v2/bot/message/quota": {"type": "none"} if quota is None else {"type": "limited", "value": quota},
        "/v2/bot/message/quota/consumption": {"totalUsage": used},
    }

    def answer(request: httpx.Request) -> httpx.Response:
        if refused is not None and "quota" in request.url.path:
            return httpx.Response(refused, json={"message": "no"})
        return httpx.Response(200, json=told[request.url.path])

    return answer


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (line_answers(), "ok", "57 of this month's 200 messages are used up"),
        (line_answers(used=200), "warn", "200 of this month's 200 messages are used up; wait for the next month or"),
        (line_answers(quota=None), "ok", "57 messages this month, of as many as one likes"),
        (line_answers(refused=500), "warn", "it has trouble of its own"),
        (line_answers(refused=403), "fail", "answered 403"),
    ],
)
async def test_line_tells_whose_token_it_is_and_what_is_left(answer: Answer, status: Status, words: str):
    whose, quota = await probed("line", answer)

    assert (whose.status, whose.found) == ("ok", "the token is that of Bell (@bell)")
    assert (quota.name, quota.status) == ("quota", status)
    assert words in quota.sentence


async def test_line_is_not_asked_for_the_plan_where_the_file_says_it():
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return line_answers(used=5)(request)

    _, quota = await probed("line", answer, monthly_limit=500)

    assert quota.found == "5 of this month's 500 messages are used up"
    assert line.Options.model_fields["monthly_limit"].default is None
    assert "/v2/bot/message/quota" not in asked


async def mailed(port: int, **more: Any) -> Finding:
    async with httpx.AsyncClient() as http:
        chosen = options("email", host="127.0.0.1", port=port, **more)
        try:
            [found] = await email.probe(chosen, http)
        except Failure as failure:
            return finding_of(failure)
        return found


async def test_a_mail_server_is_spoken_to_and_no_mail_begun():
    mailbox = Mailbox()

    async with listening(mailbox) as port:
        plain = await mailed(port, security="none")
        asked = await mailed(port, security="starttls")

    assert (plain.status, plain.found) == ("warn", "the server answers, and nothing on the way to it is encrypted")
    assert asked.status == "fail"
    assert "does not offer what `security` and `password` need" in asked.found
    assert mailbox.envelopes == []


@pytest.mark.parametrize(("password", "status"), [("right", "warn"), ("hunter2", "fail")])
async def test_a_login_is_tried_and_a_wrong_one_told(password: str, status: Status):
    from tests.channels.test_email import password_check

    async with listening(Mailbox(), authenticator=password_check, auth_require_tls=False) as port:
        found = await mailed(port, security="none", username="bell", password=password)

    assert found.status == status
    assert ("check the channel's `username` and `password`" in found.sentence) == (status == "fail")
    assert "hunter2" not in found.sentence


async def test_a_mail_server_that_is_not_there_is_told():
    async with listening(Mailbox()) as port:
        pass

    found = await mailed(port, security="none")

    assert found.status == "fail"
    assert found.sentence.endswith("nobody listens there; check the port, and whether it is up")


async def test_a_provider_that_is_not_reached_is_told_with_the_reason():
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("x", request=request) from ConnectionRefusedError()

    [found] = await probed("telegram", refuse)

    assert found.found == "api.telegram.org could not be reached (ConnectError): nobody listens there"
    assert "A" * 35 not in found.sentence
