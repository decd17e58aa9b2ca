from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import httpx

from app.channels import inbox
from app.domain.messages import Body, Digest, DigestItem, Message, Receipt


def refuse(request: httpx.Request) -> httpx.Response:
    raise AssertionError("the inbox reached for the network")


def test_a_digest_is_one_readable_body():
    told = Digest(items=(DigestItem(title="Dev", link=None, source="board", subscriptions=()),), to="")

    assert inbox.compose(told, inbox.Options()) == [Body(body="Dev\nboard", text="Dev\nboard", items=(0,))]


async def test_sending_reaches_for_nothing():
    message = Message(
        id=1,
        recipient="inbox",
        channel="inbox",
        body="Dev",
        retry_key=UUID(int=1),
        first_tried_at=datetime(2026, 11, 30, tzinfo=UTC),
    )

    async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as http:
        assert await inbox.send(message, inbox.Options(), http) == Receipt()
