"""Procrastinate: one-shot worker, concurrency 10, which measured best; more only adds connections."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from procrastinate import App, PsycopgConnector

from bench.queues import counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def _app(url: str) -> App:
    app = App(connector=PsycopgConnector(conninfo=url))

    @app.task(name="noop")
    async def noop(n: int) -> None:  # noqa: ARG001 - a no-op
        counter.count()

    return app


async def prepare(url: str) -> None:
    """Its schema."""
    async with opened(url) as app:
        await app.schema_manager.apply_schema_async()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[App]:
    """With its own pool."""
    app = _app(url)
    async with app.open_async():
        yield app


async def put(app: App, count: int) -> None:
    """One statement, as documented."""
    await app.tasks["noop"].batch_defer_async(*({"n": n} for n in range(count)))


async def drain(app: App, count: int) -> None:  # noqa: ARG001 - it ends when nothing is due
    """Its one-shot mode."""
    await app.run_worker_async(wait=False, concurrency=10, install_signal_handlers=False, listen_notify=False)
