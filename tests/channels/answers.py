"""What the tests of channels share: one message, and providers that answer as they are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.domain.errors import Failure
from app.domain.messages import Digest, DigestItem, Message, Receipt

KEY = UUID("5f1a2b3c-0000-4000-8000-000000000001")

MARKED = "budget_5000 - C# (v2.0)! [a](b"
"""A title full of what some services read as marks."""


def message(body: str) -> Message:
    return Message(
        id=1, recipient="me", channel="c", body=body, retry_key=KEY, first_tried_at=datetime(2026, 11, 30, tzinfo=UTC)
    )


def digest(*titles: str, link: str | None = None, to: str = "") -> Digest:
    items = tuple(DigestItem(title=title, link=link, source="board", subscriptions=("python",)) for title in titles)
    return Digest(items=items, to=to)


class Provider:
    """Answers one request after the other with what it was given, the last one for ever."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def take(self, channel: Any, options: Any, body: str) -> Receipt:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self)) as http:
            receipt: Receipt = await channel.send(message(body), options, http)
        return receipt

    async def refuse(self, channel: Any, options: Any, body: str, *, secret: str) -> Failure:
        """The failure that comes of it, which holds no secret."""
        with pytest.raises(Failure) as caught:
            await self.take(channel, options, body)
        assert secret not in str(caught.value)
        return caught.value


def told(status: int, **answer: Any) -> Callable[[], Provider]:
    """A provider that answers like this; made anew for each use, since an answer can be read once."""
    return lambda: Provider(httpx.Response(status, **answer))
