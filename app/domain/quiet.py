"""When somebody may be told: not in their quiet hours, and not more often than they want in a day.

    now --day is full--> the beginning of the next day --in quiet hours--> their end

All of it by the clock on the recipient's wall: it is quiet whenever that shows a time within the quiet hours. An hour
that comes twice, as the clock is put back, is quiet twice; where it is put forward over the end, they end there.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

WRITTEN = re.compile(r"\s*(\d{1,2}):(\d\d)\s*[-\u2013]\s*(\d{1,2}):(\d\d)\s*")
EXAMPLE = "22:00-07:00"
DAY = timedelta(days=1)
STEP = timedelta(minutes=15)
"""No zone has ever put its clocks to and back within so short a time."""


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `begins` on, until just before `ends`; over midnight where that is the earlier one."""

    begins: time
    ends: time

    def hold(self, at: time) -> bool:
        """Whether a clock that shows this time says quiet."""
        if self.begins < self.ends:
            return self.begins <= at < self.ends
        return at >= self.begins or at < self.ends


def parse(written: str) -> QuietHours:
    """`22:00-07:00`. Raises ValueError, in words for the one who wrote it."""
    found = WRITTEN.fullmatch(written)
    if found is None:
        raise ValueError(f'is no span of hours; write it as in "{EXAMPLE}"')
    begins, ends = _time(found[1], found[2]), _time(found[3], found[4])
    if begins == ends:
        raise ValueError("begins when it ends, so that it would be always quiet or never; change one of the two")
    return QuietHours(begins, ends)


def held_until(
    now: datetime, zone: tzinfo, hours: QuietHours | None = None, *, full_since: datetime | None = None
) -> datetime | None:
    """When somebody in that zone may be told next, in UTC; None: now.

    `full_since` is when they were told for the last time that counts: on the day of that, by their calendar, they have
    been told as often as they want.
    """
    at = now
    if full_since is not None and full_since.astimezone(zone).date() >= now.astimezone(zone).date():
        at = next_day(now, zone)
    if hours is not None:
        at = quiet_until(at, zone, hours) or at
    return None if at == now else at


def quiet_until(at: datetime, zone: tzinfo, hours: QuietHours) -> datetime | None:
    """The first instant from `at` on that is not quiet in that zone, in UTC; None where `at` itself is not."""
    if not hours.hold(at.astimezone(zone).time()):
        return None
    instant = at.astimezone(UTC)
    while hours.hold((wall := instant.astimezone(zone)).time()):
        left = _until(wall.time(), hours.ends)
        instant = _change(instant, instant + left, zone) or instant + left
    return instant


def next_day(at: datetime, zone: tzinfo) -> datetime:
    """The first instant of the next day in that zone, in UTC. There are days that begin at one o'clock."""
    today = at.astimezone(zone).date()
    instant = at.astimezone(UTC)
    while (wall := instant.astimezone(zone)).date() <= today:
        left = _until(wall.time(), time())
        instant = _change(instant, instant + left, zone) or instant + left
    return instant


def _until(at: time, end: time) -> timedelta:
    """How long a clock takes from one time to the next time that it shows the other; never nothing."""
    left = (_since_midnight(end) - _since_midnight(at)) % DAY
    return left or DAY


def _since_midnight(at: time) -> timedelta:
    return timedelta(hours=at.hour, minutes=at.minute, seconds=at.second, microseconds=at.microsecond)


def _change(after: datetime, until: datetime, zone: tzinfo) -> datetime | None:
    """The first instant in (after, until] from which on the clock goes otherwise than at `after`. On a whole second."""
    before = after.astimezone(zone).utcoffset()
    same = after
    while same < until:
        other = min(same + STEP, until)
        if other.astimezone(zone).utcoffset() != before:
            low, high = math.floor(same.timestamp()), math.ceil(other.timestamp())
            while high - low > 1:
                middle = (low + high) // 2
                if datetime.fromtimestamp(middle, UTC).astimezone(zone).utcoffset() == before:
                    low = middle
                else:
                    high = middle
            return datetime.fromtimestamp(high, UTC)
        same = other
    return None


def _time(hours: str, minutes: str) -> time:
    try:
        return time(int(hours) % 24 if (hours, minutes) == ("24", "00") else int(hours), int(minutes))
    except ValueError:
        raise ValueError(f'has a time that no clock shows; write it as in "{EXAMPLE}"') from None
