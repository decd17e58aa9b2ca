from __future__ import annotations

from datetime import timedelta

import pytest

from app.domain import spans

WRITTEN = {
    "30m": timedelta(minutes=30),
    "24h": timedelta(hours=24),
    "2d": timedelta(days=2),
    "1w": timedelta(weeks=1),
    "1h30m": timedelta(minutes=90),
    " 1H 30M ": timedelta(minutes=90),
    "1w2d3h4m": timedelta(days=9, hours=3, minutes=4),
    "366d": timedelta(days=366),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_spans_are_read_as_people_write_them(written: str):
    assert spans.parse(written) == WRITTEN[written]


@pytest.mark.parametrize("written", ["", " ", "24", "h", "1.5h", "-1h", "30m1h", "1 day", "1y", "90s", "๓h", "1h1h"])
def test_what_is_no_span_is_told_how_to_write_one(written: str):
    with pytest.raises(ValueError, match='is no span of time; write it as in "24h"'):
        spans.parse(written)


@pytest.mark.parametrize("written", ["0m", "367d", "99999w"])
def test_a_span_is_from_a_minute_to_a_year(written: str):
    with pytest.raises(ValueError, match="must be from a minute to 366 days"):
        spans.parse(written)


def test_spans_are_told_in_words():
    told = [spans.told(spans.parse(written)) for written in ("30m", "24h", "1h30m", "2d", "1w", "25h")]

    assert told == ["30 min", "24 h", "1 h 30 min", "2 d", "7 d", "25 h"]
