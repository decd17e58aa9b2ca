"""An alert is an open incident about the service itself: told once when it opens, once when it is over.

    nothing --something failed--> open --it works again, or nothing is left of it--> resolved
                                  |  ^
                                  `--' failed again: counted, not told

What went well before the latest failure resolves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from app.domain import words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

Kind = Literal[
    "job_failed",
    "source_failing",
    "message_failed",
    "source_blind",
    "source_silent",
    "source_unstable",
    "recipient_blocked",
    "channel_parked",
    "quota_low",
]

SOURCE_FAILURES = 3
"""Failed rounds in a row that make a source a failing one: a single one is everyday life on the internet."""

MOST_LINES = 10
"""Incidents that one message names; the rest is a number."""

REASON_LENGTH = 200

MOST_KEPT = 1000
"""Failed jobs of a type that are counted; more are told as so many and a plus sign."""

KEPT = "GET /api/jobs?type={type}&status=failed"
"""Where those are listed that stay failed, though others of their type go well again."""


UNBLOCK = "wakebell unblock"
"""What a person runs once somebody is there again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What opened or was resolved just now."""

    kind: Kind

    subject: str
    """The name of the job type, the source, the recipient or the channel."""

    reason: str | None
    """Of the latest failure."""

    failures: int
    """In a row, of a source, and days of a silent one; in all since it opened, of a job type or a recipient."""

    opened_at: datetime
    """UTC."""

    last_job: int | None = None
    """Id of the job that failed last, when it has just been opened for a job type."""

    kept: int = 0
    """Jobs of the type that stay failed, when it has just been resolved; at most `MOST_KEPT` + 1."""

    healed: bool = True
    """Of a resolved one. False: it did not go well again, but nothing is left of it to go well: the source or recipient
    was taken out of the configuration, the failed jobs were cancelled or pruned."""


def told(opened: Sequence[Incident], resolved: Sequence[Incident], *, service: str, language: str) -> str:
    """One message about all of it, however much it is: what broke first, then what is over."""
    parts = [words.alert_heading(language, service=service, over=not opened)]
    parts += _lines([_opened(incident, language) for incident in opened], language)
    parts += _lines([_resolved(incident, language) for incident in resolved], language)
    return "\n".join(parts)


def _lines(lines: list[str], language: str) -> list[str]:
    if len(lines) > MOST_LINES:
        return [*lines[: MOST_LINES - 1], words.and_more(language, len(lines) - MOST_LINES + 1)]
    return lines


def _opened(incident: Incident, language: str) -> str:
    name = _name(incident, language)
    reason = " ".join((incident.reason or "").split())
    if len(reason) > REASON_LENGTH:
        reason = f"{reason[: REASON_LENGTH - 1]}…"
    return f"{name}: {reason}" if reason else name


def _name(incident: Incident, language: str) -> str:
    match incident.kind:
        case "job_failed":
            return words.jobs_failed(language, incident.subject, count=incident.failures, last=incident.last_job)
        case "source_failing":
            return words.source_failing(language, incident.subject, count=incident.failures)
        case "message_failed":
            return words.messages_failed(language, incident.subject, count=incident.failures)
        case "source_blind" | "source_silent" | "source_unstable":
            return words.source_state(language, incident.kind, incident.subject, count=incident.failures)
        case "recipient_blocked":
            return f"{words.not_reached(language, incident.kind, incident.subject)} ({UNBLOCK} {incident.subject})"
        case "channel_parked" | "quota_low":
            return words.not_reached(language, incident.kind, incident.subject)


def _resolved(incident: Incident, language: str) -> str:
    """That jobs go well again does not mend those that were given up: they are told with it."""
    over = words.over(language, incident.kind, incident.subject, healed=incident.healed)
    if not incident.kept:
        return over
    count = str(incident.kept) if incident.kept <= MOST_KEPT else f"{MOST_KEPT}+"
    return f"{over}; {words.kept(language, count)}: {KEPT.format(type=quote(incident.subject, safe=''))}"
