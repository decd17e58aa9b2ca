from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.tally import FAILURES, MOST_ERRORS, SECTIONS, Tally, instant

AT = datetime(2026, 11, 30, 9, 7, 2, 999_999, tzinfo=UTC)


def summary(tally: Tally, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "tick": 812,
        "status": tally.status,
        "started_at": AT,
        "duration": timedelta(milliseconds=1840.4),
        "budget_exhausted": False,
        "next_due_at": None,
    }
    return tally.summary(**given | more)


def test_what_was_counted_is_told_under_its_section():
    tally = Tally()
    tally.add("sources.due", 3)
    tally.add("jobs.done")
    tally.add("jobs.done", 2)
    tally.add("pruned", 12)
    tally.add("alerts.open")

    told = summary(tally, next_due_at=datetime(2026, 11, 30, 9, 30, tzinfo=UTC))

    assert told["sources"]["due"] == 3
    assert told["jobs"]["done"] == 3
    assert told["pruned"] == 12
    assert told["alerts"] == {"open": 1, "opened": 0, "resolved": 0}
    assert (told["started_at"], told["next_due_at"]) == ("2026-11-30T09:07:02Z", "2026-11-30T09:30:00Z")
    assert told["duration_ms"] == 1840


def test_every_counter_is_told_also_when_it_is_zero_and_in_the_same_order():
    told = summary(Tally())

    assert list(told) == [
        "tick",
        "status",
        "started_at",
        "duration_ms",
        "budget_exhausted",
        "sources",
        "messages",
        "schedules",
        "reminders",
        "jobs",
        "pruned",
        "next_due_at",
        "alerts",
        "errors",
    ]
    assert {section: tuple(told[section]) for section in SECTIONS} == SECTIONS
    assert told["next_due_at"] is None


@pytest.mark.parametrize("name", FAILURES)
def test_something_that_failed_makes_a_batch_partial(name: str):
    tally = Tally()
    assert tally.status == "ok"

    tally.add(name)

    assert tally.status == "partial"


def test_a_failure_in_words_makes_a_batch_partial_and_is_told_once():
    tally = Tally()

    for _ in range(3):
        tally.fail("source board failed")
    tally.fail("channel line failed")

    assert tally.status == "partial"
    assert tally.errors == ["source board failed", "channel line failed"]


def test_what_is_noted_is_told_after_the_failures_and_makes_no_batch_partial():
    tally = Tally()
    tally.note("1 job is parked")

    assert (tally.status, tally.errors) == ("ok", ["1 job is parked"])

    tally.fail("source board failed")

    assert (tally.status, tally.errors) == ("partial", ["source board failed", "1 job is parked"])


@pytest.mark.parametrize("count", [MOST_ERRORS, MOST_ERRORS + 1, 500])
def test_many_failures_fit_into_an_answer(count: int):
    tally = Tally()
    for number in range(count):
        tally.fail(f"source {number:>064} failed")

    told = tally.errors

    assert len(told) == MOST_ERRORS
    assert told[-1] == (f"and {count - 19} more" if count > MOST_ERRORS else f"source {count - 1:>064} failed")
    assert len(json.dumps(summary(tally))) < 8192


def test_an_instant_is_told_in_utc_to_the_second():
    assert instant(AT) == "2026-11-30T09:07:02Z"
