"""How a month's messages are made to last: digests go at once while there is plenty, then they wait for each other.

    spent no more than the month's even share so far  --> at once
    spent more                                        --> what is left, spread evenly over the days that are left
    nothing left but the reserve                      --> when the month is over

What waits is not lost: it is told with the next digest, which costs as much however long it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

MONTH_ZONE = timezone(timedelta(hours=9))
"""LINE's own: every date of its API is one of UTC+9. Should some account's month begin at another hour, the number of
messages spent is read anew within an hour of it."""

READ_EVERY = timedelta(hours=1)
"""How often a provider is asked at most, over all replicas."""

RESERVE_SHARE = 0.05
"""Of the allowance: kept for alerts, and for what was sent since the provider was asked."""

TELL_GAP = timedelta(hours=1)
"""Digests that must be at least so far apart are worth an alert: shorter gaps are those between two ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a provider says of this month's messages."""

    limit: int | None
    """None: as many as one likes."""

    used: int
    """By whatever sends for this account, people included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What there is to decide by."""

    limit: int
    used: int

    price: int = 1
    """Of a digest to this recipient: one message, or one for each member of a group."""

    all_prices: int = 1
    """Of one digest to everybody on the channel, this recipient among them."""

    last_at: datetime | None = None
    """When this recipient's last digest was composed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """When the recipient's next digest may go."""

    at: datetime
    """UTC; now, or later."""

    gap: timedelta
    """How far apart this recipient's digests are kept; zero while there is plenty."""

    spent: bool = False
    """There is nothing left for digests before the month is over."""


def month_of(now: datetime) -> tuple[datetime, datetime]:
    """When the month of `now` begins and ends, as LINE counts. UTC."""
    there = now.astimezone(MONTH_ZONE)
    begins = there.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    ends = (begins + timedelta(days=32)).replace(day=1)
    return begins.astimezone(UTC), ends.astimezone(UTC)


def reserve(limit: int) -> int:
    """Messages that no digest may take."""
    return math.ceil(limit * RESERVE_SHARE)


def decide(spending: Spending, now: datetime) -> Verdict:
    """When the recipient's next digest may go, and how far apart its digests are.

    After a month in which every recipient had news all the time, all but the reserve is spent and no two digests of
    one recipient were much further apart than the month divided by their number.
    """
    begins, ends = month_of(now)
    budget = spending.limit - reserve(spending.limit)
    left = budget - spending.used
    if left < spending.price:
        return Verdict(at=ends, gap=ends - now, spent=True)
    cost = spending.all_prices if spending.price <= spending.all_prices <= left else spending.price
    if spending.used + cost <= budget * _even_share(now, begins, ends):
        return Verdict(at=now, gap=timedelta(0))
    gap = min((ends - now) * (cost / left), ends - now)
    if spending.last_at is None:
        return Verdict(at=now, gap=gap)
    # As it was when the one before went: what is left since then is spread over the time since then, so that the gap
    # does not shrink while it is waited for.
    since = max(spending.last_at, begins)
    due = since + (ends - since) * (cost / (left + cost))
    return Verdict(at=min(max(due, now), ends), gap=gap)


def _even_share(now: datetime, begins: datetime, ends: datetime) -> float:
    """Of the month's messages, what may be spent by now without a wait: a day's share at once, the rest as time goes.

    The day that is granted at the beginning is paid back over the month, so that its last day is none without digests.
    """
    elapsed = (now - begins) / (ends - begins)
    return elapsed + timedelta(days=1) / (ends - begins) * (1 - elapsed)


def told(spending: Spending, verdict: Verdict, now: datetime) -> str:
    """The reason of an alert, in one line."""
    _, ends = month_of(now)
    days = math.ceil((ends - now) / timedelta(days=1))
    spent = f"{spending.used} of {spending.limit} messages are used, and the month has {days} more {_plural(days)}"
    if verdict.spent:
        return f"{spent}: digests wait for the next month, or go to the fallback; the rest is kept for alerts"
    hours = verdict.gap / timedelta(hours=1)
    return f"{spent}: digests are kept {hours:.0f} h apart, and tell more at a time"


def _plural(days: int) -> str:
    return "day" if days == 1 else "days"
