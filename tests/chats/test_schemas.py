"""What is sent to LINE in answer, held against the description of its API that it publishes itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, ValidationError

from app.channels import line as channel
from app.chats import line
from tests.chats.talks import Provider, answer, splitted

DESCRIBED: dict[str, Any] = json.loads((Path(__file__).parent / "schemas/line.json").read_text("utf-8"))
ACCOUNT = channel.Options.model_validate({"token": "t", "base_url": "https://line.test"})
OK = httpx.Response(200, json={})

SCHEMA_BY_PATH = {
    "/v2/bot/message/reply": "ReplyMessageRequest",
    "/v2/bot/message/push": "PushMessageRequest",
    "/v2/bot/chat/loading/start": "ShowLoadingAnimationRequest",
}


def validator(name: str) -> Draft202012Validator:
    Draft202012Validator.check_schema(DESCRIBED)
    return Draft202012Validator(DESCRIBED | {"$ref": f"#/$defs/{name}"})


@pytest.mark.parametrize("text", ["Hello", "สวัสดี 😀\n\nสอง", "😀" * 30_000, '"\\\u0001', "x " * 20_000])
@pytest.mark.parametrize("token", ["tok", None])
async def test_each_answer_is_one_that_line_describes(text: str, token: str | None):
    provider = Provider(OK)

    await provider.hears(line, answer(*splitted(line, text), reply_token=token), ACCOUNT)
    await provider.sees(line, "U" + "1" * 32, ACCOUNT)

    assert len(provider.requests) == 2
    for path, told in zip(provider.paths, provider.bodies, strict=True):
        validator(SCHEMA_BY_PATH[path]).validate(told)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ReplyMessageRequest", {"replyToken": "t", "messages": []}),
        ("ReplyMessageRequest", {"to": "U1", "messages": [{"type": "text", "text": "x"}]}),
        ("PushMessageRequest", {"to": "U1", "messages": [{"type": "text", "text": "x"}] * 6}),
        ("ShowLoadingAnimationRequest", {"chatId": "U1", "loadingSeconds": 7}),
    ],
)
def test_what_line_does_not_describe_is_noticed(name: str, wrong: dict[str, Any]):
    with pytest.raises(ValidationError):
        validator(name).validate(wrong)
