"""An alert is an open incident about the service itself: told once when it opens, once when it is over.

    nothing --something failed--> open --it works again, or nothing is left of it--> resolved
                                  |  ^
                                  `--' failed again: counted, not told

What went well before the latest failure resolves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.domain import words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

Kind = Literal["job_failed", "source_failing", "message_failed"]

SOURCE_FAILURES = 3
"""Failed rounds in a row that make a source a failing one: a single one is everyday life on the internet."""

MOST_LINES = 10
"""Incidents that one message names; the rest is a number."""

REASON_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What opened or was resolved just now."""

    kind: Kind

    subject: str
    """The name of the job type, the source or the recipient."""

    reason: str | None
    """Of the latest failure."""

    failures: int
    """In a row, of a source; in all since it opened, of a job type or a recipient."""

    opened_at: datetime
    """UTC."""

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
    reason = " ".join((incident.reason or "").split())
    if len(reason) > REASON_LENGTH:
        reason = f"{reason[: REASON_LENGTH - 1]}…"
    name = _name(incident, language)
    if incident.kind != "source_failing" and incident.failures > 1:
        name = f"{name} ({incident.failures})"
    return f"{name}: {reason}" if reason else name


def _resolved(incident: Incident, language: str) -> str:
    tell = words.recovered if incident.healed else words.closed
    return tell(language, _name(incident, language))


def _name(incident: Incident, language: str) -> str:
    return words.incident(language, incident.kind, subject=incident.subject, failures=incident.failures)
