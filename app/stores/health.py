"""Health: what the database knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.domain.health import Facts
from app.stores import parked, sql
from app.stores.text import array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.stores.database import Database

SQL = sql.load("health")


class HealthFacts:
    """One statement over several tables, and another where jobs are parked."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, sources: Sequence[str]) -> Facts:
        """The facts; of sources, the named ones that fail now or are blind, at most 20."""
        [row] = await self._database.fetch(SQL["read"], {"sources": array(sources)})
        nobodys = await parked.read(self._database) if row["parked"] else None
        return Facts(**{**row, "parked": nobodys})
