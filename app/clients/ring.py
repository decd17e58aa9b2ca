"""Rings this service's own address, so that the host's balancer wakes a replica for a drain."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx

from app.clients.http import host_of
from app.domain.errors import PermanentFailure, TemporaryFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import timedelta

PATH = "/api/cron/drain"

DEPTH = "Wakebell-Depth"
"""The header that says how many rings lie between a drain and whom nobody of us has rung."""

DEEPEST = 1
"""A drain rings nobody: only ticks and doors do, and this is what they say. More is a circle, and refused."""

ANSWER_BYTES = 65_536
"""A drain answers with less than 8 KiB; more comes from somebody else."""

COUNTERS = ("claimed", "done", "retrying", "snoozed", "failed", "remaining")


async def ring(
    http: httpx.AsyncClient,
    public_url: str,
    secret: bytes,
    *,
    budget: timedelta,
    max_jobs: int,
    patience: timedelta,
    queue: str | None = None,
    sent: asyncio.Event | None = None,
) -> Mapping[str, int]:
    """Have one drain run, by whoever answers at the address, and wait for it. Returns what it has counted.

    Args:
        http: a client of its own, since an open request holds a connection for as long as the drain takes.
        public_url: the service's own, without a slash at its end.
        secret: `CRON_SECRET`; it goes to this address alone, redirects are not followed.
        budget: of the drain, in which it starts jobs.
        max_jobs: of users' types, at most so many.
        patience: when to give up; the drain may go on by itself.
        queue: this one alone; None: all of users'.
        sent: is set once the request has left, so that it is in flight.

    Raises:
        TemporaryFailure: nobody was reached, or the drain could not be run.
        PermanentFailure: what answers there is not this service, or has another secret.
    """
    parameters = {"budget": f"{budget.total_seconds():.1f}", "max_jobs": str(max_jobs)}
    request = http.build_request(
        "POST",
        f"{public_url}{PATH}",
        params=parameters if queue is None else {**parameters, "queue": queue},
        headers=[(b"Authorization", b"Bearer " + secret), (DEPTH.encode(), str(DEEPEST).encode())],
        timeout=None,  # the whole has one
        extensions={} if sent is None else {"trace": _tracing(sent)},
    )
    host = host_of(public_url)
    try:
        async with asyncio.timeout(patience.total_seconds()):
            return await _counted(http, request)
    except TimeoutError:
        raise TemporaryFailure(f"{host} did not answer in time") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:  # the last: a name no resolver takes
        raise TemporaryFailure(f"{host} could not be reached ({type(error).__name__})") from None


def _tracing(sent: asyncio.Event) -> Callable[[str, Any], Awaitable[None]]:
    """As httpcore tells how far a request is (its documentation, Request extensions: trace)."""

    async def trace(event: str, _: Any) -> None:
        if event.endswith(".send_request_body.complete"):
            sent.set()

    return trace


async def _counted(http: httpx.AsyncClient, request: httpx.Request) -> Mapping[str, int]:
    host = request.url.host
    answer = await http.send(request, stream=True, auth=None, follow_redirects=False)
    try:
        if answer.is_redirect:
            raise PermanentFailure(f"{host} answered {answer.status_code}: write into PUBLIC_URL where it leads to")
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            raise PermanentFailure(f"{host} answered 401: it has another CRON_SECRET, or asks for a password")
        if answer.status_code != httpx.codes.OK:
            raise TemporaryFailure(f"{host} answered {answer.status_code}")
        body = b""
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > ANSWER_BYTES:
                break
    finally:
        await answer.aclose()
    try:
        jobs = json.loads(body)["jobs"]
        return {name: int(jobs[name]) for name in COUNTERS}
    except (ValueError, KeyError, TypeError, RecursionError):
        told = f"{host} did not answer as this service does; PUBLIC_URL must be its own address"
        raise PermanentFailure(told) from None
