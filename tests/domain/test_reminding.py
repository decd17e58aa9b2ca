from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from app.domain import reminding
from app.domain.bookings import Booking, read_start
from app.domain.phrasing import WordingError
from app.domain.reminding import ReminderWording

NOW = datetime(2026, 12, 23, 2, tzinfo=UTC)


def booking(title: str = "ตัดผม", starts_at: str = "2026-12-24T09:00", timezone: str = "Asia/Bangkok") -> Booking:
    return Booking(ref="b-1", title=title, start=read_start(starts_at, ZoneInfo(timezone)), timezone=timezone)


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "Reminder: ตัดผม, tomorrow 09:00"),
        ("th", "แจ้งเตือน: ตัดผม พรุ่งนี้ 09:00"),
        ("vi", "Nhắc lịch: ตัดผม, ngày mai 09:00"),
        ("my", "သတိပေးချက်: ตัดผม၊ မနက်ဖြန် 09:00"),
        ("xx", "Reminder: ตัดผม, tomorrow 09:00"),
    ],
)
def test_the_services_own_words_are_in_the_persons_language_and_zone(language: str, told: str):
    assert reminding.text(booking(), now=NOW, language=language) == told


def test_an_all_day_booking_is_told_without_a_time():
    near = reminding.text(booking(starts_at="2026-12-24"), now=NOW, language="th")
    far = reminding.text(booking(starts_at="2026-12-31"), now=NOW, language="en")

    assert near == "แจ้งเตือน: ตัดผม พรุ่งนี้"
    assert far == "Reminder: ตัดผม, Thu 31 Dec"


def test_a_title_is_in_one_line_and_never_empty():
    odd = reminding.text(booking(title="a\nb\u202e {when} %s"), now=NOW, language="en")
    empty = reminding.text(booking(title="\u202e"), now=NOW, language="en")

    assert odd == "Reminder: a b {when} %s, tomorrow 09:00"
    assert empty == "Reminder: b-1, tomorrow 09:00"


def test_a_template_is_given_the_booking():
    source = "{{ title }}|{{ when }}|{{ date }}|{{ time }}|{{ all_day }}|{{ timezone }}|{{ language }}"

    timed = ReminderWording(source).text(booking(), now=NOW, language="th")
    all_day = ReminderWording(source).text(booking(starts_at="2026-12-24"), now=NOW, language="en")

    assert timed == "ตัดผม|พรุ่งนี้ 09:00|พฤ. 24 ธ.ค.|09:00|false|Asia/Bangkok|th"
    assert all_day == "ตัดผม|tomorrow|Thu 24 Dec||true|Asia/Bangkok|en"


def test_a_template_can_choose_and_filter():
    source = '{% if all_day %}all day{% else %}at {{ start|time("clock") }}{% endif %}: {{ title|upper }}'

    assert ReminderWording(source).text(booking(title="cut"), now=NOW, language="en") == "at 09:00: CUT"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{{ titel }}", 'line 1: there is no "titel"; there are title, when'),
        ("ok\n{{ title.upper() }}", "line 2: a call is not in the language"),
        ("{% for c in title %}{{ c }}{% endfor %}", "loops over something else"),
        ("{{ title", "line 1"),
        ("x" * 2001, "is longer than 2,000 characters"),
    ],
)
def test_a_template_that_cannot_be_used_is_told_with_its_line(source: str, told: str):
    with pytest.raises(WordingError, match=told):
        ReminderWording(source)


def test_a_template_that_fails_or_makes_nothing_is_told():
    for source in ("{{ title|int / all_day|int }}", "{% if all_day %}x{% endif %}"):
        with pytest.raises(WordingError):
            ReminderWording(source).text(booking(title="0"), now=NOW, language="en")


def test_what_it_makes_fits_into_one_message():
    wording = ReminderWording("{{ title }} " * 20)

    assert len(wording.text(booking(title="ก" * 500), now=NOW, language="th")) <= 1000
