"""Errors as `application/problem+json` (RFC 9457): what happened and what to change, never a traceback or a secret."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from app.domain.errors import DatabaseUnavailable, SchemaOutdated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request

log = logging.getLogger(__name__)

RETRY_SECONDS = 10
"""How long a caller is asked to wait for the database: one that sleeps is up by then."""


UNREACHED = "the database cannot be reached now; nothing is lost, ring again"

TOLD = ("/api/hooks/", "/api/webhooks/")
"""Where others tell us of something once, and repeat it where they are told to."""

UNKEPT = "the database cannot be reached now; this has not been kept, send it again"


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, title: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = headers


class ProblemResponse(JSONResponse):
    """A problem document."""

    media_type = "application/problem+json"


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> ProblemResponse:
    """The document; `more` are further members of it."""
    return ProblemResponse({"title": title, "status": status, "detail": detail, **more}, status, headers)


def install(app: FastAPI) -> None:
    """Every error of the application leaves as a problem document."""

    @app.exception_handler(Problem)
    async def on_problem(_: Request, error: Problem) -> ProblemResponse:
        return problem(error.status, error.title, error.detail, headers=error.headers)

    @app.exception_handler(HTTPException)
    async def on_http(_: Request, error: HTTPException) -> ProblemResponse:
        return problem(
            error.status_code, HTTPStatus(error.status_code).phrase, str(error.detail), headers=error.headers
        )

    @app.exception_handler(RequestValidationError)
    async def on_validation(_: Request, error: RequestValidationError) -> ProblemResponse:
        errors = [{"field": ".".join(map(str, e["loc"])), "message": e["msg"]} for e in error.errors()]
        detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors[:5])
        return problem(422, "Unprocessable Content", detail, errors=errors[:20])

    @app.exception_handler(DatabaseUnavailable)
    async def on_database(request: Request, error: DatabaseUnavailable) -> ProblemResponse:
        log.error("database unavailable", extra={"reason": str(error)})
        return problem(
            503,
            "Service Unavailable",
            UNKEPT if request.url.path.startswith(TOLD) else UNREACHED,
            headers={"Retry-After": str(RETRY_SECONDS)},
        )

    told: set[str] = set()

    @app.exception_handler(SchemaOutdated)
    async def on_schema(_: Request, error: SchemaOutdated) -> ProblemResponse:
        if str(error) not in told:  # it stays so until a person does something: once is enough
            told.add(str(error))
            log.error("database schema outdated", extra={"reason": str(error)})
        return problem(503, "Service Unavailable", str(error), headers={"Retry-After": "60"})

    @app.exception_handler(Exception)
    async def on_bug(_: Request, error: Exception) -> ProblemResponse:
        log.error("request crashed", exc_info=error)
        return problem(500, "Internal Server Error", "a bug; the log has its traceback")
