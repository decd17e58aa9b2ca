"""Manners: what the answers of one visit mean for the next one.

429, 503          the host is left alone, with all of its sources
410               the source is over
301, 308          believed once they have been the same for days
max-age, Expires  a longer interval, never a shorter one
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REFUSED = frozenset({429, 503})

GONE = 410

PERMANENT = frozenset({301, 308})

REDIRECTS = frozenset({301, 302, 303, 307, 308})

LASTING_REFUSALS = 3
"""So many in a row are no politeness any more: the source is failing."""

LEAST_WAIT = timedelta(minutes=1)
MOST_WAIT = timedelta(days=1)

MOST_FRESH = timedelta(days=1)
"""The longest interval that a server can ask for: some say a year, and mean the address and not what it lists."""

WHOLE_EVERY = timedelta(days=7)
"""A source that answers "unchanged" for so long is read whole once, whatever its validators say."""

MOVED_FOR = timedelta(days=3)
MOVED_ROUNDS = 3
"""A redirect of a captive portal or a mistaken release lasts hours; one that is the same for days is meant."""

ASKED = re.compile(r"<ttl>\s*([0-9]{1,20})\s*<")
FIRST_ITEM = re.compile(r"<(?:item|entry)[\s>]")

MOST_HEAD = 100_000
"""Characters of a feed without items that are looked at."""

LONGEST_HOST = 500
"""Characters of a key; no host's name is longer, but an address may say anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a visit, a redirect or the last."""

    url: str
    """What was asked for."""

    status: int

    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in lower case."""

    location: str | None = None
    """Where a redirect leads, absolute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """What a visit that went well leaves behind for the next one."""

    host: str
    """Whose turn it was."""

    gap: timedelta
    """How long that host is not asked again."""

    fresh_for: timedelta | None = None
    moved_to: str | None = None

    at_once: bool = False
    """The move needs no days of proof."""

    moved_note: str = ""
    """For the inbox, once the move is believed."""

    against_validators: bool = False
    """The last answer was "unchanged", and this visit did not ask about that: news now mean that it was not so."""

    distrust_note: str = ""
    """For the inbox, when it was not."""


def host_key(url: str) -> str:
    """What has one turn: the host in lower case, without `www.`; its port too, unless it is one of the web's own."""
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "?"
    host = host.removeprefix("www.") or "?"
    return (host if port in {None, 80, 443} else f"{host}:{port}")[:LONGEST_HOST]


def retry_after(value: str | None, *, now: datetime) -> timedelta | None:
    """How long the other side asks to be left alone: by seconds, or by a date that `now` is taken from.

    At most a day; None when it does not say so readably, or names a time that has passed.
    """
    words = (value or "").strip()
    if words.isascii() and words.isdigit():
        asked = timedelta(seconds=min(int(words[:9]), MOST_WAIT.total_seconds()))
    else:
        until = moment(words)
        asked = until - now if until else timedelta(0)
    return min(asked, MOST_WAIT) if asked > timedelta(0) else None


def told_at(headers: Mapping[str, str], *, now: datetime) -> datetime:
    """The time of an answer by its server's own clock, which its other dates are from; ours where it does not tell."""
    return moment(headers.get("date")) or now


def refusal(answers: Sequence[Answer]) -> Answer | None:
    """The answer that asks to be left alone, when the visit ended with one."""
    return answers[-1] if answers and answers[-1].status in REFUSED else None


def asked_wait(answer: Answer, *, now: datetime, every: timedelta) -> timedelta | None:
    """How long a refusal asks to be left alone; None where it does not say.

    From one minute (or the source's own interval, where that is shorter) to a day.
    """
    asked = retry_after(answer.headers.get("retry-after"), now=told_at(answer.headers, now=now))
    return None if asked is None else max(asked, min(LEAST_WAIT, every))


def is_gone(answers: Sequence[Answer]) -> bool:
    """Whether the address itself says that it is over for good: not a place it leads to for now."""
    return bool(answers) and answers[-1].status == GONE and all(hop.status in PERMANENT for hop in answers[:-1])


def moved_to(answers: Sequence[Answer]) -> str | None:
    """Where the address permanently leads; None when it does not."""
    target = None
    for answer in answers:
        if answer.status not in PERMANENT or answer.location is None:
            break
        target = answer.location
    return target if answers and target != answers[0].url else None


def is_upgrade(old: str, new: str) -> bool:
    """Whether the one is the other with https for http: such a move needs no days of proof."""
    return old.startswith("http://") and new == f"https://{old.removeprefix('http://')}"


def fresh_for(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """How long the server says that its answer stays as it is; None when it does not say so, or says at once.

    `Cache-Control: max-age` wins over `Expires` (RFC 9111, section 5.3); what caches on the way have used up of it
    (`Age`) is over.
    """
    said = [part.strip().lower().partition("=") for part in headers.get("cache-control", "").split(",")]
    directives = {name.strip(): value.strip().strip('"') for name, _, value in said}
    if {"no-cache", "no-store"} & directives.keys():
        return None
    if "max-age" in directives:
        lifetime = _seconds(directives["max-age"])
    else:
        expires = moment(headers.get("expires"))
        lifetime = expires - told_at(headers, now=now) if expires else timedelta(0)
    left = lifetime - _seconds(headers.get("age", ""))
    return min(left, MOST_FRESH) if left > timedelta(0) else None


def feed_ttl(document: str) -> timedelta | None:
    """How long a feed itself asks to be left alone: RSS `ttl`, in minutes.

    Only what stands before its first item: that is about the feed. Not `sy:updatePeriod`: whole blog systems say
    "hourly" there for everybody.
    """
    first = FIRST_ITEM.search(document)
    found = ASKED.search(document, 0, first.start() if first else MOST_HEAD)
    asked = timedelta(minutes=min(int(found[1]), MOST_FRESH / timedelta(minutes=1))) if found else timedelta(0)
    return min(asked, MOST_FRESH) if asked > timedelta(0) else None


def moment(value: str | None) -> datetime | None:
    """A date of HTTP in UTC; None where it cannot be read as one."""
    try:
        read = parsedate_to_datetime(value or "")
        return read.replace(tzinfo=read.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _seconds(value: str) -> timedelta:
    """Whole seconds, at most ten years; none for what is no number."""
    words = value.strip()
    return timedelta(seconds=min(int(words[:12]), 315_360_000)) if words.isascii() and words.isdigit() else timedelta(0)
