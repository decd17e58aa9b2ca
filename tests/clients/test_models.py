"""A model behind an OpenAI-compatible address."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app.clients import models
from app.clients.models import Completion
from app.domain.errors import Failure, PermanentFailure, RateLimited, TemporaryFailure, Unanswered

MESSAGES = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "สวัสดี"}]


async def complete(answer: Callable[[httpx.Request], Any], **more: Any) -> Completion:
    asked: dict[str, Any] = {
        "url": "https://models.example/v1/",
        "token": "s3cr3t-token",
        "model": "small",
        "messages": MESSAGES,
        "max_tokens": 100,
        "temperature": None,
        "seconds": 5.0,
    }
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        return await models.complete(http, **(asked | more))


def told(content: Any, **more: Any) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(200, json={"choices": [{"message": {"content": content}}], **more})


async def failure(answer: Callable[[httpx.Request], Any], **more: Any) -> Failure:
    found = (await complete(answer, **more)).failure
    assert found is not None
    assert "s3cr3t" not in str(found)
    return found


async def test_it_is_asked_with_the_whole_talk_and_its_token():
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return told(" สวัสดีค่ะ ", usage={"total_tokens": 42})(request)

    assert await complete(answer, temperature=0.2) == Completion(text="สวัสดีค่ะ", tokens=42)

    [request] = requests
    assert str(request.url) == "https://models.example/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer s3cr3t-token"
    assert json.loads(request.content) == {
        "model": "small",
        "messages": MESSAGES,
        "max_tokens": 100,
        "stream": False,
        "temperature": 0.2,
    }


async def test_one_that_needs_no_token_gets_none():
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return told("a")(request)

    await complete(answer, token=None)

    assert "authorization" not in requests[0].headers
    assert "temperature" not in json.loads(requests[0].content)


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"total_tokens": "many"}, {"total_tokens": -1}, {"total_tokens": True}, {"total_tokens": 10**30}],
)
async def test_tokens_that_are_not_told_are_estimated_and_never_free(usage: Any):
    assert (await complete(told("a" * 300, usage=usage))).tokens > 100


async def test_a_text_may_come_in_parts():
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, "odd", {"text": 1}, {"type": "text", "text": "b"}]

    assert (await complete(told(parts))).text == "ab"


@pytest.mark.parametrize(
    "answer",
    [
        told("  "),
        told(None),
        told({"text": "a"}),
        lambda _: httpx.Response(200, json={"choices": []}),
        lambda _: httpx.Response(200, json={"choices": "none"}),
        lambda _: httpx.Response(200, json=[]),
        lambda _: httpx.Response(200, content=b"\xff"),
        lambda _: httpx.Response(200, content=b"[" * 100_000),
    ],
)
async def test_an_answer_without_a_text_is_asked_for_again(answer: Callable[[httpx.Request], Any]):
    assert type(await failure(answer)) is TemporaryFailure


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_what_may_go_better_later_is_temporary_and_holds_back_no_channel(status: int):
    found = await failure(lambda _: httpx.Response(status, headers={"Retry-After": "7"}))

    assert isinstance(found, TemporaryFailure)
    assert not isinstance(found, RateLimited)
    assert found.retry_after is not None


@pytest.mark.parametrize(("status", "words"), [(401, "its `token` is wrong"), (404, "no such `model`"), (400, "400")])
async def test_what_cannot_go_better_says_what_to_change(status: int, words: str):
    found = await failure(lambda _: httpx.Response(status))

    assert isinstance(found, PermanentFailure)
    assert words in str(found)


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"error": {"message": "what Nok said", "type": "server_error", "code": "busy"}}, " (server_error, busy)"),
        ({"error": {"message": "what Nok said", "type": "bad_request", "code": 17}}, " (bad_request, 17)"),
        ({"object": "error", "message": "what Nok said", "type": "BadRequestError"}, " (BadRequestError)"),
        ({"error": {"type": "what Nok said", "code": None}}, ""),
        ({"error": "what Nok said", "type": "x" * 49}, ""),
        (["what Nok said"], ""),
    ],
)
@pytest.mark.parametrize("status", [400, 500])
async def test_of_an_error_its_names_alone_are_told(status: int, told: Any, named: str):
    found = await failure(lambda _: httpx.Response(status, json=told))

    assert str(found) == f"models.example answered {status}{named}"


async def test_of_an_error_that_is_no_json_the_status_is_told():
    assert str(await failure(lambda _: httpx.Response(400, text="what Nok said"))) == "models.example answered 400"


@pytest.mark.parametrize("status", [200, 400, 503])
async def test_what_comes_to_nothing_has_cost_what_it_says(status: int):
    made = await complete(lambda _: httpx.Response(status, json={"choices": [], "usage": {"total_tokens": 17}}))

    assert (made.tokens, made.text, made.failure is None) == (17, "", False)


async def test_an_answer_without_a_text_is_not_free_where_it_says_no_number():
    assert (await complete(told("", usage=None))).tokens > 0
    assert (await complete(lambda _: httpx.Response(500))).tokens == 0


async def test_one_that_takes_too_long_is_not_waited_for():
    async def answer(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(Unanswered, match=r"^models.example did not answer within 0.01 s$"):
        await complete(answer, seconds=0.01)
