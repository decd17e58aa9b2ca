"""How often somebody has to ring: every ring wakes the service and costs, and a rarer one makes news late."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST = timedelta(minutes=5)
"""GitHub's shortest schedule; a source that wants more is read as often as somebody rings."""


def slowest_enough(every_by_source: Mapping[str, timedelta]) -> timedelta | None:
    """The longest interval between rings that reads every source when it is due; None when nothing needs any."""
    if not every_by_source:
        return None
    return max(min(every_by_source.values()), LEAST)


def advice(every_by_source: Mapping[str, timedelta], *, expected_every: timedelta) -> str:
    """What schedule is enough, in one sentence, beside what `expected_every_minutes` says."""
    enough = slowest_enough(every_by_source)
    if enough is None:
        return "schedule: no source asks for any; ring as often as jobs and retries are to be looked after"
    fastest = min(every_by_source, key=lambda name: every_by_source[name])
    told = f"schedule: a ring every {_minutes(enough)} is enough ({fastest} is the source that is read most often)"
    if expected_every < enough:
        return f"{told}; expected_every_minutes says {_minutes(expected_every)}, and each ring more wakes the host"
    if expected_every > enough:
        return f"{told}; with one every {_minutes(expected_every)}, as expected_every_minutes says, it is read late"
    return told


def _minutes(interval: timedelta) -> str:
    minutes = interval.total_seconds() / 60
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"
