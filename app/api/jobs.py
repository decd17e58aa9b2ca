"""The door through which programs put in jobs and look at them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from app import plugins
from app.api.auth import api_token
from app.api.bodies import json_object, refusal, storable
from app.api.cursors import MOST_ID, PageQuery, answer, told
from app.api.deps import HeldStores, the_service
from app.api.errors import Problem
from app.context import Service  # noqa: TC001 - FastAPI reads the annotations
from app.domain.jobs import OWN_PREFIX
from app.stores.payloads import payload_text
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.stores.jobs import Enqueued

router = APIRouter(prefix="/api/jobs", dependencies=[Depends(api_token)])

PAYLOAD_BYTES = 256 * 1024
MOST_TYPES_NAMED = 50
EXAMPLE = "2026-11-30T09:00:00Z"

Text = Annotated[str, AfterValidator(storable)]


def _instant(value: Any) -> datetime:
    """An instant as ISO 8601 has it, its zone said: what a program leaves out would be guessed."""
    try:
        at = datetime.fromisoformat(value)
        at = at if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"must be an instant in ISO 8601, such as {EXAMPLE}") from None
    if at.tzinfo is None:
        raise ValueError(f"has no time zone; write {EXAMPLE}, or an offset such as +07:00 in place of the Z")
    return at


class Asked(BaseModel):
    """The body of a new job. A key that is null counts as left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Text
    payload: dict  # type: ignore[type-arg] # with types for its keys, an error could name one that cannot be told
    run_after: Annotated[datetime, BeforeValidator(_instant)] | None = None
    queue: Text = "default"
    priority: Annotated[int, Field(ge=0, le=100)] = 0
    unique_key: Text | None = None
    serial_key: Text | None = None
    max_attempts: Annotated[int, Field(ge=1, le=1000)] = 4


class JobsQuery(PageQuery):
    """The filters of the listing."""

    status: Literal["pending", "running", "done", "failed", "cancelled"] | None = None
    type: Text | None = None
    queue: Text | None = None
    own: bool = False


async def asked_job(request: Request, service: Annotated[Service, Depends(the_service)]) -> Asked:
    """What the body asks for, checked as far as that goes without the database."""
    body = await json_object(request)
    try:
        asked = Asked.model_validate({name: value for name, value in body.items() if value is not None})
    except ValidationError as error:
        raise refusal(error) from None
    return checked(asked, service.handlers)


@router.post("")
async def add_job(asked: Annotated[Asked, Depends(asked_job)], stores: HeldStores) -> JSONResponse:
    """Put in a job: 201 with it, or 200 with the one of its type and `unique_key` that has not ended yet.

    Refused before anything is stored: a type that this process has no handler for, a payload that does not fit its
    handler's `Payload`, the service's own types and queues.
    """
    try:
        added: Enqueued = await stores.jobs.enqueue(**dict(asked))
    except ValueError as error:
        raise _refused_by_database(str(error)) from None
    job = await stores.jobs.get(added.id)
    if job is None:
        raise Problem(409, "Conflict", f"job {added.id} was put in and has been deleted since")
    headers = {"Location": f"{router.prefix}/{job.id}"}
    return JSONResponse(told(job), 201 if added.created else 200, headers)


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
    own = query.own or (query.queue or "").startswith(OWN_PREFIX) or query.type in _own_types()
    page = await stores.listings.list_jobs(
        limit=query.limit,
        before=query.before("jobs"),
        status=query.status,
        type=query.type,
        queue=query.queue,
        own=own,
    )
    return answer("jobs", page)


@router.get("/{job_id}")
async def get_job(job_id: int, stores: HeldStores) -> JSONResponse:
    """One job as it stands, own ones too."""
    job = await stores.jobs.get(job_id) if 0 < job_id <= MOST_ID else None
    if job is None:
        raise Problem(404, "Not Found", "there is no such job; one that ended is deleted after [retention] jobs_days")
    return JSONResponse(told(job))


def checked(asked: Asked, handlers: Mapping[str, Any]) -> Asked:
    """The same, when this service takes it.

    Raises:
        Problem: 422 that names the field, 413 for a payload that is too long.
    """
    if asked.type not in handlers:
        raise _refused(_no_type(asked.type, handlers))
    if asked.queue.startswith(OWN_PREFIX):
        raise _refused(f'queue: names that begin with "{OWN_PREFIX}" are the service\'s own; choose another')
    try:
        payload_text(asked.payload)
    except ValueError as error:
        raise _refused(str(error)) from None
    if len(json.dumps(asked.payload, ensure_ascii=False).encode()) > PAYLOAD_BYTES:
        raise _too_long()
    try:
        handlers[asked.type].module.Payload.model_validate(asked.payload)
    except ValidationError as error:
        raise refusal(error, within="payload", hidden=asked.payload) from None
    return asked


def _no_type(name: str, handlers: Mapping[str, Any]) -> str:
    shown = clean(name, limit=100)
    if name in _own_types():
        return f'type: "{shown}" is one of the service\'s own, which it queues itself'
    if not handlers:
        return f'type: there is no handler "{shown}", nor any other; add {shown}.py to the folder of handlers'
    names = sorted(handlers)
    more = f" and {len(names) - MOST_TYPES_NAMED} more" if len(names) > MOST_TYPES_NAMED else ""
    return f'type: there is no handler "{shown}"; the types are: {", ".join(names[:MOST_TYPES_NAMED])}{more}'


def _own_types() -> list[str]:
    return plugins.kinds("app.handlers")


def _refused_by_database(told: str) -> Problem:
    return _too_long() if told.startswith("payload must be at most") else _refused(told)


def _refused(detail: str) -> Problem:
    return Problem(422, "Unprocessable Content", detail)


def _too_long() -> Problem:
    detail = "payload: must be at most 256 KiB; keep the rest elsewhere and pass its id"
    return Problem(413, "Content Too Large", detail)
