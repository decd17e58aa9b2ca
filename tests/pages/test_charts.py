from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from app.pages import charts, words
from app.pages.charts import HEIGHT
from app.stores.history import Hour, PastRound

NOW = datetime(2026, 11, 30, 9, 20, tzinfo=UTC)


def hour(ago: int, **counts: int) -> Hour:
    given = {"ticks": 4, "longest_ms": 1000, "items": 0, "sent": 0, "failures": 0, **counts}
    return Hour(began_at=NOW.replace(minute=0) - timedelta(hours=ago), **given)


def test_a_bar_is_where_its_hour_is_and_as_high_as_its_part_of_the_most():
    chart = charts.of_hours([hour(71, items=1), hour(1, items=4), hour(0, items=2)], now=NOW, zone=UTC)
    _, items, _, failures = chart.strips

    assert [round(bar.x) for bar in items.bars] == [0, 97, 99]
    assert [bar.height for bar in items.bars] == [HEIGHT / 4, HEIGHT, HEIGHT / 2]
    assert items.words == "New items, by the hour over three days: 7 in all, 4 at most in an hour."
    assert max(bar.x + bar.width for bar in items.bars) <= 100
    assert [bar.height for bar in failures.bars] == [1.0] * 3, "somebody rang, and nothing failed"


def test_an_hour_without_a_tick_has_no_bar_and_older_ones_are_left_out():
    chart = charts.of_hours([hour(80), hour(5)], now=NOW, zone=UTC)

    assert [len(strip.bars) for strip in chart.strips] == [1] * 4


def test_nothing_at_all_is_a_chart_too():
    chart = charts.of_hours([], now=NOW, zone=UTC)

    assert [strip.most for strip in chart.strips] == ["0.0 s", "0", "0", "0"]


def test_midnights_are_those_of_the_zone():
    marks = charts.of_hours([], now=NOW, zone=ZoneInfo("Asia/Yangon")).marks

    assert [day for _, day in marks] == ["Sat", "Sun", "Mon"]
    assert [round(at * 72 / 100 % 24, 1) for at, _ in marks] == [7.5] * 3  # 10:00 UTC is 16:30 there


def test_a_round_that_failed_is_told_from_one_that_found_nothing():
    strip = charts.of_rounds([PastRound(finished_at=NOW, failed=failed, new=0) for failed in (False, True)])

    assert strip is not None
    assert [(bar.bad, bar.words) for bar in strip.bars] == [(False, "0 new"), (True, "failed")]
    assert strip.words == "The last 2 rounds: 0 new items, 1 failed."
    assert charts.of_rounds([]) is None


def test_ages_are_told_in_one_unit():
    told = [words.ago(NOW + timedelta(seconds=seconds), now=NOW) for seconds in (0, -59, -60, -7300, 90_000, 7300)]

    assert told == ["now", "59 s ago", "1 min ago", "2 h ago", "in 1 d", "in 2 h"]
    assert words.ago(datetime.max.replace(tzinfo=UTC), now=NOW) == words.ago(None, now=NOW) == "never"
    assert words.due("2026-11-30T09:00:00Z", now=NOW) == "due now, with the next tick"
    assert words.due(None, now=NOW) == "nothing is due"
