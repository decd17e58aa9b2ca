"""One visit of a source: whatever its kind sends goes through here, and what came back can be looked at afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import httpx

from app.domain.manners import REDIRECTS, Answer

if TYPE_CHECKING:
    from types import TracebackType

MOVED = 308

MOST_ANSWERS = 50
"""Kept of one visit: a kind that reads many pages is judged by its last one."""


class Visit:
    """A client for one visit, over another one's connections.

    `moved_to`: where requests for `address` go at once, as a browser does that remembers a permanent redirect. The
    kind sees an ordinary redirect, and keeps its credentials to itself where that leads to another host.
    """

    def __init__(self, http: httpx.AsyncClient, *, address: str = "", moved_to: str | None = None) -> None:
        self.answers: list[Answer] = []
        """In the order they came, redirects included."""

        self.reached = False
        """Some answer came from outside."""

        self._moved = {_plain(address): moved_to} if moved_to else {}
        self.http = httpx.AsyncClient(transport=_Recording(self, http), headers=http.headers, timeout=http.timeout)

    async def __aenter__(self) -> Self:
        await self.http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.http.__aexit__(kind, error, traceback)

    def remembered(self, request: httpx.Request) -> httpx.Response | None:
        """The answer to a request that need not be sent."""
        target = self._moved.get(_plain(str(request.url))) if request.method == "GET" else None
        return None if target is None else httpx.Response(MOVED, headers={"location": target}, request=request)

    def note(self, request: httpx.Request, response: httpx.Response) -> None:
        """One more answer."""
        moved = response.status_code in REDIRECTS and request.method == "GET"
        answer = Answer(
            url=_plain(str(request.url)),
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            location=_target(request.url, response.headers.get("location", "")) if moved else None,
        )
        self.answers[MOST_ANSWERS - 1 :] = [answer]


class _Recording(httpx.AsyncBaseTransport):
    def __init__(self, visit: Visit, http: httpx.AsyncClient) -> None:
        self._visit = visit
        self._http = http

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = self._visit.remembered(request)
        if response is None:
            response = await self._http.send(request, stream=True, auth=None, follow_redirects=False)
            self._visit.reached = True
        self._visit.note(request, response)
        return httpx.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=response.stream,
            extensions=response.extensions,
        )


def _plain(url: str) -> str:
    """As it is asked for: without user name, password and fragment."""
    try:
        return str(httpx.URL(url.strip()).copy_with(username=None, password=None, fragment=None))
    except httpx.InvalidURL:
        return url


def _target(url: httpx.URL, location: str) -> str | None:
    try:
        target = url.join(location.strip())
    except (httpx.InvalidURL, ValueError):
        return None
    usable = location.strip() and target.scheme in {"http", "https"} and target.host
    return _plain(str(target)) if usable else None
