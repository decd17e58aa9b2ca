"""Tells a dead-man's switch of each tick: it is the only thing that notices that nobody rings."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from typing import TYPE_CHECKING

import httpx

from app.clients.http import host_of
from app.domain.heartbeats import beat
from app.domain.limits import PINGING

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from random import Random

    from app.domain.heartbeats import Beat, Moment

log = logging.getLogger(__name__)

START_SHARE = 0.5
"""Of the time for both: what a start may take, which is told beside the work."""


class Heartbeat:
    """One tick's pings: its start beside the work, its end after it. Both take two seconds at most, none raises."""

    def __init__(self, http: httpx.AsyncClient, url: str | None, *, random: Random) -> None:
        self._http = http
        self._url = url
        self._run = str(uuid.UUID(int=random.getrandbits(128), version=4))
        self._begun = time.monotonic()
        self._starting: asyncio.Task[float] | None = None

    def start(self) -> None:
        """Say that the tick has begun. Only `end` waits for it: a switch must not see them the other way round."""
        told = self._beat("start")
        if told is not None:
            limit = PINGING.total_seconds() * START_SHARE
            self._starting = asyncio.create_task(_send(self._http, told, limit=limit), name="heartbeat")

    async def end(self, *, failed: bool, words: str) -> None:
        """Say how it went, and in public words what went wrong."""
        took_ms = round((time.monotonic() - self._begun) * 1000)
        left = PINGING.total_seconds()
        if self._starting is not None:
            left -= await self._starting  # whoever is cancelled here cancels it too
        told = self._beat("failure" if failed else "success", words=words, took_ms=took_ms)
        if told is not None:
            await _send(self._http, told, limit=left)

    def _beat(self, moment: Moment, *, words: str = "", took_ms: int = 0) -> Beat | None:
        if self._url is None:
            return None
        try:
            return beat(self._url, moment, run=self._run, words=words, took_ms=took_ms)
        except ValueError:  # an address that is none
            log.warning("heartbeat not taken", extra={"host": host_of(self._url), "reason": "its address is none"})
            return None


async def tell_failure(url: str | None, words: str, *, random: Random) -> None:
    """Say that there is no tick at all, and why: the service does not start, or has no database."""
    if url is not None:
        async with httpx.AsyncClient() as http:
            await Heartbeat(http, url, random=random).end(failed=True, words=words)


async def _send(http: httpx.AsyncClient, told: Beat, *, limit: float) -> float:
    """Takes so many seconds at most, and returns how many of them it took."""
    begun = time.monotonic()
    reason: str | None = "it did not answer in time"
    try:
        async with asyncio.timeout(limit), _asked(http, told) as response:
            reason = None if response.is_success else f"it answered {response.status_code}"
    except TimeoutError:
        pass
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:  # the last: a name no resolver takes
        reason = type(error).__name__
    if reason is not None:
        log.warning("heartbeat not taken", extra={"host": host_of(told.url), "reason": reason})
    return min(time.monotonic() - begun, limit)  # a busy process is no reason to say nothing at the end


def _asked(http: httpx.AsyncClient, told: Beat) -> AbstractAsyncContextManager[httpx.Response]:
    if told.body is None:
        return http.stream("GET", told.url, follow_redirects=False)
    content = told.body.encode("utf-8", "replace")
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return http.stream("POST", told.url, content=content, headers=headers, follow_redirects=False)
