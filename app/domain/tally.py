"""What a tick counts while it works, and the summary it answers with."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime, timedelta

SECTIONS: dict[str, tuple[str, ...]] = {
    "sources": ("due", "fetched", "unchanged", "failed", "primed", "new_items", "matched_items"),
    "messages": ("composed", "sent", "held", "retrying", "failed"),
    "schedules": ("fired",),
    "reminders": ("queued",),
    "jobs": ("claimed", "done", "retrying", "snoozed", "failed", "remaining"),
    "alerts": ("open", "opened", "resolved"),
}
"""The summary's counters, in its order."""

FAILURES = ("sources.failed", "messages.retrying", "messages.failed", "jobs.retrying", "jobs.failed")
"""Counters that make a tick `partial`."""

MOST_ERRORS = 20
"""Lines of `errors` in a summary: schedulers cut answers at 8 KiB."""


class Tally:
    """Counters of one tick, named `section.name` as in the summary, and what went wrong in public words."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._errors: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._due: list[datetime] = []

    def add(self, name: str, count: int = 1) -> None:
        """Count `count` more of `name`."""
        self._counts[name] += count

    def fail(self, words: str) -> None:
        """Note what failed, once.

        Names of sources, channels and job types only: summaries of public repositories are public.
        """
        self._errors[words] = None

    def note(self, words: str) -> None:
        """Note, once, what needs a person though nothing in this batch failed. The same names only."""
        self._notes[words] = None

    def fall_due(self, at: datetime) -> None:
        """Note when something falls due that no look at the service's own tables sees."""
        self._due.append(at)

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    @property
    def status(self) -> str:
        """`partial` when something in the batch failed, else `ok`."""
        return "partial" if self._errors or any(self._counts[name] for name in FAILURES) else "ok"

    @property
    def errors(self) -> list[str]:
        """What failed, then what was noted; at most 20 lines."""
        told = [*self._errors, *self._notes]
        if len(told) > MOST_ERRORS:
            told = [*told[: MOST_ERRORS - 1], f"and {len(told) - MOST_ERRORS + 1} more"]
        return told

    def summary(
        self,
        *,
        tick: int,
        status: str,
        started_at: datetime,
        duration: timedelta,
        budget_exhausted: bool,
        next_due_at: datetime | None,
    ) -> dict[str, Any]:
        """The answer to the scheduler: counts and names, never titles, user ids, URLs or secrets."""
        sections = {
            section: {name: self._counts[f"{section}.{name}"] for name in names} for section, names in SECTIONS.items()
        }
        alerts = sections.pop("alerts")
        due_at = min((at for at in (next_due_at, *self._due) if at is not None), default=None)
        return {
            "tick": tick,
            "status": status,
            "started_at": instant(started_at),
            "duration_ms": round(duration.total_seconds() * 1000),
            "budget_exhausted": budget_exhausted,
            **sections,
            "pruned": self._counts["pruned"],
            "next_due_at": None if due_at is None else instant(due_at),
            "alerts": alerts,
            "errors": self.errors,
        }


def instant(at: datetime) -> str:
    """ISO 8601 with `Z`, to the second. `at` is in UTC."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
