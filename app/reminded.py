"""What `check` says of reminders: each in words, and what is wrong with the queries of those that have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.domain import own_rows, spans
from app.domain.bookings import ALL_DAY_AT
from app.domain.errors import DatabaseUnavailable, QueryFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.settings import ReminderSettings, Settings
    from app.stores import Stores


def lines(settings: Settings) -> list[str]:
    """`reminder day_before: 24 h before, in the service's words`."""
    return [f"reminder {name}: {_told(reminder)}" for name, reminder in settings.reminders.items()]


async def problems(settings: Settings, stores: Stores) -> list[str]:
    """What each query does not give that it should, and what to change; no row is read."""
    found: list[str] = []
    for name, reminder in settings.reminders.items():
        if reminder.query is not None:
            where = f"{settings.environment.config_path}: reminders.{name}.query"
            found += [f"{where}: {fault}" for fault in await _faults(stores, reminder.query)]
    return found


async def _faults(stores: Stores, query: str) -> list[str]:
    try:
        return own_rows.faults(await stores.own_tables.columns(query))
    except QueryFailure as failure:
        return [f"cannot be run: {failure}"]
    except DatabaseUnavailable:  # it has just been reached
        return []


def _told(reminder: ReminderSettings) -> str:
    return ", ".join(_parts(reminder))


def _parts(reminder: ReminderSettings) -> Iterator[str]:
    yield f"{spans.told(reminder.rule.before)} before"
    yield "in the service's words" if reminder.wording is None else "in words of its own"
    if reminder.rule.all_day_at != ALL_DAY_AT:
        yield f"of all-day bookings from {reminder.rule.all_day_at:%H:%M}"
    if reminder.query is not None:
        yield "from a table of yours"
