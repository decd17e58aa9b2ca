from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import quiet
from app.domain.quiet import QuietHours

NIGHT = quiet.parse("22:00-07:00")
BANGKOK = ZoneInfo("Asia/Bangkok")
BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = timedelta(minutes=1)


def local(zone: ZoneInfo, *at: int, fold: int = 0) -> datetime:
    return datetime(*at, tzinfo=zone, fold=fold)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("written", "begins", "ends"),
    [
        ("22:00-07:00", time(22), time(7)),
        ("9:30 - 17:05", time(9, 30), time(17, 5)),
        ("00:00-06:00", time(0), time(6)),
        ("20:00–24:00", time(20), time(0)),
    ],
)
def test_hours_are_read(written: str, begins: time, ends: time):
    assert quiet.parse(written) == QuietHours(begins, ends)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("22-07", "is no span of hours"),
        ("22:00", "is no span of hours"),
        ("22:00-07:00-09:00", "is no span of hours"),
        ("25:00-07:00", "no clock shows"),
        ("22:60-07:00", "no clock shows"),
        ("24:30-07:00", "no clock shows"),
        ("22:00-22:00", "always quiet or never"),
        ("00:00-24:00", "always quiet or never"),
    ],
)
def test_what_is_no_span_of_hours_is_refused(written: str, told: str):
    with pytest.raises(ValueError, match=told):
        quiet.parse(written)


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ((2026, 11, 30, 21, 59), None),
        ((2026, 11, 30, 22, 0), (2026, 12, 1, 7, 0)),
        ((2026, 12, 1, 0, 0), (2026, 12, 1, 7, 0)),
        ((2026, 12, 1, 6, 59, 59), (2026, 12, 1, 7, 0)),
        ((2026, 12, 1, 7, 0), None),
    ],
)
def test_a_night_goes_over_midnight(at: tuple[int, ...], until: tuple[int, ...] | None):
    found = quiet.quiet_until(local(BANGKOK, *at), BANGKOK, NIGHT)

    assert found == (None if until is None else local(BANGKOK, *until))


def test_a_siesta_stays_within_the_day():
    siesta = quiet.parse("13:00-15:00")

    assert quiet.quiet_until(local(BANGKOK, 2026, 11, 30, 14), BANGKOK, siesta) == local(BANGKOK, 2026, 11, 30, 15)
    assert quiet.quiet_until(local(BANGKOK, 2026, 11, 30, 16), BANGKOK, siesta) is None


def test_a_night_is_as_long_as_the_clocks_make_it():
    spring = quiet.quiet_until(local(BERLIN, 2026, 3, 28, 22), BERLIN, NIGHT)
    autumn = quiet.quiet_until(local(BERLIN, 2026, 10, 24, 22), BERLIN, NIGHT)

    assert spring is not None
    assert autumn is not None
    assert spring - local(BERLIN, 2026, 3, 28, 22).astimezone(UTC) == timedelta(hours=8)
    assert autumn - local(BERLIN, 2026, 10, 24, 22).astimezone(UTC) == timedelta(hours=10)


def test_hours_that_end_where_the_clock_is_put_forward_end_there():
    hours = quiet.parse("22:00-02:30")

    assert quiet.quiet_until(local(BERLIN, 2026, 3, 29, 1, 30), BERLIN, hours) == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_an_hour_that_comes_twice_is_quiet_twice():
    hours = quiet.parse("02:00-02:30")

    first = quiet.quiet_until(local(BERLIN, 2026, 10, 25, 2, 10), BERLIN, hours)
    between = quiet.quiet_until(local(BERLIN, 2026, 10, 25, 2, 40), BERLIN, hours)
    second = quiet.quiet_until(local(BERLIN, 2026, 10, 25, 2, 10, fold=1), BERLIN, hours)

    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert between is None
    assert second == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def test_hours_that_would_end_within_the_hour_that_comes_twice_do_not_end_before_it_has_begun():
    hours = quiet.parse("22:00-03:00")

    assert quiet.quiet_until(local(BERLIN, 2026, 10, 25, 1), BERLIN, hours) == datetime(2026, 10, 25, 2, tzinfo=UTC)


@cache
def zones() -> list[str]:
    return sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})


@cache
def changes(name: str) -> list[datetime]:
    """The minutes in which the clocks of a zone were changed since 1970, or the day of this text's writing."""
    zone = ZoneInfo(name)
    found = []
    day = datetime(1970, 1, 1, tzinfo=UTC)
    while day.year < 2038:
        later = day + timedelta(days=8)
        if day.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            low, high = int(day.timestamp()) // 60, int(later.timestamp()) // 60
            while high - low > 1:
                middle = (low + high) // 2
                same = datetime.fromtimestamp(middle * 60, zone).utcoffset() == day.astimezone(zone).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            found.append(datetime.fromtimestamp(high * 60, UTC))
        day = later
    return found or [datetime(2026, 11, 30, tzinfo=UTC)]


@st.composite
def nights(draw: st.DrawFn) -> tuple[ZoneInfo, datetime, QuietHours]:
    """An instant near a change of clocks, or up to a day away, and hours that begin or end near it as often as not."""
    name = draw(st.sampled_from(zones()))
    change = draw(st.sampled_from(changes(name)))
    zone = ZoneInfo(name)
    at = change + draw(st.integers(-1500, 1500)) * MINUTE
    wall = change.astimezone(zone)
    minutes = st.one_of(
        st.integers(0, 1439), st.integers(-90, 90).map(lambda near: (wall.hour * 60 + wall.minute + near) % 1440)
    )
    begins = draw(minutes)
    ends = draw(minutes.filter(lambda minute: minute != begins))
    hours = QuietHours(time(*divmod(begins, 60)), time(*divmod(ends, 60)))
    return zone, at, hours


def walked(at: datetime, zone: ZoneInfo, hours: QuietHours) -> datetime | None:
    """By looking at the clock each minute."""
    looked = at
    while hours.hold(looked.astimezone(zone).time()):
        looked += MINUTE
    return None if looked == at else looked


@settings(max_examples=400, deadline=None)
@given(nights())
def test_it_is_quiet_for_as_long_as_the_clock_on_the_wall_says_so(night: tuple[ZoneInfo, datetime, QuietHours]):
    zone, at, hours = night

    found = quiet.quiet_until(at, zone, hours)

    assert found == walked(at, zone, hours)


@settings(max_examples=200, deadline=None)
@given(nights())
def test_the_next_day_begins_with_its_first_minute(night: tuple[ZoneInfo, datetime, QuietHours]):
    zone, at, _ = night
    looked, today = at, at.astimezone(zone).date()
    while looked.astimezone(zone).date() <= today:
        looked += MINUTE

    found = quiet.next_day(at, zone)

    assert looked - MINUTE < found <= looked
    assert found.astimezone(zone).date() > today


def test_seconds_are_counted():
    at = local(BANGKOK, 2026, 11, 30, 23, 0, 1, 5)

    assert quiet.quiet_until(at, BANGKOK, NIGHT) == local(BANGKOK, 2026, 12, 1, 7)


def test_who_is_told_as_often_as_they_want_is_told_again_the_next_day():
    now = local(BANGKOK, 2026, 11, 30, 12)

    assert quiet.held_until(now, BANGKOK, full_since=now - timedelta(hours=11)) == local(BANGKOK, 2026, 12, 1, 0)
    assert quiet.held_until(now, BANGKOK, full_since=now - timedelta(hours=13)) is None


def test_a_full_day_that_ends_in_the_night_is_told_in_the_morning():
    now = local(BANGKOK, 2026, 11, 30, 12)

    assert quiet.held_until(now, BANGKOK, NIGHT, full_since=now) == local(BANGKOK, 2026, 12, 1, 7)


def test_nothing_is_held_where_nothing_is_said():
    assert quiet.held_until(local(BANGKOK, 2026, 11, 30, 3), BANGKOK) is None


def test_a_day_may_begin_at_one_o_clock():
    beirut = ZoneInfo("Asia/Beirut")  # 27 March 2022: from midnight to one

    found = quiet.next_day(local(beirut, 2022, 3, 26, 12), beirut)

    assert found.astimezone(beirut).date() == date(2022, 3, 27)
    assert found.astimezone(beirut).time() == time(1)
