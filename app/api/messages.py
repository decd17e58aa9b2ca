"""The door through which programs see what was told, to whom and when."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import AfterValidator

from app.api.auth import api_token
from app.api.bodies import storable
from app.api.cursors import MOST_ID, PageQuery, answer, told
from app.api.deps import HeldStores  # noqa: TC001 - FastAPI reads the annotations
from app.api.errors import Problem

router = APIRouter(prefix="/api/messages", dependencies=[Depends(api_token)])

Text = Annotated[str, AfterValidator(storable)]


class MessagesQuery(PageQuery):
    """The filters of the listing."""

    status: Literal["queued", "sending", "retrying", "sent", "failed", "uncertain"] | None = None
    recipient: Text | None = None
    channel: Text | None = None


@router.get("")
async def list_messages(query: Annotated[MessagesQuery, Query()], stores: HeldStores) -> JSONResponse:
    """A page of messages, the newest first, without their items.

    A page of long texts ends before its `limit`; `next_cursor` alone tells whether more follow.
    """
    page = await stores.listings.list_messages(
        limit=query.limit,
        before=query.before("messages"),
        status=query.status,
        recipient=query.recipient,
        channel=query.channel,
    )
    return answer("messages", page)


@router.get("/{message_id}")
async def get_message(message_id: int, stores: HeldStores) -> JSONResponse:
    """One message with its story and the items it tells of: those that it shows, then those that it only counts.

    Each item is told by one message; of a digest in several messages, each has its own items.
    """
    message = await stores.listings.get_message(message_id) if 0 < message_id <= MOST_ID else None
    if message is None:
        raise Problem(
            404, "Not Found", "there is no such message; one that is over is deleted after [retention] messages_days"
        )
    items = await stores.listings.list_told(message_id)
    return JSONResponse({**told(message), "items": [asdict(item) for item in items]})
