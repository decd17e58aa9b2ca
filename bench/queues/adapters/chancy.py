"""Chancy: the asyncio executor, concurrency 1,000, which measured best; quiet logs.

It has no mode that ends by itself: started, waited for, stopped.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from chancy import Chancy, Queue, Worker, job

from bench.queues import counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

QUEUE = Queue(name="bench", concurrency=1000, executor=Chancy.Executor.Async, polling_interval=1, eager_polling=True)


@job(queue="bench")
async def noop(*, n: int) -> None:  # noqa: ARG001 - a no-op
    """Nothing."""
    counter.count()


async def prepare(url: str) -> None:
    """Its schema and the queue."""
    async with opened(url) as app:
        await app.migrate()
        await app.declare(QUEUE)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Chancy]:
    """With its own pool."""
    log = logging.getLogger("chancy")
    log.setLevel(logging.WARNING)
    async with Chancy(url, log=log) as app:
        yield app


async def put(app: Chancy, count: int) -> None:
    """Its bulk call."""
    async for _ in app.push_many([noop.job.with_kwargs(n=n) for n in range(count)]):
        pass


async def drain(app: Chancy, count: int) -> None:
    """Started, and stopped once they have run."""
    async with Worker(app, register_signal_handlers=False):
        await counter.reach(count)
