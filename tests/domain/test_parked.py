from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.domain.parked import MOST_COUNTED, MOST_TYPES, NAME_LENGTH, Parked


def parked(count: int, *types: str) -> Parked:
    return Parked(count=count, types=types, since=datetime(2026, 11, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (parked(1, "send_recipt"), "1 job of a type that nobody handles is parked: send_recipt"),
        (parked(3, "send_recipt"), "3 jobs of a type that nobody handles are parked: send_recipt"),
        (parked(3, "a", "b"), "3 jobs of types that nobody handles are parked: a, b"),
        (parked(9, *"abcde"), "9 jobs of types that nobody handles are parked: a, b, c, d, e"),
        (parked(9, *"abcdef"), "9 jobs of types that nobody handles are parked: a, b, c, d, e and others"),
        (parked(MOST_COUNTED, "a"), "1000 jobs or more of a type that nobody handles are parked: a"),
    ],
)
def test_they_are_told_as_a_number_and_names(given: Parked, line: str):
    assert given.told == line


def test_a_type_that_is_a_page_is_one_short_line():
    told = parked(20, *[f"{number}\n\u202e{'x' * 5000}" for number in range(MOST_TYPES)]).told

    assert "\n" not in told
    assert "\u202e" not in told
    assert len(told) < 6 * (NAME_LENGTH + 2) + 60
