"""How often somebody has to ring: every ring wakes the service and costs, and a rarer one makes news late."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST = timedelta(minutes=5)
"""GitHub's shortest schedule; a source that wants more is read as often as somebody rings."""


def slowest_enough(every_by_source: Mapping[str, timedelta]) -> timedelta | None:
    """The longest interval between rings at which every source is read in each of its slots, one ring late at most.

    None when no source asks for any.
    """
    if not every_by_source:
        return None
    return max(min(every_by_source.values()), LEAST)


def advice(every_by_source: Mapping[str, timedelta], *, expected_every: timedelta) -> str:
    """What schedule is enough, in one sentence, beside what `expected_every_minutes` says."""
    enough = slowest_enough(every_by_source)
    if enough is None:
        return "schedule: no source asks for any; ring as often as jobs and retries are to be looked after"
    fastest = min(every_by_source, key=lambda name: every_by_source[name])
    if every_by_source[fastest] < LEAST:
        often = f"{fastest} asks for one every {told(every_by_source[fastest])} and is read as often as somebody rings"
        words = f"schedule: a ring every {told(LEAST)} is the most that schedulers keep to ({often})"
    else:
        words = f"schedule: a ring every {told(enough)} is enough ({fastest} is the source that is read most often)"
    if expected_every < enough:
        return f"{words}; expected_every_minutes says {told(expected_every)}, and each ring more wakes the host"
    if expected_every > enough:
        return f"{words}; with one every {told(expected_every)}, as expected_every_minutes says, it is read late"
    return words


def told(interval: timedelta) -> str:
    """In minutes, or in seconds where it is less than one."""
    seconds = interval.total_seconds()
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:g} second{'' if seconds == 1 else 's'}"
    minutes = seconds / 60
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"
