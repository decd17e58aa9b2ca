"""What programs do with jobs that are there; a part of the door `jobs.py`, which lets in and names the path."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - FastAPI reads the annotations
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app import asked, upkeep
from app.api.bodies import json_object, refused
from app.api.deps import HeldStores, the_service
from app.api.errors import Problem
from app.asked import Instant, Refused, Text
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.upkeep import MOST_RETRIED, NoSuchJob, NotAsItIs

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from app.stores.jobs import StoredJob

router = APIRouter()


class RetryQuery(BaseModel):
    """Which failed jobs, and at most how many."""

    model_config = ConfigDict(extra="forbid")

    type: Text
    limit: Annotated[int, Field(ge=1, le=MOST_RETRIED)] = MOST_RETRIED


class _Change(BaseModel):
    """The body of a change."""

    model_config = ConfigDict(extra="forbid", strict=True)

    run_after: Instant


async def asked_time(request: Request) -> datetime:
    """The time that the body asks for."""
    body = await json_object(request)
    try:
        return _Change.model_validate(body).run_after
    except ValidationError as error:
        raise refused(asked.refusal(error)) from None


@router.post("/retry")
async def retry_failed(
    query: Annotated[RetryQuery, Query()],
    service: Annotated[Service, Depends(the_service)],
    stores: HeldStores,
) -> JSONResponse:
    """Run failed jobs of a type again, the oldest first: `retried` tells how many.

    As many as `limit`: there may be more, ask once more. Those whose `unique_key` another job has are passed by.
    """
    try:
        if query.type not in asked.own_types():
            asked.known_type(query.type, service.handlers)
    except Refused as refusal:
        raise refused(refusal) from None
    return JSONResponse({"retried": await stores.jobs.retry_all(query.type, limit=query.limit)})


@router.post("/{job_id}/retry")
async def retry_job(job_id: int, stores: HeldStores) -> JSONResponse:
    """Run a job again, now: one that failed or was cancelled with all its tries, a pending one before its time."""
    return await job_answer(upkeep.retry(stores.jobs, job_id))


@router.delete("/{job_id}")
async def cancel_job(job_id: int, stores: HeldStores) -> JSONResponse:
    """Cancel a job that has not started, or waits for its next try. It stays to be seen, as `cancelled`."""
    return await job_answer(upkeep.cancel(stores.jobs, job_id))


@router.patch("/{job_id}")
async def change_job(
    job_id: int, run_after: Annotated[datetime, Depends(asked_time)], stores: HeldStores
) -> JSONResponse:
    """Give a job that waits another `run_after`."""
    return await job_answer(upkeep.reschedule(stores.jobs, job_id, run_after))


async def job_answer(asking: Awaitable[StoredJob]) -> JSONResponse:
    """200 with the job as it is then.

    Raises:
        Problem: 404 there is none, 409 it is in a state in which that cannot be done.
    """
    try:
        return JSONResponse(upkeep.shown(await asking))
    except NoSuchJob as error:
        raise Problem(404, "Not Found", str(error)) from None
    except NotAsItIs as error:
        raise Problem(409, "Conflict", str(error)) from None
