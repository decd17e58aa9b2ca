"""Wakebell as it is used: a handlers folder, and ticks. The whole batch is one tick."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from app import logs, main, settings, tick
from app.domain.jobs import NewJob
from bench.queues import counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.context import Service

CONFIG = Path(__file__).parents[1] / "service" / "wakebell.toml"
BUDGET = timedelta(seconds=290)

PORTION = 1_000
"""What one put-in takes: more would be one long statement that everybody waits behind."""


async def prepare(url: str) -> None:
    """As `wakebell migrate` does it."""
    from app.stores.migrations import migrate  # noqa: PLC0415 - a tick does not import it

    await migrate(url)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Service]:
    """Logs as in production."""
    logs.configure(style="json", level="INFO", stream=sys.stderr)
    yield main.build(settings.load({"DATABASE_URL": url, "WAKEBELL_CONFIG": str(CONFIG)}))


async def put(app: Service, count: int) -> None:
    """Many at once."""
    async with app.stores.database.held():
        for start in range(0, count, PORTION):
            numbers = range(start, min(start + PORTION, count))
            await app.stores.jobs.enqueue_many([NewJob(type="noop", payload={"n": n}) for n in numbers])


async def drain(app: Service, count: int, *, at_most: int | None = None) -> None:
    """One tick that may run all of them; another one only if that tick's time was over."""
    while True:
        before = counter.ran()
        wanted = max(count - before, 1)
        await tick.run(app, budget=BUDGET, max_jobs=min(wanted, at_most or wanted), trigger="bench")
        if counter.ran() in {before, count}:  # nothing came of it, or all did: the caller tells which
            return
