"""Hosts that take their time for each answer, and notice when somebody has no manners."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tests.fakes.http_server import HttpServer, Request, send

if TYPE_CHECKING:
    from collections.abc import Mapping

FEED = b'<?xml version="1.0"?><rss version="2.0"><channel><title>Jobs</title></channel></rss>'


@dataclass(slots=True)
class Busy:
    """How many requests there are at once."""

    now: int = 0
    most: int = 0

    def begin(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)

    def end(self) -> None:
        self.now -= 1


@dataclass(slots=True)
class Host(HttpServer):
    """Every path is a feed without items."""

    answer_seconds: float
    everywhere: Busy
    """Of all hosts together."""

    all_at_once: asyncio.Barrier
    """The first answer of each host waits until every host has been asked."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    busy: Busy = field(default_factory=Busy)
    gaps: list[float] = field(default_factory=list)
    """Seconds between the end of an answer and the next request."""

    fetches: Counter[str] = field(default_factory=Counter)
    """By path."""

    _ended: float | None = None

    def __post_init__(self) -> None:
        HttpServer.__init__(self)

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        if self._ended is not None:
            self.gaps.append(time.monotonic() - self._ended)
        first = not self.fetches
        self.fetches[request.path] += 1
        self.busy.begin()
        self.everywhere.begin()
        try:
            if first:
                await self.all_at_once.wait()
            await asyncio.sleep(self.answer_seconds)
        finally:
            self.busy.end()
            self.everywhere.end()
            self._ended = time.monotonic()
        await send(wire, self.status, FEED, headers={"Content-Type": "application/rss+xml", **self.headers})


class Hosts:
    """So many of them, each at an address of its own."""

    def __init__(self, count: int, *, answer_seconds: float) -> None:
        self.everywhere = Busy()
        barrier = asyncio.Barrier(count)
        self.hosts = [
            Host(answer_seconds=answer_seconds, everywhere=self.everywhere, all_at_once=barrier) for _ in range(count)
        ]
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for host in self.hosts:
            await self._open.enter_async_context(host)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def sources(self, each: int, *, every_minutes: float = 30) -> str:
        """So many sources of each host, as the configuration has them."""
        return "".join(
            f'[sources.h{number}_s{path}]\nkind = "feed"\nurl = "{host.url}/{path}"\nevery_minutes = {every_minutes}\n'
            for number, host in enumerate(self.hosts)
            for path in range(each)
        )

    @property
    def fetched(self) -> list[int]:
        """How often each source was fetched that was fetched at all."""
        return [count for host in self.hosts for count in host.fetches.values()]

    @property
    def most_at_one(self) -> int:
        """Requests that one host had at once."""
        return max(host.busy.most for host in self.hosts)

    @property
    def least_gap(self) -> float:
        """Seconds."""
        return min(gap for host in self.hosts for gap in host.gaps)
