"""Whether the process lives, and whether it can work."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from app.api.deps import the_service
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.domain.errors import ServiceError
from app.stores.schema import schema_state

router = APIRouter()

METHODS = ["GET", "HEAD"]
"""Many monitors send HEAD."""

READY_SECONDS = 2.0
"""What a probe waits for the database."""


@router.api_route("/healthz", methods=METHODS)
async def healthz() -> JSONResponse:
    """The process lives. Touches no database: a probe must not keep one awake."""
    return JSONResponse({"status": "ok"})


@router.api_route("/readyz", methods=METHODS)
async def readyz(service: Annotated[Service, Depends(the_service)]) -> JSONResponse:
    """Database reachable and schema at least this release's."""
    database = service.stores.database
    try:
        async with asyncio.timeout(READY_SECONDS), database.held():
            ready = await schema_state(database) in {"current", "ahead"}
    except (ServiceError, TimeoutError):
        ready = False
    return JSONResponse({"status": "ok" if ready else "unavailable"}, 200 if ready else 503)
