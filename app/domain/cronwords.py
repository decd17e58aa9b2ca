"""Schedules in words: "every day at 09:00 Asia/Yangon". A line for which there are no plain words is told as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cronsim import CronSim

from app.domain.schedules import Every
from app.domain.timings import SOME_DAY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import timedelta

    from app.domain.schedules import Cron, Timing

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
ORDINALS = ("first", "second", "third", "fourth", "fifth")
WORKDAYS, WEEKEND = {1, 2, 3, 4, 5}, {0, 6}

HOURS = 24

OF = " of "
"""Between a day and its months."""

MOST_TIMES = 6
"""Of one day, that are listed."""

UNITS = (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def told(timing: Timing) -> str:
    """In words."""
    if isinstance(timing, Every):
        return f"every {_interval(timing.interval)}"
    return _in_words(timing) or f'by the cron line "{timing.line}" {timing.timezone}'


def _interval(interval: timedelta) -> str:
    left = int(interval.total_seconds())
    counts = []
    for unit, seconds in UNITS:
        count, rest = divmod(left, seconds)
        if count and not (unit == "week" and rest):  # eight days are no week and a day
            counts.append((count, unit))
            left = rest
    if len(counts) == 1 and counts[0][0] == 1:
        return counts[0][1]
    return " ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in counts)


def _in_words(cron: Cron) -> str | None:
    sim = CronSim(cron.line, SOME_DAY)
    days = _days(sim, cron.line)
    if days is None:
        return None
    pace = _pace(sim)
    if pace is not None:
        return f"{pace} {days} {cron.timezone}" if days else pace
    times = _times(sim)
    if times is None:
        return None
    return f"{days or ('every day' if times.startswith('at') else '')} {times} {cron.timezone}".strip()


def _pace(sim: CronSim) -> str | None:
    """All day long, whatever the zone: "every 15 minutes"."""
    step = _step(sim.minutes, 60)
    if len(sim.hours) < HOURS or step is None or len(sim.minutes) == 1 or min(sim.minutes) > 0:
        return None
    return "every minute" if step == 1 else f"every {step} minutes"


def _times(sim: CronSim) -> str | None:
    """When on its days."""
    hours, minutes = sorted(sim.hours), sorted(sim.minutes)
    if len(hours) == HOURS and len(minutes) <= MOST_TIMES:
        return f"every hour at minute{'s' if len(minutes) > 1 else ''} {_listed([str(minute) for minute in minutes])}"
    if len(hours) * len(minutes) <= MOST_TIMES:
        return "at " + _listed([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes])
    first, last = f"{hours[0]:02}:{minutes[0]:02}", f"{hours[-1]:02}:{minutes[-1]:02}"
    if len(minutes) == 1:
        step = _step(sim.hours, 24)
        if step is not None:
            return f"every {step} hours from {first} on"
        return f"every hour from {first} to {last}" if _in_a_row(hours) else None
    step = _step(sim.minutes, 60)
    if step is None or not _in_a_row(hours):
        return None
    return f"every {'minute' if step == 1 else f'{step} minutes'} from {first} to {last}"


def _days(sim: CronSim, line: str) -> str | None:
    """On which days: nothing for every day, None where there are no plain words."""
    _, _, day, _, weekday = line.split()
    days, weekdays = day != "*", weekday != "*"
    months = sorted(sim.months)
    some_months = len(months) < len(MONTHS)
    if (days and weekdays) or (days and day.startswith("*/")) or (weekdays and weekday.startswith("*/")):
        return None
    if weekdays:
        which = _weekdays(sim.weekdays)
        if which is None or not which.endswith(OF):
            return which and which + (f" in {_months(months)}" if some_months else "")
        return which + (_months(months) if some_months else "every month")
    if not days:
        return f"every day in {_months(months)}" if some_months else ""
    which = _month_days(sim.days)
    if which is None:
        return None
    return f"on {which}{OF}{_months(months) if some_months else 'every month'}"


def _weekdays(given: Collection[int | tuple[int, int]]) -> str | None:
    plain = {day % 7 for day in given if isinstance(day, int)}
    if not all(isinstance(day, int) for day in given):
        return _one_of_the_month(list(given))
    if plain == WORKDAYS:
        return "Monday to Friday"
    if plain == WEEKEND:
        return "Saturdays and Sundays"
    if len(plain) == len(WEEKDAYS):
        return "every day"
    return _listed([f"{WEEKDAYS[day % 7]}s" for day in sorted(plain, key=lambda day: day or 7)])


def _one_of_the_month(given: Sequence[int | tuple[int, int]]) -> str | None:
    if len(given) != 1 or isinstance(given[0], int):
        return None
    day, number = given[0]
    which = "last" if number == CronSim.LAST else ORDINALS[number - 1]
    return f"on the {which} {WEEKDAYS[day % 7]}{OF}"


def _month_days(days: Collection[int]) -> str | None:
    if days == {CronSim.LAST}:
        return "the last day"
    if days == {CronSim.LAST_WEEKDAY}:
        return "the last working day"
    if min(days) < 1 or len(days) > MOST_TIMES:
        return None
    return "the " + _listed([_ordinal(day) for day in sorted(days)])


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number in {11, 12, 13} else ending}"


def _months(months: Iterable[int]) -> str:
    return _listed([MONTHS[month - 1] for month in months])


def _step(numbers: Collection[int], whole: int) -> int | None:
    """The distance between them, where it is the same all around the clock."""
    step = whole // len(numbers)
    return step if step * len(numbers) == whole and len({number % step for number in numbers}) == 1 else None


def _in_a_row(numbers: Sequence[int]) -> bool:
    return numbers[-1] - numbers[0] == len(numbers) - 1


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
