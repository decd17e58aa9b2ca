"""An alert is an open incident about the service itself: told once when it opens, once when it heals.

nothing ---something failed---> open ---it works again---> resolved
|  ^
`--' failed again: counted, not told
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

    opened_at: datetime
    """UTC."""


def told(opened: Sequence[Incident], resolved: Sequence[Incident], *, service: str, language: str) -> str:
    """One message about all of it, however much it is: what broke first, then what works again."""
    parts = [words.alert_heading(language, service=service)]
    parts += _lines([_opened(incident, language) for incident in opened], language)
    parts += _lines([words.recovered(language, _name(incident, language)) for incident in resolved], language)
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
    return f"{name}: {reason}" if reason else name


def _name(incident: Incident, language: str) -> str:
    return words.incident(language, incident.kind, subject=incident.subject, failures=incident.failures)
