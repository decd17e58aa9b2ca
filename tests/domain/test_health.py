from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.health import Facts, judge
from app.domain.parked import Parked

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
EVERY = timedelta(minutes=15)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


WELL = Facts(
    now=NOW,
    first_tick_at=ago(9000),
    last_tick_at=ago(5),
    last_tick_status="ok",
    last_success_at=ago(4),
    oldest_due_at=None,
    open_alerts=[],
    failing_sources=[],
)

NONE_YET: dict[str, Any] = {
    "first_tick_at": None,
    "last_tick_at": None,
    "last_tick_status": None,
    "last_success_at": None,
}


@pytest.mark.parametrize(
    ("changed", "status", "part"),
    [
        ({}, "pass", "tick:age"),
        ({"last_tick_status": "partial"}, "pass", "tick:age"),
        (NONE_YET, "warn", "tick:age"),
        ({**NONE_YET, "first_tick_at": ago(1), "last_tick_at": ago(1)}, "pass", "tick:age"),  # the first one runs
        ({"last_tick_at": ago(22), "last_success_at": ago(22)}, "pass", "tick:age"),
        ({"last_tick_at": ago(23), "last_success_at": ago(23)}, "warn", "tick:age"),
        ({"last_tick_at": ago(46), "last_success_at": ago(46)}, "fail", "tick:age"),
        ({"last_tick_status": "failed"}, "fail", "tick:age"),
        ({"last_success_at": ago(46)}, "fail", "tick:age"),  # those since then were killed
        ({**NONE_YET, "first_tick_at": ago(46), "last_tick_at": ago(1)}, "fail", "tick:age"),
        ({"open_alerts": ["job_failed:mail"]}, "warn", "alerts:open"),
        ({"failing_sources": ["board"]}, "warn", "sources:failing"),
        ({"oldest_due_at": ago(44)}, "pass", "jobs:oldest_due"),
        ({"oldest_due_at": ago(46)}, "warn", "jobs:oldest_due"),
        ({"oldest_due_at": ago(-1)}, "pass", "jobs:oldest_due"),
        ({"parked": Parked(count=1, types=["send_recipt"], since=ago(59))}, "pass", "jobs:held"),
        ({"parked": Parked(count=1, types=["send_recipt"], since=ago(61))}, "warn", "jobs:held"),
        ({"parked": Parked(count=0, types=[], since=None)}, "pass", "jobs:held"),
    ],
)
def test_what_decides(changed: dict[str, Any], status: str, part: str):
    health = judge(dataclasses.replace(WELL, **changed), expected_every=EVERY)

    assert health.status == status
    assert {name: check[0]["status"] for name, check in health.checks.items() if check[0]["status"] != "pass"} == (
        {} if status == "pass" else {part: status}
    )


def test_the_worst_part_decides():
    facts = dataclasses.replace(WELL, open_alerts=["job_failed:mail"], last_tick_status="failed")

    assert judge(facts, expected_every=EVERY).status == "fail"


@pytest.mark.parametrize(("age", "overdue"), [(5, False), (22, False), (23, True), (600, True)])
def test_it_says_whether_a_tick_is_overdue(age: float, *, overdue: bool):
    facts = dataclasses.replace(WELL, last_tick_at=ago(age))

    assert judge(facts, expected_every=EVERY).checks["tick:age"][0]["overdue"] is overdue


def test_the_detail_tells_times_and_ages():
    facts = dataclasses.replace(WELL, oldest_due_at=ago(2), open_alerts=["job_failed:mail"])

    checks = judge(facts, expected_every=EVERY).checks

    assert checks["tick:age"] == [
        {
            "status": "pass",
            "last_tick_at": "2026-11-30T08:55:00Z",
            "last_tick_status": "ok",
            "last_success_at": "2026-11-30T08:56:00Z",
            "last_success_age_s": 240,
            "observedValue": 300,
            "observedUnit": "s",
            "overdue": False,
        }
    ]
    assert checks["jobs:oldest_due"] == [{"status": "pass", "observedValue": 120, "observedUnit": "s"}]
    assert checks["alerts:open"] == [{"status": "warn", "observedValue": ["job_failed:mail"]}]
    assert checks["jobs:held"] == [{"status": "pass", "observedValue": 0, "observedUnit": "jobs", "types": []}]


def test_jobs_that_nobody_handles_are_a_number_and_their_types():
    parked = Parked(count=7, types=["send_recipt", "a\nb"], since=ago(90))

    [held] = judge(dataclasses.replace(WELL, parked=parked), expected_every=EVERY).checks["jobs:held"]

    assert held == {
        "status": "warn",
        "observedValue": 7,
        "observedUnit": "jobs",
        "types": ["send_recipt", "a\ufffdb"],
        "output": "nobody handles these types: add a handler, or cancel the jobs",
    }


@pytest.mark.parametrize("letter", ["x", "\x00", '"', "ที", "😀"])
def test_however_much_is_wrong_the_detail_is_short(letter: str):
    names = [f"{number} {letter * 5000}" for number in range(20)]
    parked = Parked(count=1000, types=names, since=ago(10_000))
    facts = dataclasses.replace(WELL, open_alerts=names, failing_sources=names, parked=parked, oldest_due_at=ago(1e6))

    checks = judge(facts, expected_every=EVERY).checks

    assert len(json.dumps(checks, ensure_ascii=False).encode()) < 7 * 1024
    assert checks["jobs:held"][0]["types"] != []


def test_twenty_alerts_about_sources_with_the_longest_names_are_all_named():
    names = [f"source_failing:{number:>064}" for number in range(20)]

    checks = judge(dataclasses.replace(WELL, open_alerts=names), expected_every=EVERY).checks

    assert checks["alerts:open"][0]["observedValue"] == names


@pytest.mark.parametrize(
    ("changed", "output"),
    [
        (NONE_YET, "nobody has rung yet"),
        ({"last_tick_at": ago(60)}, "nobody rings: look at the scheduler"),
        ({"last_tick_status": "failed"}, "the last tick failed: look at the log"),
        ({"last_success_at": ago(60)}, "ticks begin and do not end: look at the host's memory and time limits"),
    ],
)
def test_what_is_wrong_with_the_ticks_is_said(changed: dict[str, Any], output: str):
    health = judge(dataclasses.replace(WELL, **changed), expected_every=EVERY)

    assert health.checks["tick:age"][0]["output"] == output
