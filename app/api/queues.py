"""The door through which programs see the queues, pause and limit them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from app import queue_changes
from app.api.auth import api_token
from app.api.bodies import json_object, refused
from app.api.deps import HeldStores  # noqa: TC001 - FastAPI reads the annotations
from app.asked import Refused
from app.stores.queues import QueueChange  # noqa: TC001 - the same

router = APIRouter(prefix="/api/queues", dependencies=[Depends(api_token)])


class QueuesQuery(BaseModel):
    """Which queues."""

    model_config = ConfigDict(extra="forbid")

    own: bool = False


async def asked_name(name: str) -> str:
    """A name that a queue can have."""
    try:
        return queue_changes.known_name(name)
    except Refused as refusal:
        raise refused(refusal) from None


async def changeable_name(name: str) -> str:
    """A name that a queue of the user's can have."""
    try:
        return queue_changes.changeable_name(name)
    except Refused as refusal:
        raise refused(refusal) from None


async def asked_change(request: Request) -> QueueChange:
    """What the body asks for, checked as far as that goes without the database."""
    body = await json_object(request)
    try:
        return queue_changes.read(body)
    except Refused as refusal:
        raise refused(refusal) from None


@router.get("")
async def list_queues(query: Annotated[QueuesQuery, Query()], stores: HeldStores) -> JSONResponse:
    """Queues with jobs that wait or run, and those that are limited or paused, by name; at most 1,000.

    `due` counts to 10,000. The service's own are left out, unless `own=true` asks for them too.
    """
    found = await stores.queues.all(own=query.own)
    return JSONResponse({"queues": [queue_changes.shown(queue) for queue in found]})


@router.get("/{name:path}")
async def get_queue(name: Annotated[str, Depends(asked_name)], stores: HeldStores) -> JSONResponse:
    """One queue, own ones too; also one that has no jobs."""
    return JSONResponse(queue_changes.shown(await stores.queues.get(name)))


@router.put("/{name:path}")
async def change_queue(
    name: Annotated[str, Depends(changeable_name)],
    change: Annotated[QueueChange, Depends(asked_change)],
    stores: HeldStores,
) -> JSONResponse:
    """Pause it (`paused_until`, an instant or `forever`, with a `reason`) or limit it; answers with how it stands then.

    `max_running` jobs at once over all replicas; `max_starts` within any `period_seconds`. A field that is left out
    stays as it is, null takes away; all of it is changed or nothing. A pause ends by itself at its instant. The
    service's own queues are refused.
    """
    try:
        return JSONResponse(queue_changes.shown(await queue_changes.make(stores.queues, name, change)))
    except Refused as refusal:
        raise refused(refusal) from None
