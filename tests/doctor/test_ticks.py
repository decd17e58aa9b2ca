"""What is told of who has rung."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.doctor import ticks
from app.domain.findings import Finding, Status
from app.domain.health import Facts, judge
from app.domain.parked import Parked
from app.stores.examination import LastRing

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
EVERY = timedelta(minutes=15)

FACTS = Facts(
    now=NOW,
    first_tick_at=NOW - timedelta(days=3),
    last_tick_at=NOW - timedelta(minutes=7),
    last_tick_status="ok",
    last_success_at=NOW - timedelta(minutes=7),
    oldest_due_at=None,
    open_alerts=(),
    failing_sources=(),
)
LAST = LastRing(
    now=NOW,
    trigger="http",
    started_at=NOW - timedelta(minutes=7),
    status="ok",
    rings=96,
    longest_gap_seconds=22 * 60,
)


def ring(last: LastRing = LAST, **facts: Any) -> Finding:
    ago: dict[str, Any] = {"last_tick_at": last.started_at, "last_success_at": last.started_at}
    return ticks._ring(last, judge(replace(FACTS, **(ago | facts)), expected_every=EVERY), EVERY)


def test_nobody_who_has_rung_yet_is_told_how_to_set_one_up():
    found = ticks._never("https://bell.test", EVERY)

    assert found.status == "warn"
    assert found.sentence == (
        "nobody has rung yet; have a scheduler call POST https://bell.test/api/cron/tick with the CRON_SECRET as "
        "bearer token, every 15 minutes (docs/guides/deploying.md)"
    )


@pytest.mark.parametrize(
    ("found", "status", "words"),
    [
        (ring(), "ok", "the last one 7 min ago by http, ok; 96 in 24 hours, 22 min apart at most"),
        (
            ring(replace(LAST, started_at=NOW - timedelta(minutes=30))),
            "warn",
            "it is late; a ring is expected every 15",
        ),
        (ring(replace(LAST, started_at=NOW - timedelta(hours=5))), "fail", "5 h ago by http, ok; 96 in 24 hours"),
        (ring(replace(LAST, started_at=NOW - timedelta(hours=5))), "fail", "nobody rings: look at the scheduler"),
        (
            ring(replace(LAST, status="failed"), last_tick_status="failed"),
            "fail",
            "the last tick failed: look at the log",
        ),
        (
            ring(replace(LAST, longest_gap_seconds=7200)),
            "warn",
            "2 h apart at most; ring as often as expected_every_min",
        ),
        (ring(replace(LAST, status=None, rings=1, longest_gap_seconds=None)), "ok", "not ended yet; 1 in 24 hours"),
        (ring(replace(LAST, started_at=NOW - timedelta(seconds=20), trigger="cli")), "ok", "20 s ago by cli"),
    ],
)
def test_rings_that_come_late_or_not_at_all_are_told(found: Finding, status: Status, words: str):
    assert found.status == status
    assert words in found.sentence


def test_open_alerts_are_named_a_few_of_them():
    quiet, one, many = (
        ticks._alerts(judge(replace(FACTS, open_alerts=names), expected_every=EVERY))
        for names in ((), ("source_failing:board",), tuple(f"job_failed:{number}" for number in range(9)))
    )

    assert (quiet.status, quiet.found) == ("ok", "none is open")
    assert one.sentence == "source_failing:board; `wakebell alerts` tells what to do"
    assert many.found.endswith("job_failed:4 and 4 more")


def test_what_was_left_behind_is_told():
    facts = replace(
        FACTS,
        failing_sources=("board", "feed"),
        oldest_due_at=NOW - timedelta(hours=3),
        parked=Parked(count=2, types=("nobody",), since=NOW - timedelta(hours=2)),
    )

    sources, jobs, held = ticks._others(judge(facts, expected_every=EVERY))

    assert sources.sentence == "failing: board, feed; `wakebell sources` tells why"
    assert jobs.found == "one has been due for 3 h"
    assert held.sentence == "2 wait: nobody handles these types: add a handler, or cancel the jobs"
    assert ticks._others(judge(FACTS, expected_every=EVERY)) == []
