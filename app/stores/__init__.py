"""The database: PostgreSQL, one call = one transaction."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from app.domain.errors import SchemaOutdated, ServiceError
from app.stores.schema import schema_state, unfit_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.stores.alerts import Alerts
    from app.stores.auto_migration import AutoMigration
    from app.stores.bookings import Bookings
    from app.stores.conversations import Conversations
    from app.stores.database import Database
    from app.stores.events import Events
    from app.stores.health import HealthFacts
    from app.stores.history import History
    from app.stores.hosts import Hosts
    from app.stores.housekeeping import Housekeeping
    from app.stores.incidents import Incidents
    from app.stores.items import Items
    from app.stores.jobs import Jobs
    from app.stores.listings import Listings
    from app.stores.looks import Looks
    from app.stores.messages import Messages
    from app.stores.metrics import Metrics
    from app.stores.own_tables import OwnTables
    from app.stores.queues import Queues
    from app.stores.reach import Reach
    from app.stores.reminders import Reminders
    from app.stores.schedules import Schedules
    from app.stores.schema import SchemaState
    from app.stores.sources import Sources
    from app.stores.spendings import Spendings
    from app.stores.talks import Talks
    from app.stores.ticks import Ticks
    from app.stores.watches import Watches

log = logging.getLogger(__name__)


class Stores:
    """Every store over one database: the attribute `jobs`, a `Jobs`, is in `jobs.py`, which its first use imports."""

    database: Database
    alerts: Alerts
    bookings: Bookings
    conversations: Conversations
    events: Events
    health: HealthFacts
    history: History
    hosts: Hosts
    housekeeping: Housekeeping
    incidents: Incidents
    items: Items
    jobs: Jobs
    listings: Listings
    looks: Looks
    messages: Messages
    metrics: Metrics
    own_tables: OwnTables
    queues: Queues
    reach: Reach
    reminders: Reminders
    schedules: Schedules
    sources: Sources
    spendings: Spendings
    talks: Talks
    ticks: Ticks
    watches: Watches

    migration: AutoMigration | None
    """None: `wakebell migrate` alone changes the schema."""

    def __init__(self, database: Database, *, migration: AutoMigration | None = None, **others: Any) -> None:
        """`others` stand in place of stores."""
        self.__dict__.update(others, database=database, migration=migration)

    def __getattr__(self, name: str) -> Any:
        """Makes a store; from then on it is an attribute like any other."""
        of = type(self).__annotations__.get(name)
        if of is None:
            raise AttributeError(name)
        store = getattr(import_module(f"{__name__}.{name}"), of)(self.database)
        self.__dict__[name] = store
        return store

    async def schema(self) -> SchemaState:
        """How the schema stands, asked anew; under AUTO_MIGRATE after it was brought up.

        Raises:
            SchemaOutdated: it could not be brought up, or not yet.
            DatabaseUnavailable: it cannot be asked.
        """
        state = await schema_state(self.database)
        if state in {"behind", "missing"} and self.migration is not None:
            await self.migration.run()
            state = await schema_state(self.database)
        return state

    async def require_schema(self) -> None:
        """Asks once a process whether the schema is at least this release's; a newer one serves as well.

        Raises:
            SchemaOutdated: it is older, or not there.
            DatabaseUnavailable: it cannot be asked.
        """
        if self.database.schema_known:
            return
        state = await self.schema()
        if state in {"behind", "missing"}:
            told = f"the database's schema is {state}; run `wakebell migrate`"
            raise SchemaOutdated(await unfit_database(self.database) or told)
        self.database.schema_known = True

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """While a process serves: under AUTO_MIGRATE the schema is seen to at once, beside whatever else begins.

        Where that fails, whoever asks first tries again.
        """
        if self.migration is None:
            yield
            return
        seeing_to_it = asyncio.create_task(self._see_to_the_schema(), name="schema")
        try:
            yield
        finally:
            seeing_to_it.cancel()
            await asyncio.wait({seeing_to_it})

    async def _see_to_the_schema(self) -> None:
        try:
            async with self.database.held():
                await self.require_schema()
        except ServiceError as error:
            log.warning("schema not seen to yet", extra={"reason": str(error)})


def over(database: Database, *, migration: AutoMigration | None = None) -> Stores:
    """The stores of a database. Opens no connection."""
    return Stores(database, migration=migration)
