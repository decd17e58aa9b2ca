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
to = "U1"
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


AGAIN = "try again in a minute, and if it stays so, check the channel's address and the provider's status page"


@pytest.mark.parametrize(
    ("answer", "ending"),
    [
        (httpx.Response(400), "it was not taken"),
        (httpx.Response(503), f"it was not taken; {AGAIN}"),
        (
            httpx.Response(503, headers={"Retry-After": "120"}),
            "it was not taken; the provider wants to be left alone for 2 minutes",
        ),
        (
            httpx.Response(429, json={"message": "You have reached your monthly limit."}),
            "it was not taken; the provider wants to be left alone for 60 minutes",
        ),
        (httpx.ReadTimeout("secret"), "it may have arrived all the same; look there before you try again"),
        (httpx.ConnectError("secret"), f"it was not taken; {AGAIN}"),
    ],
)
@respx.mock
async def test_each_failure_is_one_sentence_that_ends_with_what_to_do(
    configured: Settings, answer: httpx.Response | Exception, ending: str
):
    respx.post(PUSH).mock(side_effect=[answer])

    with pytest.raises(ServiceError) as caught:
        await send_test.run(configured, "me")

    said = str(caught.value)
    assert said.endswith(f": {ending}")
    assert "\n" not in said
    assert "secret" not in said
    assert "a-token-of-line" not in said


async def test_a_name_that_is_none_is_told_with_those_that_are(configured: Settings):
    with pytest.raises(ServiceError, match='has no recipient "you"; it has me, inbox'):
        await send_test.run(configured, "you")
