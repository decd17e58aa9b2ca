from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.moments import moment_of

DAY = datetime(2026, 11, 30, tzinfo=UTC)
NINE = datetime(2026, 11, 30, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-11-30T09:00:00Z", NINE),
        ("2026-11-30T16:00:00+07:00", NINE),
        ("2026-11-30 09:00:00", NINE),
        ("2026-11-30 09:00:00 UTC", NINE),
        ("Mon, 30 Nov 2026 16:00:00 +0700", NINE),
        (1796029200, NINE),
        (1796029200.0, NINE),
        ("1796029200", NINE),
        (1796029200000, NINE),
        ("1796029200000", NINE),
        (1796029200000000, NINE),
        ("2026-11-30", DAY),
        ("2026/11/30", DAY),
        ("20261130", DAY),
        (20261130, DAY),
        ("30 Nov 2026", DAY),
        ("Nov 30, 2026", DAY),
        ("November 30th, 2026", DAY),
        ("30 พ.ย. 2569", DAY),
        ("๓๐ พฤศจิกายน ๒๕๖๙", DAY),
        ("30 พ.ย. 2026 09:00", NINE),
        ("soon", None),
        ("2 hours ago", None),
        ("31 พ.ย. 2569", None),
        ("", None),
        (None, None),
        (True, None),
        (2026, None),
        (0, None),
        (10**400, None),
        (float("nan"), None),
        ([], None),
    ],
)
def test_an_instant_is_read_however_it_is_written(value: Any, moment: datetime | None):
    assert moment_of(value) == moment


@given(st.datetimes(min_value=datetime(1974, 1, 1), max_value=datetime(2500, 1, 1)))  # noqa: DTZ001
def test_an_epoch_in_seconds_or_milliseconds_is_the_same_instant(naive: datetime):
    moment = naive.replace(tzinfo=UTC, microsecond=0)
    epoch = int(moment.timestamp())

    assert [moment_of(each) for each in (epoch, epoch * 1000, str(epoch), str(epoch * 1000))] == [moment] * 4


@given(st.text() | st.floats() | st.integers())
def test_any_value_is_an_instant_or_none(value: Any):
    moment = moment_of(value)

    assert moment is None or moment.tzinfo is UTC
