from __future__ import annotations

from app.domain.prefetch import MOST, MOST_SIZE, Pace


def paced(seconds: float, *, slots: int = 10) -> Pace:
    pace = Pace(slots)
    pace.took(seconds)
    return pace


def test_until_something_is_known_the_slots_are_filled():
    assert Pace(10).room(0) == 10
    assert Pace(10).room(10) == 0


def test_as_many_are_at_hand_as_are_worth_half_a_second():
    assert paced(0.1).at_hand == 50
    assert paced(10).at_hand == 10
    assert paced(0.00001).at_hand == MOST


def test_a_few_at_a_time_are_not_worth_a_call():
    assert paced(0.1).room(26) == 0
    assert paced(0.1).room(25) == 25


def test_large_payloads_are_claimed_in_small_numbers():
    pace = paced(0.00001)

    pace.weighed(100, MOST_SIZE)

    assert pace.at_hand == 100


def test_nothing_that_came_says_nothing_of_sizes():
    pace = paced(0.00001)

    pace.weighed(0, 50)

    assert pace.at_hand == MOST


def test_quick_jobs_are_told_from_slow_ones():
    assert paced(0.001).quick
    assert not paced(0.1).quick
    assert not Pace(10).quick
