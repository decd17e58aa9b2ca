from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.dates import moment, unknown_zone

NINE = datetime(2026, 11, 30, 9, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("2026-11-30T09:00:00Z", NINE),
        ("2026-11-30t09:00:00z", NINE),
        ("2026-11-30T16:00:00+07:00", NINE),
        ("2026-11-30T16:00+0700", NINE),
        ("2026-11-30 09:00", NINE),
        ("2026-11-30 09:00:00 UTC", NINE),
        ("2026-11-30 16:00:00 ICT", NINE),
        ("2026-11-30 16:00:00 +07:00", NINE),
        ("2026-11-30T16:00:00 +7", NINE),
        ("Mon 2026-11-30 09:00", NINE),
        ("2026/11/30 09:00:00", NINE),
        ("2026.11.30", MIDNIGHT),
        ("2026-11-30", MIDNIGHT),
        ("20261130", MIDNIGHT),
        ("2026-11", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("Mon, 30 Nov 2026 16:00:00 +0700", NINE),
        ("Mon, 30 Nov 2026 09:00:00 +0000", NINE),
        ("Mon, 30 Nov 2026 09:00:00 GMT", NINE),
        ("Mon, 30 Nov 2026 16:00:00 GMT+0700", NINE),
        ("Mon, 30 Nov 2026 04:00:00 EST", NINE),
        ("Mon, 30 Nov 2026 10:00:00 CET", NINE),
        ("Mon, 30 Nov 2026 09:00", NINE),
        ("30 Nov 26 09:00:00 Z", NINE),
        ("Mon,  30  Nov\n2026 09:00:00 GMT", NINE),
        ("Mon Nov 30 09:00:00 2026", NINE),
        ("Mon, 30 Nov 2026", MIDNIGHT),
        ("2026-12-31T23:59:60Z", datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2569-01-05", datetime(2569, 1, 5, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", None),
        ("0001-01-01T00:00:00Z", None),
        ("Mon, 01 Jan 0001 00:00:00 GMT", None),
        ("2026-13-30", None),
        ("Mon, 99 Nov 2026 09:00:00 GMT", None),
        ("yesterday", None),
        ("9" * 10_000, None),
        ("", None),
    ],
)
def test_a_date_is_read_in_utc(written: str, read_as: datetime | None):
    assert moment(written) == read_as


@pytest.mark.parametrize(
    ("written", "unknown"),
    [
        ("Mon, 30 Nov 2026 09:00:00 XYZT", True),
        ("2026-11-30 09:00:00 XYZT", True),
        ("Mon, 30 Nov 2026 09:00:00 EST", False),
        ("Mon, 30 Nov 2026 09:00:00", False),
        ("2026-11-30T09:00:00Z", False),
        ("soon", False),
    ],
)
def test_a_zone_that_nobody_knows_is_seen(written: str, unknown: bool):  # noqa: FBT001
    assert unknown_zone(written) is unknown


@given(st.text(alphabet="0123456789-/.:,+ TZGMTadeJNnov\t", max_size=40) | st.text(max_size=40))
def test_any_text_is_a_date_of_utc_or_none(written: str):
    found = moment(written)

    assert found is None or found.tzinfo is UTC
    assert unknown_zone(written) in {True, False}


@given(st.datetimes(min_value=datetime(1900, 1, 2), max_value=datetime(9998, 1, 1)))  # noqa: DTZ001 - without a zone, as some write
def test_what_python_writes_is_read_again(written: datetime):
    assert moment(written.isoformat()) == written.replace(tzinfo=UTC)
