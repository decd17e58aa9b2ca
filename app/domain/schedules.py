"""Schedules: a job is queued again and again, once for each slot, whoever ticks and however late.

    seen for the first time, changed, or back --> its next slot is kept
                                                     |
                            its time has come: fired, or passed over
                                                     |
                                                     `--> the next slot is kept ...

A slot is an instant in UTC, on a whole second. Which instants a cron line means is `cronsim`'s to say, by the rules of
Debian's cron (https://manpages.debian.org/stable/cron/cron.8.en.html): what is to run at a fixed time runs once a day,
also when the clock skips that time (then as soon as it shows a later one) or shows it twice (then the first time);
what has `*` in its minute or hour goes by the clock as it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Literal

from cronsim import CronSim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import tzinfo

CatchUp = Literal["latest", "all", "none"]
"""Of slots that no tick came for in time: one job for the newest; one for each; none, unless it is within the grace."""

MOST = 100
"""Slots of `all` that are fired in one tick, of all schedules together; the others are still due."""

MOST_COUNTED = 1000
"""Missed slots of one schedule that are counted at once: of a line for every minute, a year has half a million."""

COUNTED_TOGETHER = 10_000
"""Of all schedules: half a second of computing."""

TOGETHER = timedelta(seconds=0.25)
"""When two processes were started is known no better: of those within it, the one that keeps a schedule goes on."""

UNHEARD = timedelta(hours=1)
"""How long an objection stands, at least, before nobody is taken to run the line that it is against."""

UNHEARD_RINGS = 3
"""And so many ordinary rings: one of them should have come to a process with that line."""

CLOCK_BACK = timedelta(days=1)
"""A slot that lies so far ahead has been fired by a clock that was wrong: waiting for it would silence a schedule."""

SPANS = (timedelta(minutes=3), *(timedelta(days=days) for days in (1 / 24, 1, 8, 40, 400, 4000)))
"""How far back the newest slot is looked for: of a line for every minute that is the first, of a yearly one a year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A cron line, by the clock on the wall of a zone."""

    line: str
    """Five fields in capitals, one space between."""

    timezone: str
    zone: tzinfo

    @property
    def fingerprint(self) -> str:
        """What decides its slots."""
        return f"{self.line} {self.timezone}"

    def after(self, at: datetime, *, anchor: datetime) -> Iterator[datetime]:  # noqa: ARG002 - as all timings have it
        """Its slots after an instant, ascending. None, once there is none for 50 years."""
        last = at
        for shown in CronSim(self.line, at.astimezone(self.zone)):
            slot = shown.astimezone(UTC)
            if slot > last:  # begun in an hour that comes twice, the library begins with what was in the first
                yield slot
                last = slot

    def newest(self, *, after: datetime, until: datetime, anchor: datetime) -> datetime | None:
        """Its last slot in (after, until]."""
        for span in SPANS:
            begin = max(after, until - span)
            slot = _last(takewhile(lambda slot: slot <= until, self.after(begin, anchor=anchor)))
            if slot is not None or begin == after:
                return slot
        return _last(takewhile(lambda slot: slot <= until, self.after(after, anchor=anchor)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """An interval, counted from when the schedule was first seen; no tick's lateness makes it drift."""

    interval: timedelta
    timezone: str
    """In which its slots are shown; they do not depend on it."""

    zone: tzinfo

    @property
    def fingerprint(self) -> str:
        """What decides its slots, beside the anchor."""
        return f"@every {self.interval.total_seconds():.0f}s"

    def after(self, at: datetime, *, anchor: datetime) -> Iterator[datetime]:
        """Its slots after an instant, ascending."""
        number = max((at - anchor) // self.interval, 0)
        while True:
            number += 1
            yield anchor + number * self.interval

    def newest(self, *, after: datetime, until: datetime, anchor: datetime) -> datetime | None:
        """Its last slot in (after, until]."""
        number = (until - anchor) // self.interval
        slot = anchor + number * self.interval
        return slot if number > 0 and slot > after else None


Timing = Cron | Every


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One `[schedules.x]`."""

    name: str

    written: str
    """Its timing as the configuration has it."""

    timing: Timing

    job: str
    """The type of its jobs."""

    payload: Mapping[str, Any] = field(repr=False)
    """May hold secrets."""

    queue: str = "default"
    priority: int = 0
    catch_up: CatchUp = "latest"

    grace: timedelta
    """With `none`: how late a slot is still fired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is stored of a schedule."""

    name: str

    fingerprint: str
    """Of the timing that the rest is about."""

    revision: int
    """One more with each change: who moves the schedule names the one it has seen."""

    anchor_at: datetime
    """From when on it has slots; `@every` counts from there."""

    next_at: datetime | None
    """None: there is no further slot."""

    last_slot: datetime | None = None
    """The latest that was fired or passed over. None: there was none since `anchor_at`."""

    fired_slot: datetime | None = None
    """The latest that a job was queued for; `fired_at`: when that was."""

    fired_at: datetime | None = None

    missed_count: int = 0
    """Slots that were passed over because they were too late, all in all."""

    missed_slot: datetime | None = None
    """The latest of them since `anchor_at`; `missed_at`: when that was found."""

    missed_at: datetime | None = None

    removed_at: datetime | None = None
    """When a tick has found that its configuration does not have it. None: it is configured."""

    configured_at: datetime
    """When the process that has begun this timing read its configuration."""

    objected_at: datetime | None = None
    """When a process that was started before, with another timing, has left it alone. None: no such process has come
    since the last tick of one with this timing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Come:
    """Slots whose time has come."""

    after: datetime
    """What was dealt with before."""

    fire: tuple[datetime, ...] = ()
    """Oldest first."""

    missed: int = 0
    missed_slot: datetime | None = None
    """The latest of the missed ones."""

    uncounted: bool = False
    """More were missed than `missed`."""


def goes_on(schedule: Schedule, known: Known | None, *, now: datetime, started: datetime) -> bool:
    """Whether the stored schedule is this one: else it begins now, with no slot in the past.

    One that was removed and is back begins now. Who was started before another process found it removed has never lost
    it, and goes on: that other process is of a release before or after this one. `started` is by the clock of `now`.
    """
    if known is None or known.fingerprint != schedule.timing.fingerprint:
        return False
    if known.removed_at is not None and started >= known.removed_at:
        return False
    return max(known.anchor_at, known.last_slot or known.anchor_at) <= now + CLOCK_BACK


def may_take(known: Known, *, now: datetime, started: datetime, unheard: timedelta) -> bool:
    """Whether a process that was started then, with another timing, begins its own.

    Not while one that was started later keeps the schedule: else two releases side by side would begin in turn, and
    never come to a slot. But once nobody has dismissed an objection for so long, nobody has that timing any more.
    """
    if started > known.configured_at + TOGETHER or known.configured_at > now + CLOCK_BACK:
        return True
    return known.objected_at is not None and known.objected_at <= now - unheard


def unheard(expected_every: timedelta) -> timedelta:
    """How long an objection has to stand, where rings are to come so often."""
    return max(UNHEARD, UNHEARD_RINGS * expected_every)


def due(schedule: Schedule, known: Known, *, now: datetime) -> Iterator[datetime]:
    """Its slots that have come, oldest first."""
    after = known.last_slot or known.anchor_at
    return takewhile(lambda slot: slot <= now, schedule.timing.after(after, anchor=known.anchor_at))


def come(
    schedule: Schedule, known: Known, *, now: datetime, most: int = MOST, most_counted: int = MOST_COUNTED
) -> Come:
    """Which slots are to be fired, and which are passed over. `most` bounds those of `all`."""
    timing, anchor = schedule.timing, known.anchor_at
    after = known.last_slot or anchor
    if schedule.catch_up == "all":
        return Come(after=after, fire=tuple(islice(due(schedule, known, now=now), most)))
    newest = timing.newest(after=after, until=now, anchor=anchor)
    if newest is None:
        return Come(after=after)
    if schedule.catch_up == "latest":
        return Come(after=after, fire=(newest,))
    in_time = now - schedule.grace
    fire = () if newest < in_time else (newest,)
    last_late = timing.newest(after=after, until=min(newest, in_time - timedelta.resolution), anchor=anchor)
    if last_late is None:
        return Come(after=after, fire=fire)
    late = tuple(islice(takewhile(lambda slot: slot <= last_late, timing.after(after, anchor=anchor)), most_counted))
    uncounted = not late or late[-1] < last_late
    return Come(after=after, fire=fire, missed=len(late), missed_slot=last_late, uncounted=uncounted)


def past(schedule: Schedule, known: Known, slots: Come) -> Known:
    """The schedule once these are dealt with. What is left is still due."""
    last = max(slots.after, *slots.fire, *((slots.missed_slot,) if slots.missed_slot else ()), known.anchor_at)
    next_at = next(schedule.timing.after(last, anchor=known.anchor_at), None)
    return replace(known, last_slot=last if last > known.anchor_at else None, next_at=next_at)


def begun(timing: Timing, now: datetime) -> tuple[datetime, datetime | None]:
    """The anchor and the first slot of a schedule that begins now."""
    anchor = now.astimezone(UTC).replace(microsecond=0)
    return anchor, next(timing.after(anchor, anchor=anchor), None)


def upcoming(schedule: Schedule, known: Known | None, *, now: datetime, count: int) -> list[datetime]:
    """Its next slots after `now`. Of an interval nobody knows them before a tick has seen it: none."""
    if known is None or known.fingerprint != schedule.timing.fingerprint or known.removed_at is not None:
        if isinstance(schedule.timing, Every):
            return []
        return list(islice(schedule.timing.after(now, anchor=now), count))
    return list(islice(schedule.timing.after(now, anchor=known.anchor_at), count))


def oldest(
    slots: Mapping[str, Iterator[datetime]], next_at: Mapping[str, datetime], most: int = MOST
) -> dict[str, tuple[datetime, ...]]:
    """The oldest slots of all schedules, `most` together. Without those schedules whose turn has not come.

    The slots of one are not computed before its stored next one is among the oldest: there may be a thousand schedules.
    """

    def told(name: str) -> Iterator[tuple[datetime, str, bool]]:
        yield next_at[name], name, False
        yield from ((slot, name, True) for slot in slots[name])

    found: dict[str, list[datetime]] = {}
    left = most
    for slot, name, is_real in merge(*map(told, slots)):
        if left == 0:
            break
        found.setdefault(name, [])
        if is_real:
            found[name].append(slot)
            left -= 1
    return {name: tuple(of_it) for name, of_it in found.items()}


def most_counted(schedules: int) -> int:
    """How many missed slots of each are counted, where so many schedules may have missed some."""
    return max(1, min(MOST_COUNTED, COUNTED_TOGETHER // max(schedules, 1)))


def _last(slots: Iterator[datetime]) -> datetime | None:
    last = None
    for last in slots:  # noqa: B007 - the last one is what is wanted
        pass
    return last
