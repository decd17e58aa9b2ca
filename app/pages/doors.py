"""Who is let in to which page, and what leaves: a page, a way to another one, or a sentence that says why not."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from app.api.deps import the_stores
from app.api.errors import RETRY_SECONDS, Problem
from app.domain.errors import DatabaseUnavailable, SchemaOutdated, ServiceError
from app.pages import (
    asking,
    bookings,
    jobs,
    login,
    messages,
    now,
    queues,
    rendering,
    schedules,
    session,
    sources,
    words,
)
from app.pages.asking import Asked, Away, Shown, Trouble

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from app.context import Service
    from app.pages.session import Session

    View = Callable[[Asked], Awaitable[Shown | Away]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Door:
    """What makes a page, or a change."""

    view: View
    asks_database: bool = True


READS: dict[str, Door] = {
    "/": Door(now.show),
    "/sources": Door(sources.show),
    "/messages": Door(messages.show_all),
    "/messages/{id}": Door(messages.show_one),
    "/jobs": Door(jobs.show_all),
    "/jobs/{id}": Door(jobs.show_one),
    "/queues": Door(queues.show),
    "/schedules": Door(schedules.show),
    "/bookings": Door(bookings.show),
}
CHANGES: dict[str, Door] = {
    "/alerts/{id}/acknowledge": Door(now.acknowledge),
    "/alerts/{id}/mute": Door(now.mute),
    "/sources/preview": Door(sources.preview_one, asks_database=False),
    "/jobs/{id}/retry": Door(jobs.retry),
    "/jobs/{id}/cancel": Door(jobs.cancel),
    "/queues/pause": Door(queues.pause),
    "/queues/resume": Door(queues.resume),
}


async def answer(request: Request, path: str) -> Response:
    """The answer of every page. What cannot be done is a page too, not a problem document: it is people who read it."""
    at = datetime.now(UTC)
    try:
        return _file(request) if path.startswith("/static/") else await _answered(request, path, at)
    except (Trouble, Problem, ServiceError) as error:
        return _refused(request, at, _trouble(error))


async def _answered(request: Request, path: str, at: datetime) -> Response:
    service: Service = request.app.state.service
    token = service.settings.environment.api_token
    if not token:
        return rendering.page("closed.html", service.settings, at, status=503)
    if path == "/login":
        return await login.enter(request, service, token, at)
    known = _session(request, at)
    if known is None:
        return login.stranger(request, service, at)
    return await _known(request, path, service, known, at)


async def _known(request: Request, path: str, service: Service, known: Session, at: datetime) -> Response:
    form: dict[bytes, bytes] = {}
    if request.method == "POST":
        form = await asking.form_of(request)
        elsewhere = asking.from_elsewhere(request, service.settings.environment.public_url)
        if elsewhere or not known.sent(form.get(b"csrf", b"").decode("ascii", "replace")):
            raise Trouble(
                403, "This form is none of this login's, so nothing was changed. Go back, reload and try again."
            )
    if path == "/logout":
        return login.leave(request)
    door = (CHANGES if request.method == "POST" else READS)[path]
    asked = Asked(
        service=service,
        session=known,
        path=request.path_params,
        query=dict(request.query_params),
        form=asking.as_text(form),
        now=at,
    )
    if door.asks_database:
        async with _held(request):
            outcome = await door.view(asked)
    else:
        outcome = await door.view(asked)
    return _made(outcome, asked)


def _made(outcome: Shown | Away, asked: Asked) -> Response:
    if isinstance(outcome, Away):
        told = f"?{urlencode({'done': outcome.told})}" if outcome.told else ""
        return RedirectResponse(f"{outcome.to}{told}", 303, headers=rendering.HEADERS)
    return rendering.page(
        outcome.template,
        asked.settings,
        asked.now,
        status=outcome.status,
        csrf=asked.session.form_token,
        done=words.DONE.get(asked.query.get("done", "")),
        **outcome.values,
    )


def _trouble(error: Trouble | Problem | ServiceError) -> Trouble:
    """What a person is told of it."""
    match error:
        case Trouble():
            return error
        case Problem():
            return Trouble(error.status, f"{error.detail}.", headers=error.headers)
        case DatabaseUnavailable():
            log.error("database unavailable", extra={"reason": str(error)})
            told = "The database cannot be reached now. Nothing is lost: try again in a moment."
            return Trouble(503, told, headers={"Retry-After": str(RETRY_SECONDS)})
        case SchemaOutdated():
            log.error("database schema outdated", extra={"reason": str(error)})
            return Trouble(503, f"{error}.", headers={"Retry-After": "60"})
        case _:
            return Trouble(422, f"{error}.")


def _refused(request: Request, at: datetime, trouble: Trouble) -> Response:
    known = _session(request, at)
    settings = request.app.state.service.settings
    told = str(trouble)
    values = {"csrf": known.form_token if known else None, "told": told[:1].upper() + told[1:]}
    made = rendering.page("trouble.html", settings, at, status=trouble.status, **values)
    made.headers.update(trouble.headers)
    return made


def _session(request: Request, at: datetime) -> Session | None:
    token = request.app.state.service.settings.environment.api_token
    cookie = request.cookies.get(login.cookie_name(request))
    return session.read(token, cookie, now=at) if token else None


def _file(request: Request) -> Response:
    found = rendering.file(request.path_params["hash"], request.path_params["name"])
    if found is None:
        raise Trouble(404, "There is no such file.")
    return found


@asynccontextmanager
async def _held(request: Request) -> AsyncIterator[None]:
    """The database, its schema looked at; let go before the page leaves."""
    async with asynccontextmanager(the_stores)(request):
        yield
