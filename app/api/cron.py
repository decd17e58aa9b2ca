"""The scheduler's door: one ring, one batch."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from app import tick
from app.api.auth import cron_token
from app.api.deps import the_service
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations

router = APIRouter(prefix="/api/cron")

PARAMETERS = ("budget", "max_jobs")

MOST_NAMES, NAME_LENGTH = 5, 40
"""Of names that are none, and characters of one: an answer to a scheduler is short."""


async def known_parameters(request: Request) -> None:
    """A misspelt bound is no bound: it is refused by name."""
    unknown = [name for name in request.query_params if name not in PARAMETERS]
    if unknown:
        told = f"there is no such parameter; a tick takes {' and '.join(PARAMETERS)}"
        raise RequestValidationError(
            [{"loc": ("query", name[:NAME_LENGTH]), "msg": told} for name in unknown[:MOST_NAMES]]
        )


@router.post("/tick", dependencies=[Depends(cron_token), Depends(known_parameters)])
async def run_tick(
    service: Annotated[Service, Depends(the_service)],
    max_jobs: Annotated[int | None, Query(ge=1, le=1000)] = None,
    budget: Annotated[float | None, Query(ge=1, le=300, allow_inf_nan=False)] = None,
) -> JSONResponse:
    """Run one bounded batch of work and tell what it did. 500 exactly when the batch itself broke."""
    bounds = service.settings.tick
    summary = await tick.run(
        service,
        budget=bounds.budget if budget is None else timedelta(seconds=budget),
        max_jobs=bounds.max_jobs if max_jobs is None else max_jobs,
        trigger="http",
    )
    return JSONResponse(summary, 500 if summary["status"] == "failed" else 200)
