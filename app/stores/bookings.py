"""Bookings: appointments that programs make, change and delete under names of their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any

from app.stores import sql
from app.stores.database import rows
from app.stores.listings import Page
from app.stores.payloads import json_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from app.domain.bookings import Booking
    from app.stores.database import Database

SQL = sql.load("bookings")

MOVED = "the booking has changed since"
DELETED = "the booking was deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBooking:
    """A booking as it stands in the table."""

    id: int
    ref: str
    title: str
    starts_at: datetime
    all_day: bool
    timezone: str
    recipient: str | None
    channel: str | None
    address: str | None
    language: str | None
    created_at: datetime
    updated_at: datetime

    reminders: Mapping[str, int | None]
    """Those of this start that are over, by name: the message that tells it, None where there is none."""


class Bookings:
    """Each call is one transaction; a changed or deleted booking takes its unsent reminders with it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, booking: Booking) -> tuple[StoredBooking, bool]:
        """The booking as it stands now, and whether it was made just now. The same once more changes nothing.

        Another start earns its reminders anew. What was composed before the change and has not left is called off.
        """
        params = {
            "ref": booking.ref,
            "title": booking.title,
            "starts_at": booking.start.at,
            "all_day": booking.start.all_day,
            "timezone": booking.timezone,
            "recipient": booking.recipient,
            "channel": booking.channel,
            "address": booking.address,
            "language": booking.language,
        }
        async with self._database.transaction() as db:
            changed = await rows(db, SQL["put"], params)
            if changed and not changed[0]["created"]:
                await db.execute(SQL["call_off"], {"ref": booking.ref, "reason": MOVED})
                await db.execute(SQL["take_up"], {"ref": booking.ref, "starts_at": booking.start.at})
            [row] = await rows(db, SQL["get"], {"ref": booking.ref})
        return _stored(row), bool(changed and changed[0]["created"])

    async def get(self, ref: str) -> StoredBooking | None:
        """One booking; None when there is none of that name."""
        found = await self._database.fetch(SQL["get"], {"ref": ref})
        return _stored(found[0]) if found else None

    async def list_bookings(self, *, limit: int, before: int | None = None) -> Page[StoredBooking]:
        """Bookings with an id below `before`, the newest first."""
        found = await self._database.fetch(SQL["list_bookings"], {"before": before, "most": limit})
        return Page(rows=[_stored(row) for row in found[:limit]], more=len(found) > limit)

    async def delete(self, ref: str) -> bool:
        """Whether it was there. What was composed for it and has not left is called off."""
        async with self._database.transaction() as db:
            deleted = await rows(db, SQL["delete"], {"ref": ref})
            if deleted:
                await db.execute(SQL["call_off"], {"ref": ref, "reason": DELETED})
        return bool(deleted)

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` bookings that began longer than `keep` ago."""
        found = await self._database.fetch(SQL["prune"], {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)


def _stored(row: Mapping[str, Any]) -> StoredBooking:
    return StoredBooking(**{**row, "reminders": json_value(row["reminders"]) or {}})
