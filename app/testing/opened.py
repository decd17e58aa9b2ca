"""A database and a queue for the length of a test."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import tempfile
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app import handlers, settings, stores
from app.context import Service
from app.dev import scratch
from app.domain.errors import ConfigError, ServiceError
from app.stores import testing as databases
from app.stores.database import connect
from app.stores.migrations import migrate
from app.testing.bench import BUDGET, Queue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from app.handlers import Runnable
    from app.settings import Settings

HANDLERS = "handlers"


class _NoJitter(random.Random):
    """Chance that leaves every delay as it is: a first retry waits a minute."""

    def random(self) -> float:
        return 0.5


@asynccontextmanager
async def database(server: str | None = None) -> AsyncIterator[str]:
    """The URL of a new database with Wakebell's schema, dropped at the end.

    `server` is the URL of a database on a server of yours, whose user may make others. Without it, the embedded
    PostgreSQL is started once a process, in a temporary folder, and stopped when the process ends.

    Raises:
        ServiceError: what stands in the way, in one sentence.
    """
    if server is not None:
        async with databases.new_database(server) as url:
            await asyncio.to_thread(_migrated, url)
            yield url
    else:
        embedded = await asyncio.to_thread(scratch.server)
        template = await asyncio.to_thread(_template, embedded)
        async with databases.new_database(embedded, template=template) as url:
            yield url


@asynccontextmanager
async def queue(
    folder: str | Path | None = None,
    *,
    database_url: str | None = None,
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    clear: bool = False,
) -> AsyncIterator[Queue]:
    """An empty queue, and the job types of a folder.

    Args:
        folder: of the handlers; default: the configuration's, or `handlers` in the working directory.
        database_url: of a database for tests alone. It is migrated, and Wakebell's jobs and settings of queues are
            deleted from it at the end. Default: a new one, as `database` makes it.
        config: a wakebell.toml, for `ctx.settings`. Default: everything as by default.
        environ: what `"env:NAME"` means in it. Nothing is read from the environment of the process.
        clear: what is in the database already is deleted too, in place of being refused.

    Raises:
        ConfigError: what in the folder or the configuration cannot be used, all of it.
        ServiceError: the database cannot be used, or is in use already.
    """
    async with AsyncExitStack() as stack:
        url = database_url if database_url is not None else await stack.enter_async_context(database())
        found = _settings(url, folder, config, environ or {})
        types = _types(found)
        if database_url is not None:
            await asyncio.to_thread(_migrated, url)
        opened = connect(url)
        stack.push_async_callback(opened.dispose)
        bench = databases.Bench(opened)
        if clear:
            await bench.clear()
        _, rows = await bench.look()
        if rows:
            raise ServiceError(
                f"the database {opened.address.shown} has jobs or settings of queues in it already: "
                "name one for tests alone, or pass clear=True to delete them"
            )
        stack.push_async_callback(bench.clear)
        service = Service(settings=found, stores=stores.over(opened), handlers=types, random=_NoJitter())
        yield Queue(url, service, bench)


def _settings(url: str, folder: str | Path | None, config: str | Path | None, environ: Mapping[str, str]) -> Settings:
    """What the service would be told; without a configuration only where the handlers are."""
    with tempfile.TemporaryDirectory() as empty:
        path = Path(config) if config is not None else Path(empty) / "wakebell.toml"
        if config is None:
            told = json.dumps(str(Path(folder or HANDLERS).absolute()), ensure_ascii=False)
            path.write_text(f"[service]\nhandlers = {told}\n", "utf-8")
            _require(Path(folder or HANDLERS))
        loaded = settings.load({**environ, "DATABASE_URL": url, "WAKEBELL_CONFIG": str(path)})
    if folder is None or config is None:
        return loaded
    _require(Path(folder))
    return dataclasses.replace(loaded, service=dataclasses.replace(loaded.service, handlers=Path(folder).absolute()))


def _types(found: Settings) -> Mapping[str, Runnable]:
    return handlers.users(found.service.handlers, budget=BUDGET)


def _require(folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigError([f"there is no folder {folder} of handlers in {Path.cwd()}; name the one that holds them"])


_TEMPLATES: dict[str, str] = {}
_MIGRATING = threading.Lock()
"""Alembic runs one migration in a process at a time; tests may ask for several, in one event loop or in many."""


def _migrated(url: str) -> None:
    with _MIGRATING:
        asyncio.run(migrate(url))


def _template(server: str) -> str:
    """The name of a migrated database on the embedded server, made once a process: a copy of it takes 20 ms."""
    with _MIGRATING:
        if server not in _TEMPLATES:
            name = asyncio.run(databases.new_template(server))
            asyncio.run(migrate(databases.at(server, name)))
            _TEMPLATES[server] = name
        return _TEMPLATES[server]
