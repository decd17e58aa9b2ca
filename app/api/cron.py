"""The scheduler's door: one ring, one batch; and the service's own: one ring, one drain."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from app import tick
from app.api.auth import cron_token
from app.api.deps import the_service
from app.asked import Text
from app.clients.ring import DEEPEST, DEPTH
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

router = APIRouter(prefix="/api/cron")

MOST_NAMES, NAME_LENGTH = 5, 40
"""Of names that are none, and characters of one: an answer to a scheduler is short."""

MOST_QUEUE = 200
"""Characters of a queue's name; the database takes as many bytes."""

MaxJobs = Annotated[int | None, Query(ge=1, le=1000)]
Budget = Annotated[float | None, Query(ge=1, le=300, allow_inf_nan=False)]
Queue = Annotated[Text | None, Query(min_length=1, max_length=MOST_QUEUE)]


def known_parameters(what: str, *names: str) -> Callable[[Request], Awaitable[None]]:
    """A misspelt bound is no bound: it is refused by name."""

    async def check(request: Request) -> None:
        unknown = [name for name in request.query_params if name not in names]
        if unknown:
            told = f"there is no such parameter; {what} takes {', '.join(names[:-1])} and {names[-1]}"
            raise RequestValidationError(
                [{"loc": ("query", name[:NAME_LENGTH]), "msg": told} for name in unknown[:MOST_NAMES]]
            )

    return check


async def bounded_depth(request: Request) -> None:
    """A ring that a rung drain has caused goes in a circle."""
    told = request.headers.getlist(DEPTH)
    if told and told != [str(DEEPEST)]:
        raise RequestValidationError(
            [{"loc": ("header", DEPTH), "msg": f"must be {DEEPEST} or left out: what was rung rings nobody"}]
        )


@router.post("/tick", dependencies=[Depends(cron_token), Depends(known_parameters("a tick", "budget", "max_jobs"))])
async def run_tick(
    service: Annotated[Service, Depends(the_service)], max_jobs: MaxJobs = None, budget: Budget = None
) -> JSONResponse:
    """Run one bounded batch of work and tell what it did. 500 exactly when the batch itself broke."""
    bounds = service.settings.tick
    summary = await tick.run(
        service,
        budget=bounds.budget if budget is None else timedelta(seconds=budget),
        max_jobs=bounds.max_jobs if max_jobs is None else max_jobs,
        trigger="http",
    )
    return _answer(summary)


@router.post(
    "/drain",
    dependencies=[
        Depends(cron_token),
        Depends(known_parameters("a drain", "queue", "budget", "max_jobs")),
        Depends(bounded_depth),
    ],
)
async def run_drain(
    service: Annotated[Service, Depends(the_service)],
    queue: Queue = None,
    max_jobs: MaxJobs = None,
    budget: Budget = None,
) -> JSONResponse:
    """Run what is due in one queue, or without a name in all of users', and tell what it did."""
    from app import short_drain  # noqa: PLC0415 - most rings are ticks

    bounds = service.settings.tick
    summary = await short_drain.run(
        service,
        queue=queue,
        budget=bounds.budget if budget is None else timedelta(seconds=budget),
        max_jobs=bounds.max_jobs if max_jobs is None else max_jobs,
    )
    return _answer(summary)


def _answer(summary: dict[str, object]) -> JSONResponse:
    return JSONResponse(summary, 500 if summary["status"] == "failed" else 200)
