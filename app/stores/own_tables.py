"""Bookings in tables of the user's, read by a query of the user's.

In a transaction that may only read, for three seconds at most, and as a part of our own statement: so it is one alone.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.domain.bookings import Booking, Start, zone_of
from app.domain.errors import QueryFailure
from app.stores import sql
from app.stores.reminders import Found
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from app.domain.bookings import Rule
    from app.stores.database import Database

SQL = sql.load("own_tables")

MOST = 500
"""Bookings that one tick takes of a query."""

SECONDS = 3

READ_ONLY = text(
    "SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', '3s', true), "
    "set_config('jit', 'off', true)",
)

PLACE = "SELECT * FROM wakebell.bookings"
"""Where it is put, on lines of its own: a comment at its end must not reach further."""

TYPES = text(
    "SELECT CAST(oid AS bigint) AS oid, typname FROM pg_catalog.pg_type WHERE CAST(oid AS text) IN "
    "(SELECT value FROM jsonb_array_elements_text(CAST(CAST(:oids AS text) AS jsonb)))"
)

ADVICE_BY_STATE = {
    "25006": "it writes, and may only read",
    "57014": f"it took longer than {SECONDS} seconds; give starts_at an index, and leave ORDER BY and LIMIT out",
    "55P03": "it waited for somebody's lock",
    "42501": "the service's role may not read that; GRANT SELECT on it, and USAGE on its schema",
    "42P01": "write the table's schema before its name",
}

MORE_THAN_ONE = "cannot insert multiple commands"
ANOTHER = 'at or near ";"'
"""Both are PostgreSQL's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRow:
    """A booking that may be due."""

    ref: str
    starts_at: datetime
    all_day: bool
    timezone: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRows:
    """What a query gave at one instant."""

    now: datetime
    rows: tuple[OwnRow, ...]

    next_at: datetime | None
    """When the next reminder falls due, or a little before."""


class OwnTables:
    """Read only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, query: str, rules: Sequence[Rule]) -> OwnRows:
        """Bookings for which one of these reminders has fallen due and was not told; a few whose time comes soon.

        Raises:
            QueryFailure: it failed, or took too long.
        """
        rows = await self._fetch("due", query, _rules(rules), MOST)
        found = [row for row in rows if row["ref"] is not None]
        return OwnRows(
            now=rows[0]["now"],
            next_at=rows[0]["next_at"],
            rows=tuple(
                OwnRow(
                    ref=row["ref"], starts_at=row["starts_at"], all_day=bool(row["all_day"]), timezone=row["timezone"]
                )
                for row in found
            ),
        )

    async def find(self, query: str, ref: str, starts_at: datetime, *, zone: str) -> Found | None:
        """The booking, if it still has this start. `zone` is that of one which names none.

        Raises:
            QueryFailure: it failed, or took too long.
        """
        rows = await self._fetch("find", query, ref, starts_at)
        if not rows:
            return None
        row = rows[0]
        name = row["timezone"] or zone
        start = Start(at=row["starts_at"], all_day=bool(row["all_day"]), zone=zone_or_utc(name))
        booking = Booking(
            ref=row["ref"],
            title=clean(row["title"] or "", limit=500),
            start=start,
            timezone=name,
            recipient=row["recipient"],
            channel=None if row["recipient"] is not None else row["channel"],
            address=None if row["recipient"] is not None else row["address"],
            language=row["language"],
        )
        return Found(booking=booking, told=frozenset(row["told"] or ()), now=row["now"])

    async def columns(self, query: str) -> dict[str, str]:
        """The types of its columns by name, without reading a row.

        Raises:
            QueryFailure: it cannot be run.
        """
        async with self._reading() as db:
            described = await _run(db, _around("columns", query), ())
            oids = [row[1] for row in described.cursor.description]
            found = await db.execute(TYPES, {"oids": json.dumps(oids)})
            name_by_oid = {int(row.oid): str(row.typname) for row in found}
        return {row[0]: name_by_oid.get(row[1], "something unknown") for row in described.cursor.description}

    async def _fetch(self, name: str, query: str, *given: Any) -> list[dict[str, Any]]:
        async with self._reading() as db:
            found = await _run(db, _around(name, query), given)
            return [dict(row) for row in found.mappings()]

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        async with self._database.transaction() as db:
            await db.execute(READ_ONLY)
            yield db


def zone_or_utc(name: str) -> Any:
    """A zone by its name; one that this system does not know is told as UTC, which says so."""
    try:
        return zone_of(name)
    except ValueError:
        return zone_of("UTC")


def _around(name: str, query: str) -> str:
    """Our statement with the user's in its place. Parameters are PostgreSQL's own: his colons stay colons."""
    statement = SQL[name].text
    for number, parameter in enumerate(PARAMETERS[name], 1):
        statement = statement.replace(f":{parameter}", f"${number}")
    return statement.replace(PLACE, f"\n{query}\n")


PARAMETERS: dict[str, tuple[str, ...]] = {"due": ("rules", "most"), "find": ("ref", "starts"), "columns": ()}


async def _run(db: AsyncConnection, statement: str, given: Sequence[Any]) -> Any:
    try:
        return await db.exec_driver_sql(statement, tuple(given))
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None)
        if (state is None and not _refused(error)) or error.connection_invalidated:
            raise
        raise QueryFailure(_told(error, state)) from error


def _refused(error: DBAPIError) -> bool:
    return MORE_THAN_ONE in str(error.orig)


def _told(error: DBAPIError, state: str | None) -> str:
    said = " ".join(str(error.orig.__cause__ or error.orig).split())[:300] if error.orig else "it failed"
    if _refused(error) or ANOTHER in said:
        return "it holds more than one statement; leave one"
    advice = ADVICE_BY_STATE.get(state or "")
    return f"{advice} ({said})" if advice else said


def _rules(rules: Sequence[Rule]) -> str:
    return json.dumps(
        [
            {
                "name": rule.name,
                "seconds": rule.before.total_seconds(),
                "all_day_seconds": (rule.all_day_at.hour * 60 + rule.all_day_at.minute) * 60,
            }
            for rule in rules
        ]
    )
