"""When a schedule is to run, as people write it: a cron line, `@daily` and its like, `@every 6h`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

from app.domain.schedules import Cron, Every

if TYPE_CHECKING:
    from datetime import tzinfo

    from app.domain.schedules import Timing

LINE_BY_WORD = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
RANGES = ("0 to 59", "0 to 23", "1 to 31 or L", "1 to 12 or JAN to DEC", "0 to 7 or SUN to SAT")

EXAMPLE = "0 9 * * *"
UNITS = ("weeks", "days", "hours", "minutes", "seconds")
EVERY = re.compile(r"@every (?=\d)" + "".join(rf"(?:(\d{{1,9}}){unit[0]})?" for unit in UNITS), re.IGNORECASE)
LONGEST = timedelta(days=366)

SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - no zone: whether a line fires at all does not depend on it


def parse(written: str, *, timezone: str, zone: tzinfo) -> Timing:
    """What is written, by the clock of the zone. Raises ValueError, in words for the one who wrote it."""
    words = " ".join(written.split())
    if words.lower().startswith("@every"):
        return Every(interval=_interval(words), timezone=timezone, zone=zone)
    line = _line_of_word(words) if words.startswith("@") else words.upper()
    _check(line)
    return Cron(line=line, timezone=timezone, zone=zone)


def _interval(words: str) -> timedelta:
    found = EVERY.fullmatch(words)
    if found is None:
        raise ValueError('says no interval; write it as in "@every 6h", "@every 1h30m" or "@every 2d"')
    given = {unit: int(number) for unit, number in zip(UNITS, found.groups(), strict=True) if number}
    try:
        interval = timedelta(**given)
    except OverflowError:
        interval = timedelta.max
    if not timedelta(seconds=1) <= interval <= LONGEST:
        raise ValueError('must be an interval from one second to a year; write it as in "@every 6h"')
    return interval


def _line_of_word(word: str) -> str:
    if word.lower() == "@reboot":
        raise ValueError(
            "has no meaning for a service that sleeps: it is started with many a ring; write a time, or an interval "
            'such as "@every 1d"'
        )
    line = LINE_BY_WORD.get(word.lower())
    if line is None:
        raise ValueError(f"is none of {', '.join(LINE_BY_WORD)} and @every; write one of them, or a cron line")
    return line


def _check(line: str) -> None:
    fields = line.split()
    if len(fields) == len(FIELDS) + 1:
        raise ValueError(
            "has six fields, and a cron line has five, from the minute to the day of the week; take the seconds or the "
            'year away (for less than a minute: "@every 30s")'
        )
    if len(fields) != len(FIELDS):
        raise ValueError(f'must have five fields ({", ".join(FIELDS)}); write it as in "{EXAMPLE}"')
    for place, (name, field) in enumerate(zip(FIELDS, fields, strict=True)):
        alone = ["*"] * len(FIELDS)
        alone[place] = field
        if not _is_known(" ".join(alone)):
            raise ValueError(f"has a wrong {name}; write {RANGES[place]}, * for any, */15, 1-5 or 1,3")
    if not _fires(line):
        raise ValueError("never fires: no month that it names has such a day; change the day or the month")


def _is_known(line: str) -> bool:
    try:
        CronSim(line, SOME_DAY)
    except (CronSimError, ValueError, AssertionError):  # the last of odd mixtures, a digit of thousands the other
        return False
    return True


def _fires(line: str) -> bool:
    try:
        return next(CronSim(line, SOME_DAY), None) is not None
    except CronSimError:
        return False
