from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import respx

from app import plugins, send_test, settings
from app.domain.errors import ServiceError
from app.settings import Settings

PUSH = "https://api.line.me/v2/bot/message/push"
CONFIGURATION = """
[service]
name = "gigs"

[channels.line]
kind = "line"
token = "a-token-of-line"

[recipients.me]
channel = "line"
to = "U00000000000000000000000000000001"
language = "vi"
"""


@pytest.fixture
def configured(tmp_path: Path) -> Settings:
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION)
    return settings.load({"WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml")})


@respx.mock
async def test_it_speaks_the_recipients_language_under_a_key_of_its_own(configured: Settings):
    route = respx.post(PUSH).respond(200)

    told = [await send_test.run(configured, "me") for _ in range(2)]

    assert told == ["the channel line took the message for me: look whether it has arrived"] * 2
    keys = {call.request.headers["X-Line-Retry-Key"] for call in route.calls}
    assert len(keys) == 2
    assert "Đây là tin nhắn thử từ gigs" in route.calls[0].request.content.decode()


NOT_SENT = "not sent: "
AGAIN = "try again in a minute, and if it stays so, check the channel's address and the provider's status page"


@pytest.mark.parametrize(
    ("answer", "beginning", "ending"),
    [
        (httpx.Response(400), NOT_SENT, "or of a group or room it is in"),
        (httpx.Response(503), NOT_SENT, AGAIN),
        (
            httpx.Response(503, headers={"Retry-After": "120"}),
            NOT_SENT,
            "the provider wants to be left alone for 2 minutes",
        ),
        (
            httpx.Response(429, json={"message": "You have reached your monthly limit."}),
            NOT_SENT,
            "wait for the next month or change the plan in the LINE Official Account Manager",
        ),
        (
            httpx.ReadTimeout("secret"),
            "not known whether it was sent: ",
            "it may have arrived all the same: look there before you try again",
        ),
        (httpx.ConnectError("secret"), NOT_SENT, AGAIN),
    ],
)
@respx.mock
async def test_each_failure_is_one_sentence_that_ends_with_what_to_do(
    configured: Settings, answer: httpx.Response | Exception, beginning: str, ending: str
):
    respx.post(PUSH).mock(side_effect=[answer])

    with pytest.raises(ServiceError) as caught:
        await send_test.run(configured, "me")

    said = str(caught.value)
    assert said.startswith(beginning)
    assert said.endswith(ending)
    assert "\n" not in said
    assert "secret" not in said
    assert "a-token-of-line" not in said


async def test_a_name_that_is_none_is_told_with_those_that_are(configured: Settings):
    with pytest.raises(ServiceError, match='has no recipient "you"; it has me, inbox'):
        await send_test.run(configured, "you")


CHANNELS = {
    "telegram": """
token = "123456789:a-token-of-telegram-with-35-characters"
base_url = "https://provider.test"
""",
    "discord": """
webhook_url = "https://discord.com/api/webhooks/123456789012345678/a-token-of-discord-with-many-characters"
base_url = "https://provider.test"
""",
    "slack": """
webhook_url = "https://hooks.slack.com/services/T1/B1/atokenofslack"
base_url = "https://provider.test"
""",
    "ntfy": """
token = "tk_atokenofntfy"
base_url = "https://provider.test"
""",
}
TO = {"telegram": "42", "ntfy": "jobs"}
TOOK = "the channel other took the message for them"


@pytest.fixture
def other(tmp_path: Path, kind: str) -> Settings:
    """A configuration with a channel of the kind."""
    to = f'to = "{TO[kind]}"\n' if kind in TO else ""
    path = tmp_path / "wakebell.toml"
    path.write_text(f'[channels.other]\nkind = "{kind}"\n{CHANNELS[kind]}\n[recipients.them]\nchannel = "other"\n{to}')
    return settings.load({"WAKEBELL_CONFIG": str(path)})


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("telegram", {"ok": True, "result": {"message_id": 7}}, f"{TOOK} (it calls it 7): look whether it has arrived"),
        ("discord", {"id": "11"}, f"{TOOK} (it calls it 11): look whether it has arrived"),
        ("slack", {}, f"{TOOK}: look whether it has arrived"),
        ("ntfy", {"id": "xE7"}, f"{TOOK} (it calls it xE7): look whether it has arrived"),
    ],
)
@respx.mock
async def test_every_channel_proves_itself(other: Settings, answer: dict[str, object], said: str):
    route = respx.post(host="provider.test").respond(200, json=answer)

    assert await send_test.run(other, "them") == said
    assert "This is a test message from wakebell" in route.calls[0].request.content.decode()


@pytest.mark.parametrize(
    ("kind", "answer", "ending"),
    [
        ("telegram", httpx.Response(401, json={"ok": False}), "ask @BotFather for the bot's current one"),
        (
            "telegram",
            httpx.Response(400, json={"ok": False, "description": "Bad Request: chat not found"}),
            "check the recipient's `to`",
        ),
        (
            "telegram",
            httpx.Response(429, json={"ok": False, "parameters": {"retry_after": 30}}),
            "the provider wants to be left alone for 30 seconds",
        ),
        ("discord", httpx.Response(404, json={"code": 10015}), "check that the thread is in this channel"),
        ("discord", httpx.Response(429, json={"retry_after": 0.5}), "left alone for 1 second"),
        ("slack", httpx.Response(404, text="no_service"), "put its address into `webhook_url`"),
        ("slack", httpx.Response(500, text="rollup_error"), AGAIN),
        ("ntfy", httpx.Response(403, json={"code": 40301}), "into the channel's `token`"),
        ("ntfy", httpx.Response(429, json={"code": 42908}), "the provider wants to be left alone for 60 minutes"),
        ("ntfy", httpx.ConnectError("tk_atokenofntfy"), AGAIN),
    ],
)
@respx.mock
async def test_every_channel_says_what_to_do(other: Settings, answer: httpx.Response | Exception, ending: str):
    respx.post(host="provider.test").mock(side_effect=[answer])

    with pytest.raises(ServiceError) as caught:
        await send_test.run(other, "them")

    said = str(caught.value)
    assert said.startswith(NOT_SENT)
    assert said.endswith(ending)
    assert "\n" not in said
    assert "atoken" not in said.replace("-", "")


@pytest.mark.parametrize("kind", CHANNELS)
def test_a_channel_is_listed_without_its_secrets(other: Settings):
    assert "atoken" not in repr(other).replace("-", "")


def test_every_channel_that_speaks_http_and_is_told_an_address_is_here():
    assert set(CHANNELS) == set(plugins.kinds("app.channels")) - {"apprise", "email", "inbox", "line", "webhook"}
