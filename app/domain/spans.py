"""Spans of time as people write them: `30m`, `2d`, `1h30m`. A day is 24 hours, whatever the clocks do."""

from __future__ import annotations

import re
from datetime import timedelta

WRITTEN = re.compile("(?:([0-9]{1,5})w)?(?:([0-9]{1,5})d)?(?:([0-9]{1,5})h)?(?:([0-9]{1,5})m)?")
LEAST = timedelta(minutes=1)
MOST = timedelta(days=366)
EXAMPLE = "24h"


def parse(written: str) -> timedelta:
    """Weeks, days, hours and minutes, in this order. Raises ValueError, in words for the one who wrote it."""
    packed = "".join(written.lower().split())
    found = WRITTEN.fullmatch(packed)
    if found is None or not packed:
        raise ValueError(f'is no span of time; write it as in "{EXAMPLE}", "30m", "2d", "1w" or "1h30m"')
    weeks, days, hours, minutes = (int(part or 0) for part in found.groups())
    span = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)
    if not LEAST <= span <= MOST:
        raise ValueError(f'must be from a minute to 366 days; write it as in "{EXAMPLE}"')
    return span


def told(span: timedelta) -> str:
    """`24 h`, `2 d`, `1 h 30 min`: whole days from two on."""
    minutes = round(span / timedelta(minutes=1))
    days, rest = divmod(minutes, 24 * 60)
    if days >= 2 and not rest:  # noqa: PLR2004 - "24 h" is what people say of one
        return f"{days} d"
    hours, minutes = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)
