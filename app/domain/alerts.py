"""An alert is an open incident about the service itself: told once when it opens, once when it is over.

    nothing --something failed--> open --it works again, or nothing is left of it--> resolved
                                  |  ^
                                  `--' failed again: counted, not told

What went well before the latest failure resolves nothing. What stays open is told again after a while, until somebody
acknowledges it. What is muted is recorded and not told; when that is over and it is still open, it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import quote

from app.domain import alertwords, words
from app.domain.parked import shown_name
from app.domain.tally import instant

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
    "job_unknown",
    "jobs_overdue",
    "tick_overdue",
    "tick_failed",
    "config_broken",
    "schedule_missed",
    "reminder_failing",
]

KINDS: tuple[str, ...] = get_args(Kind)

OF_A_CHANNEL = frozenset({"channel_parked", "quota_low"})
OF_A_RECIPIENT = frozenset({"message_failed", "recipient_blocked"})
"""Kinds whose subject is a channel, or a recipient on one: they are told another way, where there is one."""

OF_ANYBODY = frozenset({"job_failed", "job_unknown", "jobs_overdue"})
"""Kinds whose subject is a name that whoever writes to the database has chosen."""

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
    """The name of the job type, the source, the recipient, the channel, the queue; `tick` of ticks."""

    reason: str | None
    """Of the latest failure."""

    failures: int
    """In a row, of a source, and days of a silent one; in all since it opened, of a job type or a recipient."""

    opened_at: datetime
    """UTC."""

    last_job: int | None = None
    """Id of the job that failed last, of a job type; of the first one that waits, of a queue."""

    again: bool = False
    """It was told before, and is still open."""

    kept: int = 0
    """Jobs of the type that stay failed, when it has just been resolved; at most `MOST_KEPT` + 1."""

    healed: bool = True
    """Of a resolved one. False: it did not go well again, but nothing is left of it to go well: the source or recipient
    was taken out of the configuration, the failed jobs were cancelled or pruned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """An alert's text that did not reach its recipient."""

    recipient: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What is to be told after one judging. False where that is nothing."""

    opened: Sequence[Incident] = ()
    """New ones, and those that are told again."""

    resolved: Sequence[Incident] = ()
    undelivered: Sequence[Undelivered] = ()

    def __bool__(self) -> bool:
        return bool(self.opened or self.resolved or self.undelivered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Something that is wrong, which the tick has seen itself: no row in the database says so."""

    kind: Kind
    subject: str
    reason: str | None = None
    last_job: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Well:
    """Something of that sort that goes well."""

    key: str

    seconds: float = 0
    """For so long."""


def key_of(kind: Kind, subject: str) -> str:
    """What an alert is about: one is open for it at most."""
    return f"{kind}:{subject}"


def told(news: News, *, service: str, language: str) -> str:
    """One message about all of it, however much it is: what broke first, then what is over."""
    opened, resolved = news.opened, news.resolved
    if opened and not resolved and all(incident.again for incident in opened):
        parts = [alertwords.still_open(language, service=service)]
    else:
        parts = [words.alert_heading(language, service=service, over=not opened)]
    parts += _lines([_opened(incident, language) for incident in opened], language)
    parts += _lines([_resolved(incident, language) for incident in resolved], language)
    return "\n".join(parts)


def told_instead(lost: Undelivered, *, language: str) -> str:
    """The text that somebody else was to get."""
    return f"{alertwords.undelivered(language, lost.recipient)}\n{lost.text}"


def _lines(lines: list[str], language: str) -> list[str]:
    if len(lines) > MOST_LINES:
        return [*lines[: MOST_LINES - 1], words.and_more(language, len(lines) - MOST_LINES + 1)]
    return lines


def _opened(incident: Incident, language: str) -> str:
    name = _name(incident, language)
    if incident.again:
        name = f"{name} ({alertwords.since(language, instant(incident.opened_at))})"
    reason = " ".join((incident.reason or "").split())
    if len(reason) > REASON_LENGTH:
        reason = f"{reason[: REASON_LENGTH - 1]}…"
    return f"{name}: {reason}" if reason else name


def _name(incident: Incident, language: str) -> str:
    subject, count = _subject(incident), incident.failures
    match incident.kind:
        case "job_failed":
            name = words.jobs_failed(language, subject, count=count, last=incident.last_job)
        case "source_failing":
            name = words.source_failing(language, subject, count=count)
        case "message_failed":
            name = words.messages_failed(language, subject, count=count)
        case "source_blind" | "source_silent" | "source_unstable":
            name = words.source_state(language, incident.kind, subject, count=count)
        case "recipient_blocked":
            name = f"{words.not_reached(language, incident.kind, subject)} ({UNBLOCK} {subject})"
        case "channel_parked" | "quota_low":
            name = words.not_reached(language, incident.kind, subject)
        case _:
            name = alertwords.opened(language, incident.kind, subject, count=count, last=incident.last_job)
    return name


def _subject(incident: Incident) -> str:
    return shown_name(incident.subject) if incident.kind in OF_ANYBODY else incident.subject


def _resolved(incident: Incident, language: str) -> str:
    """That jobs go well again does not mend those that were given up: they are told with it."""
    over = alertwords.over(language, incident.kind, _subject(incident), healed=incident.healed)
    if not incident.kept:
        return over
    count = str(incident.kept) if incident.kept <= MOST_KEPT else f"{MOST_KEPT}+"
    return f"{over}; {words.kept(language, count)}: {KEPT.format(type=quote(incident.subject, safe=''))}"
