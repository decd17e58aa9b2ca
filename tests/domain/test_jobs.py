from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.domain.jobs import DELAYS, Job, retry_delay


def job(*, attempt: int = 1, crashes: int = 0, max_attempts: int = 4) -> Job:
    return Job(
        id=1,
        type="greet",
        payload={},
        queue="default",
        attempt=attempt,
        crashes=crashes,
        max_attempts=max_attempts,
        token=1,
        lease_until=datetime(2026, 11, 30, tzinfo=UTC),
    )


@pytest.mark.parametrize(("attempt", "minutes"), [(1, 1), (2, 5), (3, 30), (4, 30), (1000, 30)])
def test_each_wait_is_longer_up_to_half_an_hour(attempt: int, minutes: int):
    assert retry_delay(attempt, jitter=0.5) == timedelta(minutes=minutes)


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_chance_spreads_a_wait_by_a_tenth(attempt: int):
    usual = DELAYS[attempt - 1]

    assert retry_delay(attempt, jitter=0) == usual * 0.9
    assert usual < retry_delay(attempt, jitter=0.999999) < usual * 1.1


@pytest.mark.parametrize("attempt", [0, -1])
def test_there_is_no_wait_before_the_first_attempt(attempt: int):
    with pytest.raises(ValueError, match="counts from 1"):
        retry_delay(attempt, jitter=0.5)


@pytest.mark.parametrize(
    ("attempt", "crashes", "last"),
    [(1, 0, False), (3, 0, False), (4, 0, True), (5, 0, True), (4, 1, False), (5, 1, True), (20, 19, False)],
)
def test_crashes_are_not_counted_as_attempts(attempt: int, crashes: int, last: bool):  # noqa: FBT001
    assert job(attempt=attempt, crashes=crashes).last_attempt == last


def test_a_job_that_may_be_tried_once_has_its_last_attempt_at_once():
    assert job(max_attempts=1).last_attempt
