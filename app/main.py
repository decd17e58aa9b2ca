"""Puts the service together: settings, database, handlers, doors."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fastapi import FastAPI

from app import chatting, handlers, pages, scheduled, stores
from app.api import (
    alerts,
    bookings,
    cron,
    description,
    errors,
    health,
    hooks,
    jobs,
    messages,
    metrics,
    queues,
    schedules,
    sources,
    webhooks,
)
from app.context import Service
from app.domain.errors import ConfigError
from app.stores.database import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.handlers import Runnable
    from app.settings import Settings
    from app.stores.database import Database


log = logging.getLogger(__name__)


def build(settings: Settings) -> Service:
    """What lives as long as the process. Opens no connection.

    Raises:
        ConfigError: what in the database's URL or in the user's handlers cannot be used, all of it.
    """
    problems: list[str] = []
    users: dict[str, Runnable] = {}
    database: Database | None = None
    try:
        users = handlers.known_to(settings)
        problems += scheduled.problems(settings, users, now=datetime.now(UTC))
        problems += chatting.problems(settings, users)
    except ConfigError as error:
        problems += error.problems
    try:
        database = connect(settings.environment.database_url or "")
    except ConfigError as error:
        problems += error.problems
    if database is None or problems:
        raise ConfigError(problems)
    return Service(settings=settings, stores=stores.over(database), handlers=users)


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


def create_app(service: Service) -> FastAPI:
    """The doors of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.settle()
        await service.stores.database.dispose()

    app = FastAPI(title="Wakebell", openapi_url=None, redirect_slashes=False, lifespan=lifespan)
    app.state.service = service
    errors.install(app)
    app.include_router(health.router)
    app.include_router(cron.router)
    app.include_router(alerts.router)
    app.include_router(bookings.router)
    app.include_router(description.router)
    app.include_router(hooks.router)
    app.include_router(jobs.router)
    app.include_router(messages.router)
    app.include_router(metrics.router)
    app.include_router(queues.router)
    app.include_router(schedules.router)
    app.include_router(sources.router)
    app.include_router(webhooks.router)
    pages.install(app)
    return app
