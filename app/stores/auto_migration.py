"""AUTO_MIGRATE: a process that finds the schema missing or behind brings it up, for hosts that run no command before.

Alembic is imported only then, beside the event loop. What has begun goes on when whoever asked first has gone: several
ask at once, and each of them waits for the same one.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import time

from app.domain.errors import ConfigError, DatabaseUnavailable, SchemaOutdated, ServiceError
from app.stores.address import parse

log = logging.getLogger(__name__)

WAIT_SECONDS = 10.0
"""What somebody who asks waits for it: longer than it takes, shorter than a scheduler's patience."""

AGAIN_SECONDS = 60.0
"""From one that was refused to the next try: the same answer would come to every request."""

UNDER_WAY = "the database's schema is being brought up to this release; ring again"


class AutoMigration:
    """One process's. Opens no connection before it is asked."""

    def __init__(self, url: str, *, name: str) -> None:
        self._url = url
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._refused = ""
        self._again_at = 0.0

    async def run(self) -> None:
        """Returns once the schema is this release's, whoever has brought it up.

        Raises:
            SchemaOutdated: it is still under way, or it was refused; the text says what to change.
            DatabaseUnavailable: it cannot be reached.
        """
        if time.monotonic() < self._again_at:
            raise SchemaOutdated(self._refused)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._migrate(), name="migration")
            self._task.add_done_callback(_look_at)
        done, _ = await asyncio.wait({self._task}, timeout=WAIT_SECONDS)
        if not done:
            raise SchemaOutdated(UNDER_WAY)
        self._task.result()

    async def _migrate(self) -> None:
        migrations = await asyncio.to_thread(importlib.import_module, "app.stores.migrations")
        try:
            migrated = await migrations.migrate(self._url, name=self._name)
        except (ConfigError, DatabaseUnavailable):
            raise
        except ServiceError as error:
            self._refused = f"the database's schema could not be brought up to this release (AUTO_MIGRATE): {error}"
            self._again_at = time.monotonic() + AGAIN_SECONDS
            raise SchemaOutdated(self._refused) from error
        if migrated.before != migrated.after:
            log.info("schema brought up", extra={"before": migrated.before, "after": migrated.after})


def auto_migration(url: str, migration_url: str | None) -> AutoMigration:
    """By way of the second address where there is one.

    Raises:
        ConfigError: what in it cannot be used.
    """
    name = "MIGRATION_DATABASE_URL" if migration_url else "DATABASE_URL"
    parse(migration_url or url, name=name)
    return AutoMigration(migration_url or url, name=name)


def _look_at(task: asyncio.Task[None]) -> None:
    """It has been seen, also where everybody who waited for it has gone."""
    if not task.cancelled():
        task.exception()
