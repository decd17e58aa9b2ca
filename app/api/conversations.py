"""The doors through which programs see who is talked with, end a pause early, and have somebody forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse, Response
from pydantic import AfterValidator

from app import memories
from app.api.auth import api_token
from app.api.bodies import storable
from app.api.cursors import MOST_ID, PageQuery, answer
from app.api.deps import HeldStores, the_service
from app.api.errors import Problem
from app.context import Service
from app.domain.errors import MemoryUnavailable

if TYPE_CHECKING:
    from app.stores import Stores

router = APIRouter(prefix="/api/conversations", dependencies=[Depends(api_token)])

TheService = Annotated[Service, Depends(the_service)]
Text = Annotated[str, AfterValidator(storable)]


class ConversationsQuery(PageQuery):
    """The filters of the listing."""

    chat: Text | None = None
    paused: bool | None = None


@router.get("")
async def list_conversations(
    query: Annotated[ConversationsQuery, Query()], service: TheService, stores: HeldStores
) -> JSONResponse:
    """A page of conversations, those that were begun last first, without what was said in them.

    `paused=true` leaves out those that the service answers in. `turns` says how many are remembered, `last_at` when the
    last of them was said, `person` the provider's id of the person or group.
    """
    page = await memories.listed(
        service.settings,
        stores,
        limit=query.limit,
        before=query.before("conversations"),
        chat=query.chat,
        paused=query.paused,
    )
    return answer("conversations", page, memories.shown)


@router.get("/{conversation_id}")
async def get_conversation(conversation_id: int, service: TheService, stores: HeldStores) -> JSONResponse:
    """One conversation with its last turns, oldest first."""
    return JSONResponse(await _found(service, stores, conversation_id))


@router.delete("/{conversation_id}/pause")
async def end_pause(conversation_id: int, service: TheService, stores: HeldStores) -> JSONResponse:
    """The service answers there again, from the next message on; also where it did not pause."""
    if not 0 < conversation_id <= MOST_ID or not await stores.talks.resume(conversation_id):
        raise _unknown()
    return JSONResponse(await _found(service, stores, conversation_id))


@router.delete("/{conversation_id}")
async def forget_conversation(conversation_id: int, service: TheService, stores: HeldStores) -> Response:
    """Forget a person: what was said, what waits for a reply, what they watch there, and what they may.

    503 when the Redis that remembers cannot be asked: nothing is forgotten then, and it is to be asked for again.
    """
    try:
        there = 0 < conversation_id <= MOST_ID and await memories.forget(service.settings, stores, conversation_id)
    except MemoryUnavailable as error:
        raise Problem(
            503, "Service Unavailable", f"{error}; nothing was forgotten", headers={"Retry-After": "5"}
        ) from None
    if not there:
        raise _unknown()
    return Response(status_code=204)


async def _found(service: Service, stores: Stores, conversation_id: int) -> dict[str, Any]:
    there = 0 < conversation_id <= MOST_ID
    told = await memories.found(service.settings, stores, conversation_id) if there else None
    if told is None:
        raise _unknown()
    return told


def _unknown() -> Problem:
    return Problem(
        404, "Not Found", "there is no such conversation; it is forgotten [memory] keep_days after the last word"
    )
