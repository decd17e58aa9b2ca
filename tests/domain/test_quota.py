from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import quota
from app.domain.quota import Spending, Verdict, decide, month_of, reserve, told

DAY = timedelta(days=1)
TICK = timedelta(minutes=30)
BEGINS = datetime(2026, 11, 30, 15, tzinfo=UTC)
"""The first of December in Japan."""

ENDS = BEGINS + 31 * DAY


@dataclass
class Month:
    """A month of ticks: who has news is written to as soon as the governor lets it."""

    prices: tuple[int, ...] = (1,)
    limit: int = 200
    used: int = 0
    digests: int = 0
    waits: list[timedelta] = field(default_factory=list)
    left: int = 0

    def live(self, news: Callable[[datetime], bool] = lambda at: True) -> Month:
        owed: list[list[datetime]] = [[] for _ in self.prices]
        last: list[datetime | None] = [None for _ in self.prices]
        at = BEGINS
        while at < ENDS:
            for place, price in enumerate(self.prices):
                owed[place] += [at] if news(at) else []
                spending = Spending(
                    limit=self.limit, used=self.used, price=price, all_prices=sum(self.prices), last_at=last[place]
                )
                if owed[place] and decide(spending, at).at <= at:
                    self.used += price
                    self.digests += 1
                    self.waits += [at - since for since in owed[place]]
                    owed[place], last[place] = [], at
            at += TICK
        self.waits += [ENDS - since for waiting in owed for since in waiting]
        self.left = sum(map(len, owed))
        return self


def test_news_in_every_tick_of_a_month_is_told_within_four_hours_for_two_hundred_messages():
    month = Month().live()

    sys.stdout.write(f"{month.digests} digests, {month.used} messages, longest wait {max(month.waits)}\n")
    assert month.used == month.digests == 190
    assert max(month.waits) <= timedelta(hours=4)
    assert month.left <= 8, "the last hours' are the next month's first digest"


@pytest.mark.parametrize("prices", [(1, 1, 1), (1, 5), (1, 1, 8)])
def test_several_share_the_month_down_to_the_reserve(prices: tuple[int, ...]):
    month = Month(prices).live()

    assert 200 - reserve(200) - max(prices) < month.used <= 190
    assert max(month.waits) < 31 * DAY * sum(prices) / 190 * 2.5


def test_while_there_is_plenty_nothing_waits():
    assert max(Month(limit=5000).live().waits) == timedelta(0)
    assert max(Month(limit=60).live(lambda at: at.hour == 3 and at.minute == 0).waits) == timedelta(0)


def test_a_single_news_after_a_quiet_week_goes_at_once():
    spending = Spending(limit=200, used=10, last_at=BEGINS)

    assert decide(spending, BEGINS + 7 * DAY) == Verdict(at=BEGINS + 7 * DAY, gap=timedelta(0))


def test_what_others_have_spent_stretches_what_is_left():
    now = BEGINS + 11 * DAY
    spending = Spending(limit=200, used=170, last_at=now)

    verdict = decide(spending, now)

    assert verdict.gap == DAY  # twenty for twenty days
    assert timedelta(hours=22) < verdict.at - now <= DAY


def test_the_gap_does_not_shrink_while_it_is_waited_for():
    now = BEGINS + 11 * DAY
    spending = Spending(limit=200, used=170, last_at=now)

    assert {decide(spending, now + timedelta(hours=hours)).at for hours in range(20)} == {decide(spending, now).at}


@pytest.mark.parametrize(("used", "price"), [(190, 1), (186, 5), (200, 1), (5000, 1)])
def test_with_the_reserve_alone_left_digests_wait_for_the_next_month(used: int, price: int):
    now = BEGINS + 3 * DAY

    assert decide(Spending(limit=200, used=used, price=price, all_prices=price), now) == Verdict(
        at=ENDS, gap=28 * DAY, spent=True
    )


def test_a_month_is_the_one_in_japan():
    assert month_of(datetime(2026, 12, 31, 14, 59, tzinfo=UTC)) == (BEGINS, ENDS)
    assert month_of(ENDS) == (ENDS, datetime(2027, 1, 31, 15, tzinfo=UTC))
    assert month_of(datetime(2027, 2, 28, 14, 59, tzinfo=UTC))[1] == datetime(2027, 2, 28, 15, tzinfo=UTC)


def test_an_alert_says_what_is_spent_and_what_becomes_of_digests():
    now = BEGINS + 11 * DAY
    low, spent = Spending(limit=200, used=170, last_at=now), Spending(limit=200, used=195)

    assert told(low, decide(low, now), now) == (
        "170 of 200 messages are used, and the month has 20 more days: "
        "digests are kept 24 h apart, and tell more at a time"
    )
    assert told(spent, decide(spent, ENDS - DAY), ENDS - DAY).startswith(
        "195 of 200 messages are used, and the month has 1 more day: digests wait for the next month"
    )


@given(
    limit=st.integers(0, 100_000),
    used=st.integers(0, 200_000),
    prices=st.tuples(st.integers(1, 500), st.integers(0, 5000)),
    minutes=st.integers(0, 31 * 24 * 60 - 1),
    ago=st.none() | st.integers(0, 60 * 24 * 60),
)
def test_nothing_waits_longer_than_to_the_end_of_the_month_nor_goes_without_a_message(
    limit: int, used: int, prices: tuple[int, int], minutes: int, ago: int | None
):
    price, all_prices = prices[0], sum(prices)
    now = BEGINS + timedelta(minutes=minutes)
    last_at = None if ago is None else now - timedelta(minutes=ago)
    spending = Spending(limit=limit, used=used, price=price, all_prices=all_prices, last_at=last_at)

    verdict = decide(spending, now)

    assert now <= verdict.at <= ENDS
    assert verdict.spent == (used + price > limit - reserve(limit))
    assert not verdict.spent or verdict.at == ENDS
    assert quota.told(spending, verdict, now)
