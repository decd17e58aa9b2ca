"""The status page: what people see of the service in a browser, and what they can do about it there.

    /            how it is now; without a login the form for it
    /sources     /messages     /jobs     /queues     /schedules     /bookings

A start imports this file and nothing else of the folder: templates, and what fills them in, come with the first page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

READ, CHANGE = ("GET", "HEAD"), ("POST",)

PATHS: dict[str, tuple[str, ...]] = {
    "/": READ,
    "/login": CHANGE,
    "/logout": CHANGE,
    "/alerts/{id}/acknowledge": CHANGE,
    "/alerts/{id}/mute": CHANGE,
    "/sources": READ,
    "/sources/preview": CHANGE,
    "/messages": READ,
    "/messages/{id}": READ,
    "/jobs": READ,
    "/jobs/{id}": READ,
    "/jobs/{id}/retry": CHANGE,
    "/jobs/{id}/cancel": CHANGE,
    "/queues": READ,
    "/queues/pause": CHANGE,
    "/queues/resume": CHANGE,
    "/schedules": READ,
    "/bookings": READ,
    "/static/{hash}/{name}": READ,
}


def install(app: FastAPI) -> None:
    """Every page. They are for people, and so are not in the description of the API."""
    for path, methods in PATHS.items():
        app.add_route(path, _opening(path), methods=list(methods), include_in_schema=False)


def _opening(path: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        from app.pages import doors  # noqa: PLC0415 - the template engine costs no start anything

        return await doors.answer(request, path)

    return page
