"""The database: PostgreSQL, one call = one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.domain.errors import SchemaOutdated
from app.stores.alerts import Alerts
from app.stores.bookings import Bookings
from app.stores.conversations import Conversations
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
from app.stores.schema import schema_state
from app.stores.sources import Sources
from app.stores.ticks import Ticks
from app.stores.watches import Watches

if TYPE_CHECKING:
    from app.stores.database import Database


@dataclass(frozen=True, slots=True)
class Stores:
    """Every store over one database."""

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
    ticks: Ticks
    watches: Watches

    async def require_schema(self) -> None:
        """Asks once a process whether the schema is at least this release's; a newer one serves as well.

        Raises:
            SchemaOutdated: it is older, or not there.
            DatabaseUnavailable: it cannot be asked.
        """
        if self.database.schema_known:
            return
        state = await schema_state(self.database)
        if state in {"behind", "missing"}:
            raise SchemaOutdated(f"the database's schema is {state}; run `wakebell migrate`")
        self.database.schema_known = True


def over(database: Database) -> Stores:
    """The stores of a database. Opens no connection."""
    return Stores(
        database=database,
        alerts=Alerts(database),
        bookings=Bookings(database),
        conversations=Conversations(database),
        events=Events(database),
        health=HealthFacts(database),
        history=History(database),
        hosts=Hosts(database),
        housekeeping=Housekeeping(database),
        incidents=Incidents(database),
        items=Items(database),
        jobs=Jobs(database),
        listings=Listings(database),
        looks=Looks(database),
        messages=Messages(database),
        metrics=Metrics(database),
        own_tables=OwnTables(database),
        queues=Queues(database),
        reach=Reach(database),
        reminders=Reminders(database),
        schedules=Schedules(database),
        sources=Sources(database),
        ticks=Ticks(database),
        watches=Watches(database),
    )
