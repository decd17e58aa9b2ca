from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from app.domain.bookings import Booking, Start
from tests.settings.conftest import Load, Problems

NOW = datetime(2026, 12, 23, 9, tzinfo=UTC)
BOOKING = Booking(ref="b", title="Cut", start=Start(at=NOW + timedelta(days=1), zone=UTC), timezone="UTC")


def test_a_reminder_has_a_time_before_and_the_services_words(load_text: Load):
    settings = load_text('[reminders.day_before]\nbefore = "24h"\n')

    reminder = settings.reminders["day_before"]
    assert (reminder.rule.name, reminder.rule.before) == ("day_before", timedelta(hours=24))
    assert reminder.rule.all_day_at == time(9)
    assert (reminder.wording, reminder.query) == (None, None)


def test_it_may_have_words_an_hour_and_a_query_of_its_own(load_text: Load):
    settings = load_text(
        '[reminders.x]\nbefore = "1h30m"\ntext = "{{ title }} {{ when }}"\nall_day_at = "18:30"\n'
        'query = """\nSELECT 1 AS ref;\n"""\n'
    )

    reminder = settings.reminders["x"]
    assert reminder.wording is not None
    assert reminder.wording.text(BOOKING, now=NOW, language="en") == "Cut tomorrow 09:00"
    assert (reminder.rule.all_day_at, reminder.query) == (time(18, 30), "SELECT 1 AS ref")


def test_another_time_is_another_fingerprint_and_other_words_are_not(load_text: Load):
    def fingerprint(lines: str) -> str:
        return load_text(f"[reminders.x]\n{lines}\n").reminders["x"].fingerprint

    first = fingerprint('before = "24h"')

    assert fingerprint('before = "1d"\ntext = "{{ title }}"') == first
    assert fingerprint('before = "25h"') != first
    assert fingerprint('before = "24h"\nall_day_at = "10:00"') != first
    assert fingerprint('before = "24h"\nquery = "SELECT 1"') != first


@pytest.mark.parametrize("query", ["WITH a AS (SELECT 1) SELECT * FROM a", "-- why\n select 1", "/* a */ (SELECT 1)"])
def test_a_query_begins_as_those_do_that_read(load_text: Load, query: str):
    assert load_text(f'[reminders.x]\nbefore = "1h"\nquery = """{query}"""\n').reminders["x"].query == query.strip()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", 'x.before: is missing; write how long before the start, as in before = "24h"'),
        ("before = 24", "x.before: must be a text in quotes"),
        ('before = "soon"', 'x.before: "soon" is no span of time; write it as in "24h"'),
        ('before = "0m"', 'x.before: "0m" must be from a minute to 366 days'),
        ('before = "1h"\nall_day_at = "9"', 'x.all_day_at: "9" is no time of the day'),
        ('before = "1h"\nall_day_at = "25:00"', 'x.all_day_at: "25:00" is no time of the day'),
        ('before = "1h"\ntext = "{{ titel }}"', 'x.text: line 1: there is no "titel"'),
        ('before = "1h"\ntext = "{{ title"', "x.text: line 1"),
        ('before = "1h"\ntext = "{% if all_day %}x{% endif %}"', "x.text: line 1: makes an empty text"),
        ('before = "1h"\nquery = "DELETE FROM a"', "x.query: does not begin with SELECT or WITH"),
        ('before = "1h"\nquery = "SELECT $1"', "x.query: holds a parameter ($1), and there are none"),
        ('before = "1h"\nquery = ""', "x.query: is empty"),
        (f'before = "1h"\nquery = "SELECT {"1" * 10_000}"', "x.query: is longer than 10,000 characters"),
        ('before = "1h"\nafter = "2h"', "x.after: there is no such key"),
    ],
)
def test_what_cannot_work_is_refused_by_name(problems_of: Problems, lines: str, told: str):
    [problem] = problems_of(f"[reminders.x]\n{lines}\n")

    assert told in problem


def test_its_name_is_like_all_names(problems_of: Problems):
    [problem] = problems_of('[reminders."Day before"]\nbefore = "1h"\n')

    assert "rename it, for example day-before" in problem
