"""In and out: API_TOKEN is the password."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from app.api.auth import accepted
from app.pages import rendering, session
from app.pages.asking import Trouble, form_of, from_elsewhere, is_local

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.requests import Request

    from app.context import Service

log = logging.getLogger(__name__)

WRONG_SECONDS = 1.0
"""What a wrong word costs. Nobody guesses a token of 16 characters; somebody who tries is to be seen in the log."""

OWN_PLACE = re.compile(r"/(?:(?:sources|messages|jobs|queues|schedules|bookings)(?:/[0-9]{1,19})?)?")
"""Where a login leads: a page of ours, without its filters."""


def cookie_name(request: Request) -> str:
    """With a prefix by which browsers let no other site, nor plain http, set it."""
    return "wakebell" if is_local(request) else "__Host-wakebell"


async def enter(request: Request, service: Service, token: bytes, now: datetime) -> Response:
    """Log in, or say that the word was wrong."""
    if from_elsewhere(request, service.settings.environment.public_url):
        raise Trouble(403, "This login comes from another site. Open this service's own address and log in there.")
    form = await form_of(request)
    to = _place(form.get(b"to", b"/").decode("ascii", "replace"))
    if not accepted(b"Bearer " + form.get(b"token", b""), [token]):
        log.warning("login failed", extra={"client": request.client.host if request.client else None})
        await asyncio.sleep(WRONG_SECONDS)
        return _form(service, now, to=to, told="That is not the token.", status=401)
    begun = session.begin(token, now=now)
    leads = RedirectResponse(f"{to}?in=1", 303, headers=rendering.HEADERS)
    leads.set_cookie(
        cookie_name(request),
        begun.cookie,
        max_age=int(session.LASTS.total_seconds()),
        path="/",
        secure=not is_local(request),
        httponly=True,
        samesite="strict",
    )
    return leads


def leave(request: Request) -> Response:
    """Log out: the browser forgets its cookie."""
    leads = RedirectResponse("/?done=out", 303, headers=rendering.HEADERS)
    leads.delete_cookie(cookie_name(request), path="/", secure=not is_local(request), httponly=True, samesite="strict")
    return leads


def stranger(request: Request, service: Service, now: datetime) -> Response:
    """Whoever is not logged in is shown the form; a change by them changes nothing."""
    if request.method == "POST":
        raise Trouble(401, "You are not logged in any more, so nothing was changed. Log in and try again.")
    path = request.url.path
    if request.headers.get("sec-fetch-site") == "cross-site":
        # Followed from another site: the browser keeps a strict cookie back, and sends it when our own page asks.
        return rendering.page("again.html", service.settings, now, to=_place(path))
    if path != "/":
        return RedirectResponse(f"/?to={_place(path)}", 303, headers=rendering.HEADERS)
    told = None
    if request.query_params.get("in") == "1":
        told = "Your browser has not kept the login. Over plain http it does so on localhost only: use https."
    elif request.query_params.get("done") == "out":
        told = "You are logged out."
    return _form(service, now, to=_place(request.query_params.get("to", "/")), told=told)


def _form(service: Service, now: datetime, *, to: str, told: str | None, status: int = 200) -> Response:
    return rendering.page("login.html", service.settings, now, status=status, to=to, told=told, csrf=None)


def _place(path: str) -> str:
    return path if OWN_PLACE.fullmatch(path) else "/"
