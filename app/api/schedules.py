"""The door through which programs see what is queued when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from app import scheduled
from app.api.auth import api_token
from app.api.deps import HeldStores, the_service
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations

router = APIRouter(prefix="/api/schedules", dependencies=[Depends(api_token)])


@router.get("")
async def list_schedules(service: Annotated[Service, Depends(the_service)], stores: HeldStores) -> JSONResponse:
    """Every configured schedule in the file's order, without its payload: that may hold a secret.

    `last_slot` is the newest that a job was queued for, `due` that a slot waits for the next tick; `next` are three
    instants from now on, none for an interval that no tick has seen yet.
    """
    now, known = await stores.schedules.read()
    configured = service.settings.schedules
    listed = [scheduled.told(schedule, known.get(name), now=now) for name, schedule in configured.items()]
    return JSONResponse({"schedules": listed})
