"""Bookings, and when each of their reminders falls due.

    made --------- its instant ---------------------------- start
                        |-- told at once, or held: quiet hours, a channel that takes nothing --|
                                                                                               `--> failed, and told so

A reminder's instant is so long before the start. Of an all-day booking it counts from a time of its day (09:00 where
nothing else is configured), which also takes the place of its start: nobody is woken at midnight for a day that begins
then. When several instants have passed and nothing was told, the latest of them is told, and the others count as told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

ALL_DAY_AT = time(9)

DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
DATE_LENGTH = len("2026-12-24")

FIRST_YEAR, LAST_YEAR = 1970, 9998
"""Beyond these the database and its driver do not agree."""

REF_LENGTH = 200
"""Characters of a booking's name."""

EXAMPLE = "2026-12-24T09:00:00+07:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When one reminder falls due."""

    name: str
    before: timedelta

    all_day_at: time = ALL_DAY_AT
    """By the clock in the booking's zone: what the reminders of an all-day booking count from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """When a booking begins."""

    at: datetime
    """UTC. Of an all-day booking: when its day begins."""

    all_day: bool = False

    zone: tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """An appointment."""

    ref: str
    title: str
    start: Start

    timezone: str
    """Its name; `start.zone` is the zone itself."""

    recipient: str | None = None
    """A name of the configuration. None: `channel` and `address` say it."""

    channel: str | None = None
    address: str | None = None

    language: str | None = None
    """None: the recipient's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One reminder of one start."""

    rule: Rule
    at: datetime

    expires_at: datetime
    """The start, or what takes its place: from then on the reminder is of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a start stands at one instant."""

    passed: tuple[Instant, ...]
    """Reminders whose instants have passed, the latest first: that one is told, the others count as told."""

    next_at: datetime | None
    """When the next one falls due; None: there is none."""

    @property
    def due(self) -> Instant | None:
        """The one to be told, unless it was told already or its time has passed."""
        return self.passed[0] if self.passed else None


def course(start: Start, rules: Iterable[Rule], now: datetime) -> Course:
    """What has fallen due by now, and when more will."""
    instants = [instant(start, rule) for rule in rules]
    passed = sorted((one for one in instants if one.at <= now), key=lambda one: (one.at, one.expires_at), reverse=True)
    return Course(passed=tuple(passed), next_at=min((one.at for one in instants if one.at > now), default=None))


def instant(start: Start, rule: Rule) -> Instant:
    """When that reminder of that start falls due, and until when it is of use."""
    expires_at = start.at
    if start.all_day:
        day = start.at.astimezone(start.zone).date()
        expires_at = datetime.combine(day, rule.all_day_at, start.zone).astimezone(UTC)
    return Instant(rule=rule, at=expires_at - rule.before, expires_at=expires_at)


def zone_of(name: str) -> tzinfo:
    """The zone of that name. Raises ValueError where this system knows none."""
    if name == "UTC":  # needs no data
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # a name of a folder, `..`, a name that no file can have
        raise ValueError("is no time zone that this system knows; write it as in Asia/Bangkok") from None


def read_start(written: Any, zone: tzinfo, *, all_day: bool | None = None) -> Start:
    """When a booking begins: an instant with its offset, a time on the wall of `zone`, or a date for all of its day.

    A time that does not exist, since the clocks are put forward over it, is read by the offset from before: 02:30 is
    03:30 then. One that comes twice is the first of the two. Both as RFC 5545 has it (3.3.5).

    Raises:
        ValueError: it is none of these, in words for the one who wrote it.
    """
    if not isinstance(written, str):
        raise ValueError(f"must be a text in ISO 8601, such as {EXAMPLE}")  # noqa: TRY004 - told as all others are
    text = written.strip()
    day = _date(text)
    if day is not None and all_day is False:
        raise ValueError(f"is a date alone, which is an all-day booking; write a time too, such as {EXAMPLE}")
    if day is None and all_day:
        raise ValueError('must be a date alone, such as "2026-12-24", since all_day is true')
    at = datetime.combine(day, time(), zone) if day is not None else _instant(text, zone)
    if not FIRST_YEAR < at.year < LAST_YEAR:
        raise ValueError(f"must lie between the years {FIRST_YEAR + 1} and {LAST_YEAR - 1}")
    return Start(at=at.astimezone(UTC), all_day=day is not None, zone=zone)


def named(passed: Sequence[Instant]) -> list[str]:
    """The names of those reminders."""
    return [one.rule.name for one in passed]


def nobody(channel: str) -> str:
    """What stands for whoever is booked by an address on a channel, in messages, alerts and logs: never the address.

    No recipient has such a name: theirs have no slash.
    """
    return f"bookings/{channel}"


def _date(text: str) -> date | None:
    if not DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _instant(text: str, zone: tzinfo) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"is no time in ISO 8601; write {EXAMPLE}, or without an offset for a time in its time zone"
        ) from None
    if len(text) <= DATE_LENGTH:
        raise ValueError(f"has no time of day; write {EXAMPLE}, or a date such as 2026-12-24 for all of that day")
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)
