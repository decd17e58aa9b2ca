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
    wanted = told(every_by_source[fastest])
    if every_by_source[fastest] < LEAST:
        words = f"{fastest} wants to be read every {wanted}; no scheduler rings that often, so ring every {told(LEAST)}"
    else:
        words = f"ring every {told(enough)}, as often as {fastest} wants to be read; no source wants it more often"
    if expected_every < enough:
        words += f"; expected_every_minutes says {told(expected_every)}, and every further ring only costs"
    elif expected_every > enough:
        words += f"; with a ring every {told(expected_every)}, as expected_every_minutes says, it is read late"
    return f"schedule: {words}"


def told(interval: timedelta) -> str:
    """In minutes, or in seconds where it is less than one."""
    seconds = interval.total_seconds()
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:g} second{'' if seconds == 1 else 's'}"
    minutes = seconds / 60
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"
