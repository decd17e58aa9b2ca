"""PgQueuer: drain mode, batches of 500, over asyncpg."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.queues import counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pgqueuer.models import Job


async def prepare(url: str) -> None:
    """Its schema."""
    async with opened(url) as app:
        await app.queries.install()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[QueueManager]:
    """One connection."""
    connection = await asyncpg.connect(url)
    driver = AsyncpgDriver(connection)
    app = QueueManager(Queries(driver))

    @app.entrypoint("noop")
    async def noop(job: Job) -> None:
        json.loads(job.payload or b"{}")
        counter.count()

    try:
        yield app
    finally:
        await connection.close()


async def put(app: QueueManager, count: int) -> None:
    """One statement, as documented."""
    payloads: list[bytes | None] = [json.dumps({"n": n}).encode() for n in range(count)]
    await app.queries.enqueue(["noop"] * count, payloads, [0] * count)


async def drain(app: QueueManager, count: int) -> None:  # noqa: ARG001 - it ends when nothing is due
    """Its drain mode."""
    await app.run(batch_size=500, mode=QueueExecutionMode.drain)
