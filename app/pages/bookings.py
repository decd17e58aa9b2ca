"""Appointments, and when people are reminded of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.api import booking_bodies
from app.pages.asking import Shown

if TYPE_CHECKING:
    from app.pages.asking import Asked

LIMIT = 25


async def show(asked: Asked) -> Shown:
    """A page of bookings, the newest first by when they were made."""
    page = await asked.stores.bookings.list_bookings(limit=LIMIT, before=asked.before())
    listed = [booking_bodies.shown(row, asked.settings) for row in page.rows]
    last = page.rows[-1].id if page.more else None
    return Shown(template="bookings.html", values={"bookings": listed, "last": last, "first": asked.before() is None})
