from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.domain import ringing
from app.domain.ringing import Past

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
EVERY = timedelta(minutes=15)


def past(*statuses: str | None, every: float = 15) -> list[Past]:
    """The latest first, so many minutes apart."""
    return [
        Past(started_at=NOW - timedelta(minutes=every * (place + 1)), status=status)
        for place, status in enumerate(statuses)
    ]


def judged(ticks: list[Past], *, sound: bool = True) -> tuple[list[str], list[str]]:
    signs, well = ringing.judge(ticks, now=NOW, expected_every=EVERY, sound=sound)
    return [f"{sign.kind}:{sign.subject}" for sign in signs], [each.key for each in well]


WELL = ["tick_overdue:tick", "tick_failed:tick"]


@pytest.mark.parametrize("minutes", [0, 1, 15, 30, 45])
def test_a_tick_that_is_late_by_less_than_three_times_is_no_news(minutes: float):
    assert judged(past("ok", every=minutes)) == ([], WELL)


def test_a_tick_after_a_long_silence_says_how_long_it_was():
    signs, well = ringing.judge(past("ok", every=423), now=NOW, expected_every=EVERY, sound=True)

    assert [(sign.kind, sign.reason) for sign in signs] == [("tick_overdue", "7 h 3 min")]
    assert [each.key for each in well] == ["tick_failed:tick"]


def test_the_first_tick_of_all_is_neither_late_nor_failing():
    assert judged([]) == ([], WELL)


@pytest.mark.parametrize(
    ("statuses", "sound", "told"),
    [
        (("failed", "failed", "ok"), True, False),
        (("failed", "failed", "ok"), False, True),
        (("failed", "failed", "failed"), True, True),
        (("ok", "failed", "failed", "failed"), True, False),
        (("failed", None, "failed"), True, True),
        ((None, None, None), True, True),
        (("partial", None, None, None), False, False),
    ],
)
def test_three_in_a_row_that_failed_or_were_killed_are_told(
    statuses: tuple[str | None, ...], *, sound: bool, told: bool
):
    signs, well = judged(past(*statuses), sound=sound)

    assert ("tick_failed:tick" in signs) == told
    assert ("tick_failed:tick" in well) == (sound and not told)


def test_ticks_that_run_beside_this_one_say_nothing_yet():
    beside = [Past(started_at=NOW - timedelta(seconds=seconds), status=None) for seconds in (1, 2, 3)]

    assert judged(beside) == ([], WELL)
    assert judged([*beside, *past("failed", "failed", "failed")])[0] == ["tick_failed:tick"]


def test_ticks_that_were_all_killed_are_told_with_what_to_look_at():
    [sign], _ = ringing.judge(past(None, None, None), now=NOW, expected_every=EVERY, sound=True)

    assert sign.reason is not None
    assert "memory" in sign.reason


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (40, "40 s"), (60, "1 min"), (90, "1 min 30 s"), (25380, "7 h 3 min"), (90_000, "1 d 1 h")],
)
def test_a_length_of_time_is_told_in_its_two_greatest_units(seconds: float, told: str):
    assert ringing.told(timedelta(seconds=seconds)) == told
