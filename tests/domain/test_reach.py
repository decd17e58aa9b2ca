from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.domain.quota import Allowance
from app.domain.reach import LONGEST_PAUSE, PAUSE, Standing, pause


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        (None, PAUSE),
        (timedelta(0), PAUSE),
        (timedelta(milliseconds=10), timedelta(seconds=1)),
        (timedelta(seconds=40), timedelta(seconds=40)),
        (timedelta(days=400), LONGEST_PAUSE),
    ],
)
def test_a_channel_is_left_alone_for_as_long_as_it_asks_within_reason(asked: timedelta | None, waited: timedelta):
    assert pause(asked) == waited


@pytest.mark.parametrize(
    ("blocked", "parked", "closed"),
    [(None, None, None), ("gone", None, "gone"), ("gone", "spent", "gone"), (None, "spent", "spent")],
)
def test_who_is_not_there_is_told_before_what_takes_nothing(
    blocked: str | None, parked: str | None, closed: str | None
):
    now = datetime(2026, 12, 1, tzinfo=UTC)

    assert Standing(now=now, blocked=blocked, parked=parked, allowance=Allowance(limit=None, used=0)).closed == closed
