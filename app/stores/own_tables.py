"""Bookings in tables of the user's, read by a query of the user's.

In a transaction that may only read, for three seconds at most, and as a part of our own statement: so it is one alone.
On a connection that nobody uses after it: what a function leaves behind there, or loses it, is the query's own affair.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.domain import own_rows
from app.domain.bookings import REF_LENGTH, Booking, Start, zone_of
from app.domain.errors import QueryFailure
from app.stores import sql
from app.stores.database import rows as rows_of
from app.stores.reminders import Found
from app.stores.sql import text
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sqlalchemy.exc import DBAPIError
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

ZONED = "timestamp with time zone"

LOST = "the connection to the database was lost while it ran"

ADVICE_BY_STATE = {
    "57P01": LOST,
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

    unnamed: int = 0
    """Rows whose `ref` is NULL: nobody can be told of them."""

    overlong: int = 0
    """Rows whose `ref` is too long to be kept."""


class OwnTables:
    """Read only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, query: str, rules: Sequence[Rule]) -> OwnRows:
        """Bookings for which one of these reminders has fallen due, was not told and is not about to be.

        A few whose time comes soon, or has just passed, are among them. The name of the first rule is their origin.

        Raises:
            QueryFailure: it failed, or took too long, or gives no instants.
        """
        rows = await self._fetch("due", query, _rules(rules), MOST, rules[0].name, REF_LENGTH)
        if rows[0]["kind"] != ZONED:
            raise QueryFailure(own_rows.unzoned(rows[0]["kind"]))
        found = [row for row in rows if row["ref"] is not None]
        return OwnRows(
            now=rows[0]["now"],
            next_at=rows[0]["next_at"],
            unnamed=rows[0]["unnamed"],
            overlong=rows[0]["overlong"],
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
        if not isinstance(row["starts_at"], datetime) or row["starts_at"].tzinfo is None:
            raise QueryFailure(own_rows.unzoned("something without a zone"))
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

    async def standing(self, query: str, starts: Sequence[tuple[str, datetime]]) -> set[tuple[str, datetime]]:
        """Those of these bookings, by name and start, that are still there.

        Raises:
            QueryFailure: it failed, or took too long.
        """
        given = json.dumps([{"ref": ref, "starts_at": at.isoformat()} for ref, at in starts])
        instants = [at for _, at in starts]
        rows = await self._fetch("standing", query, given, min(instants), max(instants))
        return {(row["ref"], row["starts_at"]) for row in rows}

    async def columns(self, query: str) -> dict[str, str]:
        """The types of its columns by name, without reading a row.

        Raises:
            QueryFailure: it cannot be run.
        """
        async with self._reading() as db:
            described = await _run(db, _around("columns", query), ())
            oids = [row[1] for row in described.cursor.description]
            found = await rows_of(db, TYPES, {"oids": json.dumps(oids)})
            name_by_oid = {int(row["oid"]): str(row["typname"]) for row in found}
        return {row[0]: name_by_oid.get(row[1], "something unknown") for row in described.cursor.description}

    async def _fetch(self, name: str, query: str, *given: Any) -> list[dict[str, Any]]:
        async with self._reading() as db:
            found = await _run(db, _around(name, query), given)
            return [dict(row) for row in found.mappings()]

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        async with self._database.apart() as db:
            await rows_of(db, READ_ONLY)
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


PARAMETERS: dict[str, tuple[str, ...]] = {
    "due": ("rules", "most", "origin", "longest"),
    "find": ("ref", "starts"),
    "standing": ("given", "earliest", "latest"),
    "columns": (),
}


async def _run(db: AsyncConnection, statement: str, given: Sequence[Any]) -> Any:
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - with its first use, as the connection

    try:
        return await db.exec_driver_sql(statement, tuple(given))
    except DBAPIError as error:
        raise QueryFailure(_told(error, getattr(error.orig, "sqlstate", None))) from error
    except (OSError, TimeoutError) as error:
        raise QueryFailure(f"{LOST} ({type(error).__name__})") from error


def _told(error: DBAPIError, state: str | None) -> str:
    said = " ".join(str(error.orig.__cause__ or error.orig).split())[:300] if error.orig else "it failed"
    if MORE_THAN_ONE in str(error.orig) or ANOTHER in said:
        return "it holds more than one statement; leave one"
    advice = LOST if error.connection_invalidated else ADVICE_BY_STATE.get(state or "")
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
