from __future__ import annotations

from datetime import timedelta

import pytest

from app.domain.pace import advice, slowest_enough, told

QUARTER = timedelta(minutes=15)


def minutes(**every: float) -> dict[str, timedelta]:
    return {name: timedelta(minutes=number) for name, number in every.items()}


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ({}, None),
        (minutes(board=30), timedelta(minutes=30)),
        (minutes(board=60, gigs=45, slow=1440), timedelta(minutes=45)),
        (minutes(board=60, fast=0.5), timedelta(minutes=5)),
    ],
)
def test_the_source_that_is_read_most_often_decides_down_to_five_minutes(every, expected):
    assert slowest_enough(every) == expected


def test_no_source_needs_no_schedule():
    assert "no source asks for any" in advice({}, expected_every=QUARTER)


def test_the_advice_names_the_schedule_and_the_source():
    assert advice(minutes(board=15, gigs=60), expected_every=QUARTER) == (
        "schedule: ring every 15 minutes, as often as board wants to be read; no source wants it more often"
    )


def test_more_rings_than_needed_cost():
    assert advice(minutes(board=60), expected_every=QUARTER).endswith(
        "; expected_every_minutes says 15 minutes, and every further ring only costs"
    )


def test_fewer_rings_than_needed_are_late():
    assert advice(minutes(board=10), expected_every=QUARTER).endswith(
        "; with a ring every 15 minutes, as expected_every_minutes says, it is read late"
    )


def test_no_schedule_is_said_to_be_enough_for_a_source_that_wants_more_than_any_gives():
    words = advice(minutes(fast=0.5, board=60), expected_every=timedelta(minutes=5))

    assert words == (
        "schedule: fast wants to be read every 30 seconds; no scheduler rings that often, so ring every 5 minutes"
    )


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(1, "1 second"), (59, "59 seconds"), (60, "1 minute"), (90, "1.5 minutes"), (5400, "90 minutes")],
)
def test_an_interval_is_told_in_the_unit_that_reads_best(seconds: float, expected: str):
    assert told(timedelta(seconds=seconds)) == expected
