"""Oban for Python: limit 50, which measured best. It has no mode that ends by itself: started, waited for, stopped."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from oban import Oban, job
from oban.schema import install

from bench.queues import counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@job()
async def noop(n: int) -> None:  # noqa: ARG001 - a no-op
    """Nothing."""
    counter.count()


async def prepare(url: str) -> None:
    """Its schema."""
    async with opened(url) as pool:
        await install(pool)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Any]:
    """Its own pool."""
    pool = await Oban.create_pool(url)
    try:
        yield pool
    finally:
        await pool.close()


async def put(app: Any, count: int) -> None:
    """Its bulk call."""
    await Oban(pool=app).enqueue_many(*[noop.new(n) for n in range(count)])


async def drain(app: Any, count: int) -> None:
    """Started, and stopped once they have run."""
    async with Oban(pool=app, queues={"default": 50}):
        await counter.reach(count)
