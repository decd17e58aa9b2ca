"""Words of the status page: what a state means, how long ago, what was done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.domain.parked import shown_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from app.domain.health import Facts, Health

HEADLINES = {
    "pass": ("All is well", "Nothing here needs you."),
    "warn": ("Something needs a look", "The service works; read what it says below."),
    "fail": ("Something is wrong", "The service does not do all of its work."),
}

TONES = {
    # jobs and messages
    **dict.fromkeys(("done", "sent", "ok", "pass"), "good"),
    **dict.fromkeys(("pending", "running", "queued", "sending", "new", "waiting", "cancelled", "paused"), "calm"),
    **dict.fromkeys(("retrying", "uncertain", "partial", "warn", "silent", "unstable", "blind"), "look"),
    **dict.fromkeys(("failed", "failing", "gone", "fail"), "bad"),
}
SIGNS = {"good": "✓", "calm": "○", "look": "▲", "bad": "✕"}

MESSAGE_WORDS = {
    "queued": "waits to be sent",
    "sending": "is being sent",
    "retrying": "is tried again",
    "sent": "sent",
    "failed": "given up",
    "uncertain": "may have arrived",
}
SOURCE_WORDS = {
    "ok": "read without trouble",
    "new": "not read yet; its first round is silent",
    "waiting": "its host asks for patience",
    "failing": "cannot be read",
    "gone": "gone for good",
    "blind": "answers, but nothing is found in it",
    "silent": "has had no news for long",
    "unstable": "its items change their keys",
}
ALERT_WORDS = {
    "job_failed": "Jobs were given up",
    "source_failing": "A source cannot be read",
    "message_failed": "A message could not be delivered",
    "source_blind": "Nothing is found in a source",
    "source_silent": "A source has had no news for long",
    "source_unstable": "The items of a source change their keys",
    "recipient_blocked": "Nobody is reached at an address",
    "channel_parked": "A channel takes nothing now",
    "quota_low": "A channel's allowance runs low",
    "job_unknown": "Nobody handles jobs of a type",
    "jobs_overdue": "A queue is behind",
    "tick_overdue": "Nobody has rung for long",
    "tick_failed": "A tick broke",
    "config_broken": "The configuration has changed for the worse",
    "schedule_missed": "Slots of a schedule were missed",
    "reminder_failing": "The query of a reminder fails",
}
DONE = {
    "retried": "The job is due again and runs with the next tick.",
    "cancelled": "The job is cancelled.",
    "acknowledged": "Taken on: it is not told again while it is open.",
    "muted": "Muted: it is recorded, and not told until then.",
    "paused": "The queue is paused. What runs may end.",
    "resumed": "The queue goes on with the next tick.",
    "out": "You are logged out.",
}

LAST_YEAR = 9990

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def tone(status: str | None) -> str:
    """Which of four colours and signs a state has."""
    return TONES.get(status or "", "calm")


def instant_of(at: datetime | str | None) -> datetime | None:
    """The instant in UTC; None also of the first and last one, which stand for "always" and "never"."""
    found = datetime.fromisoformat(at) if isinstance(at, str) else at
    if found is None or not 1 < found.year <= LAST_YEAR:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def span(seconds: float) -> str:
    """About so long: `3 min`, `2 h`, `4 d`."""
    for unit, size in UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "0 s"


def ago(at: datetime | str | None, *, now: datetime) -> str:
    """`3 min ago`, `in 2 h`, `now`."""
    found = instant_of(at)
    if found is None:
        return "never"
    left = (found - now).total_seconds()
    if abs(left) < 1:
        return "now"
    return f"in {span(left)}" if left > 0 else f"{span(-left)} ago"


def due(at: datetime | str | None, *, now: datetime) -> str:
    """When something is next: what is due already waits for somebody to ring."""
    found = instant_of(at)
    if found is None:
        return "nothing is due"
    return "due now, with the next tick" if found <= now else f"due {ago(found, now=now)}"


def until(paused: Any) -> str:
    """Of a pause that has no end."""
    return "until somebody ends it" if paused == "forever" or instant_of(paused) is None else ""


def faults(health: Health, facts: Facts) -> Iterator[Mapping[str, str]]:
    """What is not well: a sentence and where to look."""
    for name, [check] in health.checks.items():
        if check["status"] == "pass":
            continue
        sentence, where = _fault(name, check, facts)
        yield {"status": check["status"], "words": sentence, "where": where}


def _fault(name: str, check: Mapping[str, Any], facts: Facts) -> tuple[str, str]:
    match name:
        case "tick:age":
            said = check.get("output") or "the scheduler is late"
            return f"Ticks: {said}.", "#ticks"
        case "alerts:open":
            count = len(facts.open_alerts)
            return f"{_counted(count, 'alert is', 'alerts are')} open.", "#alerts"
        case "jobs:oldest_due":
            return f"A job has been due for {span(check['observedValue'])}.", "/jobs?status=pending"
        case "jobs:held":
            names = ", ".join(shown_name(kind) for kind in check["types"])
            return f"Nobody handles jobs of the type {names}: add a handler, or cancel them.", "/jobs?status=pending"
        case _:
            return f"Sources with trouble: {', '.join(map(shown_name, facts.failing_sources))}.", "/sources"


def _counted(count: int, one: str, many: str) -> str:
    most = 20
    return f"{count} {one}" if count == 1 else f"{count}{' or more' if count >= most else ''} {many}"


def late(facts: Facts, expected_every: timedelta) -> str:
    """The age of the last tick beside what is expected."""
    every = span(expected_every.total_seconds())
    if facts.last_tick_at is None:
        return f"nobody has rung yet; a ring is expected every {every}"
    return f"{ago(facts.last_tick_at, now=facts.now)}; one is expected every {every}"
