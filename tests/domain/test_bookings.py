from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.domain.bookings import Rule, Start, course, instant, nobody, read_start, zone_of

BANGKOK, BERLIN, NEW_YORK = ZoneInfo("Asia/Bangkok"), ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
DAY_BEFORE = Rule(name="day_before", before=timedelta(hours=24))
HOUR_BEFORE = Rule(name="hour_before", before=timedelta(hours=1))
RULES = [DAY_BEFORE, HOUR_BEFORE]
NINE = datetime(2026, 12, 24, 9, tzinfo=UTC)


def at(written: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


STARTS = {
    ("2026-12-24T09:00:00+07:00", BERLIN): datetime(2026, 12, 24, 2, tzinfo=UTC),
    ("2026-12-24T09:00:00Z", BANGKOK): datetime(2026, 12, 24, 9, tzinfo=UTC),
    ("2026-12-24T09:00", BANGKOK): datetime(2026, 12, 24, 2, tzinfo=UTC),
    (" 2026-12-24 09:00:30 ", BERLIN): datetime(2026, 12, 24, 8, 0, 30, tzinfo=UTC),
    ("2026-07-01T09:00", BERLIN): datetime(2026, 7, 1, 7, tzinfo=UTC),
    # put forward at 02:00: a time that does not exist is read by the offset from before, and so an hour later
    ("2027-03-28T02:30", BERLIN): datetime(2027, 3, 28, 1, 30, tzinfo=UTC),
    ("2027-03-14T02:30", NEW_YORK): datetime(2027, 3, 14, 7, 30, tzinfo=UTC),
    # put back at 03:00: of a time that comes twice the first one is meant
    ("2026-10-25T02:30", BERLIN): datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
    ("2026-10-25T02:30+01:00", BERLIN): datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
}


@pytest.mark.parametrize(("written", "zone"), STARTS)
def test_a_start_is_an_instant_or_a_time_on_the_wall(written: str, zone: ZoneInfo):
    assert read_start(written, zone) == Start(at=STARTS[written, zone], zone=zone)


def test_a_date_alone_is_all_of_that_day_in_its_zone():
    start = read_start("2026-12-24", BANGKOK)

    assert (start.at, start.all_day) == (datetime(2026, 12, 23, 17, tzinfo=UTC), True)
    assert read_start("2026-12-24", BANGKOK, all_day=True) == start


@pytest.mark.parametrize(
    ("written", "all_day", "told"),
    [
        (None, None, "must be a text in ISO 8601"),
        (1796083200, None, "must be a text in ISO 8601"),
        ("", None, "is no time in ISO 8601"),
        ("tomorrow", None, "is no time in ISO 8601"),
        ("24.12.2026 09:00", None, "is no time in ISO 8601"),
        ("2026-02-30T09:00", None, "is no time in ISO 8601"),
        ("2026-02-30", None, "is no time in ISO 8601"),
        ("2026-12-24T25:00", None, "is no time in ISO 8601"),
        ("20261224", None, "has no time of day"),
        ("2026-W52-4", None, "has no time of day"),
        ("2026-12-24T09:00", True, "must be a date alone"),
        ("2026-12-24", False, "is a date alone"),
        ("1969-12-24T09:00", None, "must lie between the years 1971 and 9997"),
        ("9999-12-24T09:00", None, "must lie between the years 1971 and 9997"),
    ],
)
def test_what_is_no_start_is_told_how_to_write_one(written: object, *, all_day: bool | None, told: str):
    with pytest.raises(ValueError, match=told):
        read_start(written, BANGKOK, all_day=all_day)


@pytest.mark.parametrize("name", ["Asia/Nowhere", "", "..", "Asia", "/etc/passwd", "a" * 5000, "Asia/Bang\0kok"])
def test_a_zone_that_is_none_is_refused(name: str):
    with pytest.raises(ValueError, match="is no time zone"):
        zone_of(name)


def test_of_reminders_that_have_all_passed_the_latest_is_due():
    start = Start(at=NINE, zone=UTC)

    before = course(start, RULES, NINE - timedelta(hours=25))
    between = course(start, RULES, NINE - timedelta(hours=24))
    after = course(start, RULES, NINE - timedelta(minutes=30))

    assert (before.due, before.next_at) == (None, NINE - timedelta(hours=24))
    assert between.due is not None
    assert (between.due.rule, between.next_at) == (DAY_BEFORE, NINE - timedelta(hours=1))
    assert ([one.rule for one in after.passed], after.next_at) == ([HOUR_BEFORE, DAY_BEFORE], None)


def test_without_reminders_nothing_ever_falls_due():
    assert course(Start(at=NINE, zone=UTC), [], NINE).next_at is None


def test_reminders_of_an_all_day_booking_count_from_nine_in_its_zone():
    start = read_start("2026-12-24", BANGKOK)

    found = instant(start, DAY_BEFORE)

    assert found.at == at("2026-12-23 09:00", "Asia/Bangkok")
    assert found.expires_at == at("2026-12-24 09:00", "Asia/Bangkok")


@pytest.mark.parametrize("day", ["2027-03-28", "2026-10-25", "2026-12-24"])
def test_all_day_reminders_are_told_by_the_clock_also_on_days_that_change_it(day: str):
    rule = Rule(name="morning", before=timedelta(minutes=30), all_day_at=time(7))

    found = instant(read_start(day, BERLIN), rule)

    assert found.at == at(f"{day} 06:30", "Europe/Berlin")


def test_a_day_before_is_24_hours_before_whatever_the_clocks_do():
    start = read_start("2027-03-28T12:00", BERLIN)

    assert instant(start, DAY_BEFORE).at == at("2027-03-27 11:00", "Europe/Berlin")


def test_somebody_without_a_name_is_never_told_by_an_address():
    assert nobody("line") == "bookings/line"
