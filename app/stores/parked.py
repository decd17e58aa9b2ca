"""Jobs that nobody handles; asked for only where there are some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.domain.parked import MOST_COUNTED, MOST_TYPES, Parked
from app.stores import sql

if TYPE_CHECKING:
    from app.stores.database import Database

SQL = sql.load("parked")


async def read(database: Database) -> Parked:
    """How many there are, and of which types."""
    [row] = await database.fetch(SQL["parked"], {"most": MOST_COUNTED, "most_types": MOST_TYPES})
    return Parked(**row)
