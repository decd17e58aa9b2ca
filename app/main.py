"""Puts the service together: settings, database, handlers, doors."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app import handlers, stores
from app.context import Service
from app.domain.errors import ConfigError
from app.stores.database import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from fastapi import FastAPI

    from app.handlers import Runnable
    from app.settings import Settings
    from app.stores.auto_migration import AutoMigration
    from app.stores.database import Database

log = logging.getLogger(__name__)

FIRST = ("/api/cron/", "/readyz", "/api/health")
"""Where the paths begin at which those knock that wake the host: their doors are there with the start."""


def build(settings: Settings) -> Service:
    """What lives as long as the process. Opens no connection.

    Raises:
        ConfigError: what in the database's URL or in the user's handlers cannot be used, all of it.
    """
    problems: list[str] = []
    users: dict[str, Runnable] = {}
    database: Database | None = None
    migration: AutoMigration | None = None
    try:
        users = handlers.known_to(settings)
        if settings.schedules:
            from app import scheduled  # noqa: PLC0415 - here and below: a start imports what it needs

            problems += scheduled.problems(settings, users, now=datetime.now(UTC))
        if settings.chats:
            from app import chatting  # noqa: PLC0415

            problems += chatting.problems(settings, users)
    except ConfigError as error:
        problems += error.problems
    try:
        database = connect(settings.environment.database_url or "")
        migration = _migration(settings)
    except ConfigError as error:
        problems += error.problems
    if database is None or problems:
        raise ConfigError(problems)
    return Service(settings=settings, stores=stores.over(database, migration=migration), handlers=users)


def _migration(settings: Settings) -> AutoMigration | None:
    environment = settings.environment
    if not environment.auto_migrate:
        return None
    from app.stores.auto_migration import auto_migration  # noqa: PLC0415

    return auto_migration(environment.database_url or "", environment.migration_database_url)


def tell_start(service: Service, host: str, port: int) -> None:
    """The one line that a start leaves in the log: what this process has read, and where it listens."""
    settings = service.settings
    read = {
        "host": host,
        "port": port,
        "sources": len(settings.sources),
        "channels": len(settings.channels),
        "handlers": sorted(service.handlers),
    }
    log.info("serving", extra=read)


class Doors:
    """Every door of a service, as an ASGI application; the first who knocks at one that is not `FIRST` waits for it.

    A process that is woken by its scheduler imports a third less of this service, and often sleeps again before
    anybody else has come.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._first = _application(service, everything=False)
        self._others: FastAPI | None = None
        self._opening = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        app = self._first if scope["path"].startswith(FIRST) else await self._opened()
        await app(scope, receive, send)

    def stop(self) -> None:
        """The process was told to stop."""
        self._service.stopping.request()

    def running(self) -> AbstractAsyncContextManager[None]:
        """From before the first request to after the last."""
        return _running(self._service)

    async def _opened(self) -> FastAPI:
        async with self._opening:
            if self._others is None:
                self._others = await asyncio.to_thread(create_app, self._service)
            return self._others


def create_app(service: Service) -> FastAPI:
    """All doors of a service."""
    return _application(service, everything=True)


def _application(service: Service, *, everything: bool) -> FastAPI:
    from fastapi import FastAPI  # noqa: PLC0415 - a command that serves nobody needs none of it

    from app.api import cron, errors, health  # noqa: PLC0415

    app = FastAPI(title="Wakebell", openapi_url=None, redirect_slashes=False, lifespan=lambda _: _running(service))
    app.state.service = service
    errors.install(app)
    app.include_router(health.router)
    app.include_router(cron.router)
    if everything:
        _open_others(app)
    return app


def _open_others(app: FastAPI) -> None:
    from app import pages  # noqa: PLC0415
    from app.api import (  # noqa: PLC0415
        alerts,
        bookings,
        conversations,
        description,
        hooks,
        jobs,
        messages,
        metrics,
        queues,
        schedules,
        sources,
        webhooks,
    )

    for door in (
        alerts,
        bookings,
        conversations,
        description,
        hooks,
        jobs,
        messages,
        metrics,
        queues,
        schedules,
        sources,
        webhooks,
    ):
        app.include_router(door.router)
    pages.install(app)


@asynccontextmanager
async def _running(service: Service) -> AsyncIterator[None]:
    async with service.stores.served():
        yield
    await service.settle()
    await service.stores.database.dispose()
