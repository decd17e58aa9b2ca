from __future__ import annotations

from datetime import UTC, timedelta

import pytest

from app.domain import timings
from app.domain.schedules import Cron, Every, Timing


def parse(written: str) -> Timing:
    return timings.parse(written, timezone="UTC", zone=UTC)


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("0 9 * * *", "0 9 * * *"),
        ("  */15   9-17 * jan-mar mon,fri ", "*/15 9-17 * JAN-MAR MON,FRI"),
        ("0 9 L * *", "0 9 L * *"),
        ("0 9 * * 5#2", "0 9 * * 5#2"),
        ("0 0 29 2 *", "0 0 29 2 *"),
        ("0 0 31 2 MON", "0 0 31 2 MON"),
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_a_line_or_a_word_for_one(written: str, line: str):
    timing = parse(written)

    assert isinstance(timing, Cron)
    assert timing.line == line


@pytest.mark.parametrize(
    ("written", "interval"),
    [
        ("@every 6h", timedelta(hours=6)),
        ("@every 90m", timedelta(minutes=90)),
        ("@every  1s", timedelta(seconds=1)),
        ("@Every 2D", timedelta(days=2)),
        ("@every 1h30m", timedelta(minutes=90)),
        ("@every 1w2d3h4m5s", timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5)),
        ("@every 366d", timedelta(days=366)),
    ],
)
def test_an_interval(written: str, interval: timedelta):
    timing = parse(written)

    assert isinstance(timing, Every)
    assert timing.interval == interval


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("@reboot", "has no meaning for a service that sleeps"),
        ("@fortnightly", "is none of @hourly, @daily"),
        ("@every", 'says no interval; write it as in "@every 6h"'),
        ("@every 6", "says no interval"),
        ("@every 1.5h", "says no interval"),
        ("@every 30m1h", "says no interval"),
        ("@every -1h", "says no interval"),
        ("@every 0s", "from one second to a year"),
        ("@every 367d", "from one second to a year"),
        ("@every 999999999d", "from one second to a year"),
        ("@every 999999999w", "from one second to a year"),
        ("daily", "must have five fields (minute, hour, day of the month, month, day of the week)"),
        ("0 0 9 * * *", "has six fields"),
        ("60 9 * * *", "has a wrong minute; write 0 to 59"),
        ("0 24 * * *", "has a wrong hour; write 0 to 23"),
        ("0 9 32 * *", "has a wrong day of the month"),
        ("0 9 ? * *", "has a wrong day of the month"),
        ("0 9 * 13 *", "has a wrong month"),
        ("0 9 * * 8", "has a wrong day of the week"),
        ("0 9 * * ²L", "has a wrong day of the week"),
        ("*/0 9 * * *", "has a wrong minute"),
        (f"{'9' * 5000} 9 * * *", "has a wrong minute"),
        ("0 9 31 2 *", "never fires"),
        ("0 9 30 2 */2", "never fires"),
        ("0 9 31 4,6,9,11 *", "never fires"),
    ],
)
def test_what_is_none_is_told(written: str, told: str):
    with pytest.raises(ValueError, match=r".") as refused:
        parse(written)

    assert told in str(refused.value)
