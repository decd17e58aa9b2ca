"""The door through which programs put in jobs and look at them; what they do with them is in `jobs_changes.py`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse

from app import asked, upkeep
from app.api import jobs_changes
from app.api.auth import api_token
from app.api.bodies import json_object, refused
from app.api.cursors import PageQuery, answer
from app.api.deps import HeldStores, the_service
from app.api.errors import Problem
from app.api.jobs_changes import job_answer
from app.asked import Refused, Text
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.domain.jobs import OWN_PREFIX, NewJob

if TYPE_CHECKING:
    from collections.abc import Mapping

router = APIRouter(prefix="/api/jobs", dependencies=[Depends(api_token)])

MOST_BATCH = asked.MOST_IN_ALL

AT_ONCE = 50
"""Jobs of a batch that are checked before others have their turn."""

MOST_BATCH_BYTES = 4 * 1024 * 1024


class JobsQuery(PageQuery):
    """The filters of the listing."""

    status: Literal["pending", "running", "done", "failed", "cancelled"] | None = None
    type: Text | None = None
    queue: Text | None = None
    own: bool = False


async def asked_job(request: Request, service: Annotated[Service, Depends(the_service)]) -> tuple[NewJob, bool]:
    """What the body asks for, checked as far as that goes without the database, and whether it is to replace."""
    body = await json_object(request)
    if body.get("unique_key") is None:
        body["unique_key"] = _idempotency_key(request)
    try:
        return asked.read_one(body, service.handlers)
    except Refused as refusal:
        raise refused(refusal) from None


async def asked_batch(request: Request, service: Annotated[Service, Depends(the_service)]) -> list[NewJob]:
    """The jobs that the body asks for, checked as far as that goes without the database."""
    if "idempotency-key" in request.headers:
        detail = "Idempotency-Key: a batch takes none; give its jobs a unique_key each"
        raise Problem(422, "Unprocessable Content", detail)
    body = await json_object(request, most_bytes=MOST_BATCH_BYTES)
    new: list[NewJob] = []
    try:
        for place, given in enumerate(_listed(body)):
            new.append(asked.read(given, service.handlers, within=f"jobs.{place}"))
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)
    except Refused as refusal:
        raise refused(refusal) from None
    return new


@router.post("")
async def add_job(asking: Annotated[tuple[NewJob, bool], Depends(asked_job)], stores: HeldStores) -> JSONResponse:
    """Put in a job: 201 with it, or 200 with the one of its type and `unique_key` that has not ended yet.

    With `replace` that one, while it is pending, gets this payload, and this `run_after` where one is given;
    `replaced` in the answer tells whether it has. The header `Idempotency-Key` is a `unique_key` by another name.

    Refused before anything is stored: a type that this process has no handler for, a payload that does not fit its
    handler's `Payload`, the service's own types and queues; in `then` as well.
    """
    job, replace = asking
    try:
        added = await asked.put_in(stores.jobs, job, replace=replace)
    except Refused as refusal:
        raise refused(refusal) from None
    stored = await stores.jobs.get(added.id)
    if stored is None:
        raise Problem(409, "Conflict", f"job {added.id} was put in and has been deleted since")
    more: Mapping[str, Any] = {"replaced": added.replaced} if replace else {}
    headers = {"Location": f"{router.prefix}/{stored.id}"}
    return JSONResponse({**upkeep.shown(stored), **more}, 201 if added.created else 200, headers)


@router.post("/batch")
async def add_jobs(new: Annotated[list[NewJob], Depends(asked_batch)], stores: HeldStores) -> JSONResponse:
    """Put in up to 1,000 jobs, those that follow counted too, all or none: 201 with the id of each in their order.

    `created` is false where one of its type and `unique_key` was there already.
    """
    try:
        added = await asked.put_in_all(stores.jobs, new)
    except Refused as refusal:
        raise refused(refusal) from None
    return JSONResponse([{"id": one.id, "created": one.created} for one in added], 201)


@router.get("")
async def list_jobs(
    query: Annotated[JobsQuery, Query()],
    stores: HeldStores,
) -> JSONResponse:
    """A page of jobs, the newest first.

    The service's own work (fetching, sending, pruning) is left out, unless `queue` or `type` names some of it or
    `own=true` asks for it too. A page of long payloads ends before its `limit`; `next_cursor` alone tells whether more
    follow.
    """
    own = query.own or (query.queue or "").startswith(OWN_PREFIX) or query.type in asked.own_types()
    page = await stores.listings.list_jobs(
        limit=query.limit,
        before=query.before("jobs"),
        status=query.status,
        type=query.type,
        queue=query.queue,
        own=own,
    )
    return answer("jobs", page, upkeep.shown)


@router.get("/{job_id}")
async def get_job(job_id: int, stores: HeldStores) -> JSONResponse:
    """One job as it stands, own ones too, with its failures and what follows on it."""
    return await job_answer(upkeep.get(stores.jobs, job_id))


def _idempotency_key(request: Request) -> str | None:
    """What the header says, without the quotation marks that its draft standard has around it."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    key = given[0][1:-1] if given[0][:1] == given[0][-1:] == '"' else given[0]
    if len(given) > 1 or not key or not key.isascii() or not key.isprintable():
        raise Problem(422, "Unprocessable Content", "Idempotency-Key: must be one text of visible ASCII characters")
    return key


def _listed(body: Mapping[str, Any]) -> list[Any]:
    others = sorted(name for name in body if name != "jobs")
    jobs = body.get("jobs")
    if others:
        raise Refused(f"{ascii(others[0])[1:-1]}: there is no such field; remove it")
    if not isinstance(jobs, list) or not 1 <= len(jobs) <= MOST_BATCH:
        raise Refused(f"jobs: must be a list of 1 to {MOST_BATCH} jobs")
    asked.refuse_too_many(jobs)
    return jobs


router.include_router(jobs_changes.router)
