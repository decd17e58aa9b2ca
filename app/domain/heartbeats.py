"""How a dead-man's switch is told of a tick: one address, and its dialect by its shape.

             | start                | went well         | failed                  | which tick it was
    ---------+----------------------+-------------------+-------------------------+------------------
    Kuma     | -                    | ?status=up        | ?status=down            | -
    Sentry   | ?status=in_progress  | ?status=ok        | ?status=error           | check_in_id
    Better   | -                    | the address       | /fail, with the reason  | -
    others   | /start               | the address       | /fail, with the reason  | rid

The others are Healthchecks, hosted or one's own, and whatever speaks like it. Where a start would count as a sign of
life, none is told: a tick that begins and never ends must not pass for a good one.

Sources: healthchecks.io/docs/http_api, Uptime Kuma's server/routers/api-router.js, docs.sentry.io (Crons, HTTP),
betterstack.com/docs/uptime/cron-and-heartbeat-monitor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

Moment = Literal["start", "success", "failure"]

KUMA = re.compile(r"/api/push/")
"""Anywhere: it may stand behind a path of its own."""

SENTRY = re.compile(r"^/api/\d+/cron/")
"""The project's number tells them from an ordinary path with these words."""

BETTER_STACK = re.compile(r"/api/v1/heartbeat/")

SENTRY_STATUS: dict[Moment, str] = {"start": "in_progress", "success": "ok", "failure": "error"}

MOST_BODY = 2000
"""Characters; Healthchecks keeps 10,000 bytes."""

MOST_WORDS = 200
"""Characters of what stands in an address."""

LONGEST_MS = 86_400_000
"""Uptime Kuma refuses more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One request to the switch."""

    url: str

    body: str | None = None
    """Words for the POST; None: a GET."""


def beat(url: str, moment: Moment, *, run: str, words: str = "", took_ms: int = 0) -> Beat | None:
    """What to send; None: this switch is not told of that moment.

    `run` is a UUID, the same at the start and the end of one tick. `words` say what went wrong, in public words; empty:
    nothing. `took_ms` is how long the tick took.
    """
    path = urlsplit(url).path
    if KUMA.search(path):
        return _kuma(url, moment, words, took_ms)
    if SENTRY.search(path):
        return Beat(url=_with(url, {"status": SENTRY_STATUS[moment], "check_in_id": run}))
    if BETTER_STACK.search(path):
        return None if moment == "start" else Beat(url=_towards(url, moment), body=_body(words))
    return Beat(url=_with(_towards(url, moment), {"rid": run}), body=_body(words))


def _kuma(url: str, moment: Moment, words: str, took_ms: int) -> Beat | None:
    if moment == "start":
        return None
    status, usual = ("up", "OK") if moment == "success" else ("down", "tick failed")
    ping = str(min(max(took_ms, 0), LONGEST_MS))
    return Beat(url=_with(url, {"status": status, "msg": words[:MOST_WORDS] or usual, "ping": ping}))


def _body(words: str) -> str | None:
    return words[:MOST_BODY] or None


def _towards(url: str, moment: Moment) -> str:
    """The address, with what is told at the end of its path."""
    if moment == "success":
        return url
    parts = urlsplit(url)
    end = "start" if moment == "start" else "fail"
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{end}"))


def _with(url: str, told: dict[str, str]) -> str:
    """The address with these parameters in place of its own of the same names."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in told]
    return urlunsplit(parts._replace(query=urlencode([*kept, *told.items()])))
