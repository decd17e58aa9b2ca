"""Which slots come, whoever ticks and however late; in every zone there is."""

from __future__ import annotations

import random
import zoneinfo
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import takewhile
from operator import ge
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from app.domain import schedules, timings
from app.domain.schedules import CLOCK_BACK, Cron, Every, Known, Schedule

YEARS = (datetime(2025, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
GRACE = timedelta(minutes=30)

LINES = ("@daily", "30 2 * * *", "*/15 * * * *", "0 9 * * MON")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def schedule(written: str, zone: str = "UTC", **more: Any) -> Schedule:
    timing = timings.parse(written, timezone=zone, zone=UTC if zone == "UTC" else ZoneInfo(zone))
    return Schedule(name="s", written=written, timing=timing, job="j", payload={}, **({"grace": GRACE} | more))


def seen(scheduled: Schedule, now: datetime, **more: Any) -> Known:
    """As a tick at that time leaves one that it sees for the first time."""
    anchor_at, next_at = schedules.begun(scheduled.timing, now)
    fingerprint = scheduled.timing.fingerprint
    given = {"anchor_at": anchor_at, "next_at": next_at, "configured_at": now} | more
    return Known(name="s", fingerprint=fingerprint, revision=1, **given)


def ticked(scheduled: Schedule, known: Known, now: datetime) -> tuple[Known, tuple[datetime, ...]]:
    """As a tick does it."""
    if known.next_at is None or known.next_at > now:
        return known, ()
    come = schedules.come(scheduled, known, now=now)
    return schedules.past(scheduled, known, come), come.fire


def fired(scheduled: Schedule, ticks: Iterator[datetime], known: Known) -> list[datetime]:
    slots: list[datetime] = []
    for now in ticks:
        known, came = ticked(scheduled, known, now)
        slots += came
    return slots


@cache
def changes(zone: str) -> tuple[datetime, ...]:
    """When its clocks are changed in these years, to the second."""
    clock = ZoneInfo(zone)
    found = []
    at = YEARS[0]
    while at < YEARS[1]:
        if offset(at, clock) != offset(at + DAY, clock):
            low, high = at, at + DAY
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                low, high = (middle, high) if offset(middle, clock) == offset(at, clock) else (low, middle)
            found.append(high.replace(microsecond=0))
        at += DAY
    return tuple(found)


def offset(at: datetime, clock: ZoneInfo) -> timedelta | None:
    return at.astimezone(clock).utcoffset()


@cache
def unlike() -> list[str]:
    """Of the zones whose clocks show the same in these years, one."""
    by_clock = {}
    for zone in sorted(zoneinfo.available_timezones()):
        clock = ZoneInfo(zone)
        shown = tuple((at, offset(at, clock)) for at in changes(zone))
        by_clock[offset(YEARS[0], clock), shown] = zone
    return list(by_clock.values())


def around(zone: str, apart: timedelta = 2 * DAY) -> list[tuple[datetime, datetime]]:
    """So long before and after each change; of a zone without, of the end of a year."""
    instants = changes(zone) or (datetime(2026, 12, 31, 12, tzinfo=UTC),)
    return [(at - apart, at + apart) for at in instants]


def at_random(begin: datetime, end: datetime, chance: random.Random) -> Iterator[datetime]:
    """Ticks that come up to five hours late, the last one at the end."""
    at = begin
    while at < end:
        yield at
        at += timedelta(seconds=chance.choice([60, 900, 5 * 3600]) * (0.5 + chance.random() / 2))
    yield end


@pytest.mark.parametrize("line", LINES)
def test_in_every_zone_each_slot_of_the_library_is_fired_once_however_the_clock_is_changed(line: str):
    chance = random.Random(20261130)
    for zone in unlike():
        scheduled = schedule(line, zone, catch_up="all")
        for begin, end in around(zone, 6 * HOUR if line.startswith("*") else 2 * DAY):
            assert isinstance(scheduled.timing, Cron)
            iterated = (at.astimezone(UTC) for at in CronSim(scheduled.timing.line, begin.astimezone(ZoneInfo(zone))))
            expected = list(takewhile(partial(ge, end), iterated))

            slots = fired(scheduled, at_random(begin, end, chance), seen(scheduled, begin))

            assert slots == expected, (zone, begin)


@pytest.mark.parametrize("line", ["30 2 * * *", "@daily", "0 3 * * *", "30 1 * * *"])
def test_in_every_zone_what_is_daily_comes_once_on_each_day(line: str):
    for zone in unlike():
        clock = ZoneInfo(zone)
        scheduled = schedule(line, zone)
        for begin, end in around(zone):
            every_minute = (begin + timedelta(minutes=n) for n in range(4 * 24 * 60, -1, -7))

            slots = fired(scheduled, iter(sorted(every_minute)), seen(scheduled, begin))

            days = Counter(slot.astimezone(clock).date() for slot in slots)
            whole = {(begin + n * DAY).astimezone(clock).date() for n in (1, 2, 3)} - {
                begin.astimezone(clock).date(),
                end.astimezone(clock).date(),
            }
            assert {day: days[day] for day in whole} == dict.fromkeys(whole, 1), (zone, begin)


def test_there_are_zones_with_changes_to_try():
    assert len(unlike()) > 40
    assert changes("Europe/Berlin")[:2] == (
        datetime(2025, 3, 30, 1, tzinfo=UTC),
        datetime(2025, 10, 26, 1, tzinfo=UTC),
    )


BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


@pytest.mark.parametrize(
    ("zone", "begin", "slots"),
    [
        # Skipped: as soon as the clock shows a later time. Doubled: the first of the two.
        (BERLIN, datetime(2026, 3, 28, 12, tzinfo=UTC), ["2026-03-29 01:00", "2026-03-30 00:30"]),
        (BERLIN, datetime(2026, 10, 24, 12, tzinfo=UTC), ["2026-10-25 00:30", "2026-10-26 01:30"]),
        (NEW_YORK, datetime(2026, 3, 7, 12, tzinfo=UTC), ["2026-03-08 07:00", "2026-03-09 06:30"]),
        (NEW_YORK, datetime(2026, 10, 31, 12, tzinfo=UTC), ["2026-11-01 07:30", "2026-11-02 07:30"]),
    ],
)
def test_half_past_two_is_once_a_day(zone: str, begin: datetime, slots: list[str]):
    scheduled = schedule("30 2 * * *", zone)

    minutes = (begin + timedelta(minutes=n) for n in range(2 * 24 * 60))

    assert [f"{slot:%Y-%m-%d %H:%M}" for slot in fired(scheduled, minutes, seen(scheduled, begin))] == slots


def test_one_that_is_first_seen_in_the_second_of_two_like_hours_has_no_slot_in_the_past():
    begin = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10 for the second time

    assert seen(schedule("30 2 * * *", BERLIN), begin).next_at == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_a_zone_has_its_own_time():
    assert seen(schedule("0 8 * * *", "Africa/Blantyre"), NOON).next_at == datetime(2026, 12, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("catch_up", "minutes", "slots"),
    [
        ("latest", 10, [10]),
        ("all", 10, list(range(1, 11))),
        ("all", 250, list(range(1, 101))),
        ("none", 10, [10]),
        ("none", 10.4, []),
    ],
)
def test_what_was_slept_through_is_made_up_as_the_schedule_says(catch_up: Any, minutes: float, slots: list[int]):
    scheduled = schedule("* * * * *", catch_up=catch_up, grace=timedelta(seconds=40))
    known = seen(scheduled, NOON)

    late = NOON + timedelta(minutes=minutes) + timedelta(seconds=30)
    _, came = ticked(scheduled, known, late)

    assert [round((slot - NOON) / timedelta(minutes=1)) for slot in came] == slots


def test_what_is_left_of_all_is_due_at_once():
    scheduled = schedule("* * * * *", catch_up="all")
    known = seen(scheduled, NOON)
    now = NOON + timedelta(minutes=250)

    counts = []
    for _ in range(4):
        known, came = ticked(scheduled, known, now)
        counts.append(len(came))

    assert counts == [100, 100, 50, 0]
    assert known.next_at == NOON + timedelta(minutes=251)


def test_what_was_missed_is_counted_and_no_more_than_that():
    scheduled = schedule("0 * * * *", catch_up="none", grace=timedelta(minutes=90))
    known = seen(scheduled, NOON)

    some = schedules.come(scheduled, known, now=NOON + timedelta(hours=4, minutes=10))
    later = schedules.past(scheduled, known, some)
    none = schedules.come(scheduled, later, now=NOON + timedelta(hours=5, minutes=10))

    assert (some.missed, some.missed_slot, some.fire) == (2, NOON + 2 * HOUR, (NOON + 4 * HOUR,))
    assert later.last_slot == NOON + 4 * HOUR
    assert (none.missed, none.missed_slot, none.fire) == (0, None, (NOON + 5 * HOUR,))


def test_one_that_is_too_late_is_passed_over_for_good():
    scheduled = schedule("0 9 * * *", catch_up="none")
    known = seen(scheduled, NOON)

    known, came = ticked(scheduled, known, NOON + DAY)
    again, twice = ticked(scheduled, known, NOON + DAY + HOUR)

    assert (came, twice) == ((), ())
    assert known == again
    assert known.last_slot == NOON + DAY - 3 * HOUR
    assert known.next_at == NOON + 2 * DAY - 3 * HOUR


def test_missed_slots_without_number_are_counted_so_far():
    scheduled = schedule("* * * * *", catch_up="none")

    come = schedules.come(scheduled, seen(scheduled, NOON), now=NOON + 100 * DAY)

    assert (come.missed, come.uncounted) == (1000, True)
    assert come.missed_slot == NOON + 100 * DAY - GRACE - timedelta(minutes=1)
    assert come.fire == (NOON + 100 * DAY,)


def test_of_many_schedules_few_slots_each_are_counted_and_few_are_computed(monkeypatch: pytest.MonkeyPatch):
    computed = 0

    class Counting(CronSim):
        def __next__(self) -> datetime:
            nonlocal computed
            computed += 1
            return super().__next__()

    monkeypatch.setattr(schedules, "CronSim", Counting)
    scheduled = schedule("* * * * *", "Asia/Bangkok", catch_up="none")
    most = schedules.most_counted(1000)

    come = schedules.come(scheduled, seen(scheduled, NOON), now=NOON + 20 * DAY, most_counted=most)

    assert (come.missed, come.uncounted, come.missed_slot) == (10, True, NOON + 20 * DAY - GRACE - MINUTE)
    assert computed < 30
    assert [schedules.most_counted(count) for count in (0, 1, 10, 11, 50_000)] == [1000, 1000, 1000, 909, 1]


def test_what_is_missed_to_the_bound_is_all_counted():
    scheduled = schedule("* * * * *", catch_up="none", grace=MINUTE)
    now = NOON + 11.5 * MINUTE

    exact = schedules.come(scheduled, seen(scheduled, NOON), now=now, most_counted=10)
    more = schedules.come(scheduled, seen(scheduled, NOON), now=now + MINUTE, most_counted=10)

    assert [(come.missed, come.uncounted) for come in (exact, more)] == [(10, False), (10, True)]


def test_an_interval_is_counted_from_when_it_was_seen_and_does_not_drift():
    scheduled = schedule("@every 90m")
    known = seen(scheduled, NOON.replace(microsecond=400))
    chance = random.Random(1)

    slots = fired(schedule("@every 90m", catch_up="all"), at_random(NOON, NOON + 5 * DAY, chance), known)

    assert known.next_at == NOON + 1.5 * HOUR
    assert slots == [NOON + n * 1.5 * HOUR for n in range(1, 81)]


def test_the_newest_of_an_interval_is_found_without_a_walk():
    second = schedule("@every 1s")

    _, came = ticked(second, seen(second, NOON), NOON + 366 * DAY)

    assert came == (NOON + 366 * DAY,)


@pytest.mark.parametrize("line", ["* * * * *", "0 9 * * MON", "0 0 29 2 *", "@monthly", "* 3 1 1 *"])
def test_the_newest_is_the_last_of_all(line: str):
    scheduled = schedule(line, BERLIN)
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    known = seen(scheduled, begin)

    for days in (0.02, 1, 30) if line == "* * * * *" else (1, 30, 400):
        until = begin + days * DAY
        walked = list(takewhile(partial(ge, until), scheduled.timing.after(begin, anchor=begin)))
        newest = scheduled.timing.newest(after=begin, until=until, anchor=known.anchor_at)
        assert newest == (walked[-1] if walked else None)


def test_one_that_is_removed_and_back_begins_now_unless_this_process_has_had_it_all_along():
    scheduled = schedule("0 9 * * *")
    known = seen(scheduled, NOON)
    removed = seen(scheduled, NOON, removed_at=NOON + HOUR)
    now = NOON + 2 * HOUR

    assert schedules.goes_on(scheduled, known, now=now, started=now)
    assert not schedules.goes_on(scheduled, removed, now=now, started=now - 0.5 * HOUR)
    assert schedules.goes_on(scheduled, removed, now=now, started=now - 3 * HOUR)
    assert not schedules.goes_on(scheduled, None, now=now, started=now)


def test_another_line_zone_or_interval_begins_now_and_another_way_to_write_it_does_not():
    known = seen(schedule("0 9 * * mon", BERLIN), NOON)

    for other in (schedule("0 9 * * TUE", BERLIN), schedule("0 9 * * MON"), schedule("@every 2d")):
        assert not schedules.goes_on(other, known, now=NOON, started=NOON)
    assert schedules.goes_on(schedule(" 0  9 * * MON", BERLIN, catch_up="all"), known, now=NOON, started=NOON)
    assert schedule("@midnight").timing.fingerprint == schedule("0 0 * * *").timing.fingerprint
    assert schedule("@every 60m").timing.fingerprint == schedule("@every 1h", BERLIN).timing.fingerprint


def test_a_process_takes_a_schedule_from_one_that_was_started_before_and_from_a_later_one_that_is_gone():
    now = NOON + 5 * HOUR
    known = seen(schedule("0 9 * * *"), NOON)

    def may_take(started: datetime, **more: Any) -> bool:
        unheard = schedules.unheard(timedelta(hours=1))
        return schedules.may_take(replace(known, **more), now=now, started=started, unheard=unheard)

    assert may_take(NOON + MINUTE)
    assert not may_take(NOON), "nor do they in turn that were started together"
    assert not may_take(NOON - HOUR)
    assert not may_take(NOON - HOUR, objected_at=now - 2.9 * HOUR)
    assert may_take(NOON - HOUR, objected_at=now - 3 * HOUR)
    assert may_take(NOON - HOUR, configured_at=now + 2 * CLOCK_BACK)
    assert schedules.unheard(MINUTE) == HOUR


def test_a_clock_that_was_wrong_by_years_silences_nothing():
    scheduled = schedule("0 9 * * *")
    wrong = seen(scheduled, NOON + 3650 * DAY)
    a_little = seen(scheduled, NOON + CLOCK_BACK / 2)

    assert not schedules.goes_on(scheduled, wrong, now=NOON, started=NOON)
    assert schedules.goes_on(scheduled, a_little, now=NOON, started=NOON)


def test_new_rules_of_a_zone_move_a_slot_that_was_kept_by_the_old_ones():
    scheduled = schedule("0 9 * * *")
    known = seen(scheduled, NOON)
    early = NOON + DAY - 4 * HOUR  # when it would have been

    known, came = ticked(scheduled, Known(**{**as_dict(known), "next_at": early}), early)

    assert came == ()
    assert known.next_at == NOON + DAY - 3 * HOUR


def as_dict(known: Known) -> dict[str, Any]:
    return {name: getattr(known, name) for name in Known.__slots__}


def test_the_oldest_of_all_schedules_are_fired_first():
    due = {
        "a": tuple(NOON + n * HOUR for n in range(5)),
        "b": (NOON + 0.5 * HOUR, NOON + 9 * HOUR),
        "c": (),
    }

    next_at = {name: min(slots, default=NOON) for name, slots in due.items()}

    def oldest(*most: int) -> dict[str, tuple[datetime, ...]]:
        return schedules.oldest({name: iter(slots) for name, slots in due.items()}, next_at, *most)

    assert oldest() == due, "one whose stored slot was none is moved too"
    assert {name: len(slots) for name, slots in oldest(4).items()} == {"a": 3, "b": 1, "c": 0}
    assert oldest(1) == {"a": due["a"][:1]}, "of the others nothing is computed"


def test_what_comes_next_is_shown_also_before_a_tick_has_seen_it():
    cron, every = schedule("0 9 * * *"), schedule("@every 2h")
    nine = datetime(2026, 12, 1, 9, tzinfo=UTC)

    assert schedules.upcoming(cron, None, now=NOON, count=2) == [nine, nine + DAY]
    assert schedules.upcoming(every, None, now=NOON, count=2) == []
    assert isinstance(every.timing, Every)
    assert schedules.upcoming(every, seen(every, NOON - HOUR), now=NOON, count=1) == [NOON + HOUR]
