from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import respx

from app import send_test, settings
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
            "the provider wants to be left alone for 60 minutes",
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
