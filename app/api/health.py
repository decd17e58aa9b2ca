"""Whether the process lives, and whether it can work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from app import __version__, alive
from app.api.auth import accepted, raw_authorization
from app.api.deps import the_service
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.domain.errors import SchemaOutdated, ServiceError
from app.domain.health import Health, judge

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

router = APIRouter()

METHODS = list(alive.METHODS)

READY_SECONDS = 2.0
"""What a probe waits for the database."""

HEALTH_SECONDS = 10.0
"""What a monitor waits: a database that sleeps is up by then."""


class Alive(JSONResponse):
    """The answer that is given before anything of this is imported."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Gives it."""
        await alive.answer(scope, receive, send)


@router.api_route(alive.PATH, methods=METHODS)
async def healthz() -> Alive:
    """The process lives. Touches no database: a probe must not keep one awake."""
    return Alive({})


@router.api_route("/readyz", methods=METHODS)
async def readyz(service: Annotated[Service, Depends(the_service)]) -> JSONResponse:
    """Database reachable and schema at least this release's."""
    database = service.stores.database
    try:
        async with asyncio.timeout(READY_SECONDS), database.held():
            ready = await service.stores.schema() in {"current", "ahead"}
    except (ServiceError, TimeoutError):
        ready = False
    return JSONResponse({"status": "ok" if ready else "unavailable"}, 200 if ready else 503)


class HealthResponse(JSONResponse):
    """As draft-inadarei-api-health-check names it."""

    media_type = "application/health+json"


@router.api_route("/api/health", methods=METHODS)
async def health(request: Request, service: Annotated[Service, Depends(the_service)]) -> HealthResponse:
    """Whether all is well; with the API's token, why not. 503 when it is not: also when nobody rings any more.

    Asks the database, so that a monitor which calls it keeps both awake: once an hour is often enough.
    """
    found = await _judged(service)
    told: dict[str, object] = {"status": found.status}
    token = service.settings.environment.api_token
    if token is not None and accepted(raw_authorization(request), [token]):
        told |= {"version": __version__, "checks": found.checks}
    return HealthResponse(told, 503 if found.status == "fail" else 200, headers={"Cache-Control": "no-store"})


async def _judged(service: Service) -> Health:
    database = service.stores.database
    try:
        async with asyncio.timeout(HEALTH_SECONDS), database.held():
            await service.stores.require_schema()
            facts = await service.stores.health.read(list(service.settings.sources))
    except (ServiceError, TimeoutError) as error:
        reason = "the schema is behind" if isinstance(error, SchemaOutdated) else "cannot be reached"
        return Health(status="fail", checks={"database": [{"status": "fail", "output": reason}]})
    return judge(facts, expected_every=service.settings.tick.expected_every)
