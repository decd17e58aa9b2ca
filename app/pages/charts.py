"""Bars, worked out: where each is and how high. Percent across, so that a chart fits a phone; pixels down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, tzinfo

    from app.stores.history import Hour, PastRound

HEIGHT = 44.0
LEAST = 3.0
"""Of a bar that is not nothing."""

HOURS = 72
GAP = 0.2
"""Of a bar's room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One of them."""

    x: float
    width: float
    y: float
    height: float
    bad: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One row of bars."""

    name: str
    words: str
    """All of it in a sentence, for who does not see it."""

    most: str
    bars: Sequence[Bar]

    signed: bool = False
    """Bad bars stand between good ones, and bear a sign: a colour alone says nothing to many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Strips with one axis."""

    strips: Sequence[Strip]
    marks: Sequence[tuple[float, str]]
    """Midnights: where, and which day begins."""


def of_hours(hours: Sequence[Hour], *, now: datetime, zone: tzinfo) -> Chart:
    """The last three days. An hour without a tick has no bar at all: what was not rung shows as a gap."""
    last = now.replace(minute=0, second=0, microsecond=0)
    first = last - timedelta(hours=HOURS - 1)
    shown = [hour for hour in hours if first <= hour.began_at <= last]
    strips = [
        _strip("Longest tick", [(hour, hour.longest_ms) for hour in shown], first, zone, unit="s", whole=max),
        _strip("New items", [(hour, hour.items) for hour in shown], first, zone),
        _strip("Messages sent", [(hour, hour.sent) for hour in shown], first, zone),
        _strip("Failures", [(hour, hour.failures) for hour in shown], first, zone, bad=True),
    ]
    return Chart(strips=strips, marks=_midnights(first, zone))


def of_rounds(rounds: Sequence[PastRound], *, most: int = 40) -> Strip | None:
    """The latest rounds of a source; None: there was none yet."""
    shown = rounds[-most:]
    if not shown:
        return None
    room, top = 100 / most, max((past.new for past in shown), default=0)
    start = most - len(shown)
    bars = []
    for place, past in enumerate(shown, start):
        height = HEIGHT / 2 if past.failed else _height(past.new, top)
        words = "failed" if past.failed else f"{past.new} new"
        bars.append(_bar(place * room, room, height, bad=past.failed, words=words))
    failed = sum(past.failed for past in shown)
    words = f"The last {len(shown)} rounds: {sum(past.new for past in shown)} new items, {failed} failed."
    return Strip(name="Rounds", words=words, most=str(top), bars=bars, signed=True)


def _strip(
    name: str,
    values: Sequence[tuple[Hour, int]],
    first: datetime,
    zone: tzinfo,
    *,
    unit: str = "",
    whole: Callable[[list[int]], int] = sum,
    bad: bool = False,
) -> Strip:
    top = max((value for _, value in values), default=0)
    room = 100 / HOURS
    bars = [
        _bar(
            round((hour.began_at - first) / timedelta(hours=1)) * room,
            room,
            _height(value, top),
            bad=bad and value > 0,
            words=f"{hour.began_at.astimezone(zone):%a %H:%M}: {_told(value, unit)}",
        )
        for hour, value in values
    ]
    total = whole([value for _, value in values]) if values else 0
    words = f"{name}, by the hour over three days: {_told(total, unit)}{' at most' if whole is max else ' in all'}"
    if whole is not max:
        words += f", {_told(top, unit)} at most in an hour"
    return Strip(name=name, words=f"{words}.", most=_told(total, unit), bars=bars)


def _height(value: int, top: int) -> float:
    return max(HEIGHT * value / top, LEAST) if value else 1.0


def _bar(x: float, room: float, height: float, *, bad: bool, words: str) -> Bar:
    return Bar(
        x=round(x + room * GAP / 2, 2),
        width=round(room * (1 - GAP), 2),
        y=round(HEIGHT - height, 1),
        height=round(height, 1),
        bad=bad,
        words=words,
    )


def _told(value: int, unit: str) -> str:
    return f"{value / 1000:.1f} s" if unit == "s" else f"{value:,}"


def _midnights(first: datetime, zone: tzinfo) -> list[tuple[float, str]]:
    wall = first.astimezone(zone)
    marks = []
    for days in range(1, HOURS // 24 + 1):
        midnight = (wall + timedelta(days=days)).replace(hour=0, minute=0)
        at = (midnight - wall) / timedelta(hours=HOURS) * 100
        if 0 < at < 100:  # noqa: PLR2004 - percent
            marks.append((round(at, 2), f"{midnight:%a}"))
    return marks
