"""`[reminders.x]`: how long before a booking somebody is told of it, in which words, and whose bookings."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from app.domain import spans
from app.domain.bookings import ALL_DAY_AT, Booking, Rule, Start
from app.domain.phrasing import WordingError
from app.domain.reminding import ReminderWording
from app.settings.names import check_name
from app.settings.problems import shown

if TYPE_CHECKING:
    from app.settings.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderSettings:
    """One `[reminders.x]`."""

    rule: Rule

    wording: ReminderWording | None = None
    """In other words than the service's own."""

    query: str | None = None
    """What reads bookings out of the user's own tables. None: those that programs have put in."""

    fingerprint: str
    """Of what decides when it is told."""


CLOCK = re.compile(r"\s*(\d{1,2}):(\d\d)\s*")

FIRST_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+|\()", re.DOTALL)
READING = frozenset({"select", "with", "table", "values", "("})

PARAMETER = re.compile("[$][0-9]")
"""Also within a text, where it would be harmless: PostgreSQL and its driver do not agree on how many there are."""

QUERY_LENGTH = 10_000

SEEN_AT = datetime(2026, 11, 30, 9, tzinfo=UTC)
SAMPLES = tuple(
    Booking(
        ref="sample",
        title="Sample",
        start=Start(at=SEEN_AT + timedelta(days=1), all_day=all_day, zone=UTC),
        timezone="UTC",
    )
    for all_day in (False, True)
)


def read_reminders(root: Table) -> dict[str, ReminderSettings]:
    """Every one that is named, with its problems told."""
    reminders: dict[str, ReminderSettings] = {}
    for table in root.tables("reminders"):
        check_name(table)
        name = table.keys[-1]
        rule = Rule(name=name, before=_before(table), all_day_at=_all_day_at(table))
        wording, query = _wording(table), _query(table)
        fingerprint = _fingerprint(rule, query)
        reminders[name] = ReminderSettings(rule=rule, wording=wording, query=query, fingerprint=fingerprint)
        table.close()
    return reminders


def _before(table: Table) -> timedelta:
    written = table.text("before", example=spans.EXAMPLE)
    if not table.has("before"):
        table.tell("before", f'is missing; write how long before the start, as in before = "{spans.EXAMPLE}"')
    if written is None:
        return spans.LEAST
    try:
        return spans.parse(written)
    except ValueError as error:
        table.tell("before", f"{shown(written)} {error}")
        return spans.LEAST


def _all_day_at(table: Table) -> time:
    written = table.text("all_day_at", example="09:00")
    if written is None:
        return ALL_DAY_AT
    found = CLOCK.fullmatch(written)
    try:
        return time(int(found[1]), int(found[2])) if found else _no_time()
    except ValueError:
        table.tell("all_day_at", f'{shown(written)} is no time of the day; write it as in all_day_at = "09:00"')
        return ALL_DAY_AT


def _no_time() -> time:
    raise ValueError


def _wording(table: Table) -> ReminderWording | None:
    written = table.lines("text", example="{{ title }}: {{ when }}")
    if written is None:
        return None
    try:
        wording = ReminderWording(written)
        for sample in SAMPLES:
            wording.text(sample, now=SEEN_AT, language="en")
    except WordingError as error:
        table.tell("text", f"{error}; mend that line")
        return None
    return wording


def _query(table: Table) -> str | None:
    written = table.lines("query", example="SELECT ...")
    if written is None:
        return None
    query = written.strip().rstrip(";").rstrip()
    first = FIRST_WORD.match(query)
    if first is None or first[1].lower() not in READING:
        table.tell("query", "does not begin with SELECT or WITH; it may only read")
    if PARAMETER.search(query):
        table.tell("query", "holds a parameter ($1), and there are none; write the value itself")
    if len(query) > QUERY_LENGTH:
        table.tell("query", f"is longer than {QUERY_LENGTH:,} characters; make a view of it, and read that")
    return query


def _fingerprint(rule: Rule, query: str | None) -> str:
    """Of what decides when it is told. A query is asked anew at each tick: what it says decides nothing here."""
    told = f"{rule.before.total_seconds():g}\n{rule.all_day_at}\n{query is not None}"
    return hashlib.sha256(told.encode()).hexdigest()
