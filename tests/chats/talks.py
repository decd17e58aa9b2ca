"""What the tests of chats share: deliveries as a provider signs them, and answers to them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.domain.chats import Answer, Replied, split
from app.domain.errors import Failure

KEY = UUID("5f1a2b3c-0000-4000-8000-000000000009")


def body(told: Any) -> bytes:
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass")


def answer(*texts: str, **more: Any) -> Answer:
    facts: dict[str, Any] = {"address": "U1", "retry_key": KEY, "waited": timedelta(seconds=3)}
    return Answer(texts=texts or ("Hello",), **(facts | more))


def splitted(chat: Any, text: str) -> tuple[str, ...]:
    return split(text, limit=chat.TEXT_LIMIT, length=chat.length, most=chat.MOST_TEXTS)


class Provider:
    """Answers one request after the other with what it was given, the last one for ever."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(told, Exception):
            raise told
        return httpx.Response(told.status_code, headers=told.headers, content=told.content)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]

    @property
    def paths(self) -> list[str]:
        return [request.url.path for request in self.requests]

    async def hears(self, chat: Any, given: Answer, account: Any) -> Replied:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self)) as http:
            replied: Replied = await chat.reply(given, account, http)
        return replied

    async def sees(self, chat: Any, address: str, account: Any) -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self)) as http:
            await chat.typing(address, account, http)

    async def refuses(self, chat: Any, given: Answer, account: Any) -> Failure:
        with pytest.raises(Failure) as caught:
            await self.hears(chat, given, account)
        assert account.token.get_secret_value() not in str(caught.value)
        return caught.value
