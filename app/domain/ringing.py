"""Whether ticks come, and whether they go well: judged by a tick, from those before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from app.domain.alerts import Sign, Well, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

LATE_AFTER = 3.0
"""Times `expected_every_minutes` without a tick: GitHub's are late by one or two as a matter of course."""

IN_A_ROW = 3
"""Ticks that fail one after the other: a single one is heard by the scheduler, and by the dead-man's switch."""

LONGEST = timedelta(seconds=330)
"""A tick without an end that is older was killed: no budget is above 300 s."""

SUBJECT = "tick"

KILLED = "they begin and do not end: look at the host's memory and time limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A tick before this one."""

    started_at: datetime

    status: str | None
    """None: it has not ended."""


def judge(
    past: Sequence[Past], *, now: datetime, expected_every: timedelta, sound: bool
) -> tuple[list[Sign], list[Well]]:
    """What a tick that began at `now` says of its kind; `past` has the latest first. `sound`: it goes well itself."""
    signs: list[Sign] = []
    well: list[Well] = []
    gap = now - past[0].started_at if past else timedelta(0)
    if gap > LATE_AFTER * expected_every:
        signs.append(Sign(kind="tick_overdue", subject=SUBJECT, reason=told(gap)))
    else:
        well.append(Well(key=key_of("tick_overdue", SUBJECT)))
    failed = _failed(past, now)
    if len(failed) + (not sound) >= IN_A_ROW:
        killed = bool(failed) and all(tick.status is None for tick in failed[:IN_A_ROW])
        signs.append(Sign(kind="tick_failed", subject=SUBJECT, reason=KILLED if killed else None))
    elif sound:
        well.append(Well(key=key_of("tick_failed", SUBJECT)))
    return signs, well


def _failed(past: Sequence[Past], now: datetime) -> list[Past]:
    """The latest ones, as far as all failed or were killed; those that run beside this one say nothing yet."""
    failed: list[Past] = []
    for tick in past:
        if tick.status in {"ok", "partial"}:
            break
        if tick.status is not None or now - tick.started_at > LONGEST:
            failed.append(tick)
    return failed


def told(length: timedelta) -> str:
    """`7 h 3 min`, `12 min`, `40 s`: the two greatest units."""
    seconds = round(length.total_seconds())
    parts = [
        (seconds // 86400, "d"),
        (seconds % 86400 // 3600, "h"),
        (seconds % 3600 // 60, "min"),
        (seconds % 60, "s"),
    ]
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"
