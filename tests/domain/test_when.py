from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

import pytest

from app.domain import when
from app.domain.words import WORDS_BY_LANGUAGE

BANGKOK = ZoneInfo("Asia/Bangkok")
NOW = datetime(2026, 11, 30, 3, 15, tzinfo=UTC)
"""A Monday, a quarter past ten in Bangkok."""

DAY = timedelta(days=1)


def told(at: datetime, language: str = "en", style: when.Style = "time", zone: ZoneInfo = BANGKOK) -> str:
    return when.told(at, now=NOW, zone=zone, language=language, style=style)


@pytest.mark.parametrize(
    ("language", "today", "tomorrow", "yesterday", "dated", "next_year"),
    [
        ("en", "today 10:15", "tomorrow 10:15", "yesterday 10:15", "Mon 7 Dec 10:15", "Fri 1 Jan 2027 10:15"),
        ("th", "วันนี้ 10:15", "พรุ่งนี้ 10:15", "เมื่อวาน 10:15", "จ. 7 ธ.ค. 10:15", "ศ. 1 ม.ค. 2570 10:15"),
        ("vi", "hôm nay 10:15", "ngày mai 10:15", "hôm qua 10:15", "T2 7/12 10:15", "T6 1/1/2027 10:15"),
        (
            "my",
            "ယနေ့ 10:15",
            "မနက်ဖြန် 10:15",
            "မနေ့က 10:15",
            "တနင်္လာ ဒီဇင်ဘာ 7 10:15",
            "သောကြာ ဇန်နဝါရီ 1 2027 10:15",
        ),
    ],
)
def test_an_instant_is_told_in_the_language_of_who_reads_it(  # noqa: PLR0917 - one column each
    language: str, today: str, tomorrow: str, yesterday: str, dated: str, next_year: str
):
    assert told(NOW, language) == today
    assert told(NOW + DAY, language) == tomorrow
    assert told(NOW - DAY, language) == yesterday
    assert told(NOW + 7 * DAY, language) == dated
    assert told(NOW + 32 * DAY, language) == next_year


def test_a_day_is_that_of_the_wall_where_it_is_read():
    late = datetime(2026, 11, 30, 17, 30, tzinfo=UTC)

    assert told(late) == "tomorrow 00:30"
    assert told(late, zone=ZoneInfo("Europe/Berlin")) == "today 18:30"


def test_the_day_or_the_time_alone():
    assert told(NOW, style="date") == "Mon 30 Nov"
    assert told(NOW, style="clock") == "10:15"


def test_an_unknown_language_is_told_in_english():
    assert told(NOW, "xx") == "today 10:15"


def test_every_language_that_is_spoken_has_a_calendar():
    assert when.CALENDAR_BY_LANGUAGE.keys() == WORDS_BY_LANGUAGE.keys()
    for calendar in when.CALENDAR_BY_LANGUAGE.values():
        assert (len(calendar.weekdays.split()), len(calendar.months.split())) == (7, 12)


def test_styles_are_those_that_a_template_may_name():
    assert get_args(when.Style) == when.STYLES
