"""What every source may say, whatever its kind: what tells its items apart, and when it is blind."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from app.domain import patterns
from app.domain.identity import PARTS, Identity
from app.domain.watching import Watch
from app.settings.problems import shown

if TYPE_CHECKING:
    from app.domain.identity import Part
    from app.settings.table import Table

OWN_KEYS = ("id_regex", "ignore_params", "max_age_days", "zero_alert_after", "expect_news_days", "merge_days")
"""Beside `key`, where the kind has none of its own."""

MOST_DAYS = 3650
MOST_ROUNDS = 1000


def read_identity(table: Table, *, kind_has_keys: bool) -> Identity:
    """`key`, `id_regex`, `ignore_params`. `kind_has_keys`: `key` is its kind's, which reads it itself."""
    ignored = table.texts("ignore_params", example="session") or ()
    return Identity(
        parts=() if kind_has_keys else _parts(table),
        id_regex=_pattern(table),
        ignored=frozenset(name.strip().lower() for name in ignored),
        decided=kind_has_keys and table.has("key"),
    )


def read_watch(table: Table) -> Watch:
    """Days, of which fractions are allowed, and rounds."""
    return Watch(
        zero_alert_after=table.whole("zero_alert_after", Watch().zero_alert_after, least=0, most=MOST_ROUNDS),
        expect_news=_days(table, "expect_news_days"),
        max_age=_days(table, "max_age_days"),
        merge_within=_days(table, "merge_days"),
    )


def told_apart(identity: Identity) -> str:
    """What of it makes a source another one; empty where nothing is said."""
    said = {
        "key": list(identity.parts),
        "id_regex": identity.id_regex or "",
        "ignore_params": sorted(identity.ignored),
    }
    return json.dumps(said) if any(said.values()) else ""


def _parts(table: Table) -> tuple[Part, ...]:
    written = table.text("key", example="title+date")
    parts = tuple(part.strip() for part in written.split("+")) if written else ()
    if unknown := [part for part in parts if part not in PARTS]:
        names = ", ".join(PARTS)
        table.tell("key", f'is made of {names}, joined by +, and not of {shown(unknown[0])}; write key = "title+date"')
        return ()
    return cast("tuple[Part, ...]", parts)


def _pattern(table: Table) -> str | None:
    written = table.text("id_regex", example="([0-9]+)$")
    fault = patterns.fault(written) if written else None
    if fault is not None:
        table.tell("id_regex", fault)
    return written if fault is None else None


def _days(table: Table, key: str) -> timedelta | None:
    if not table.has(key):
        return None
    rule = "a number of days, more than 0 and at most ten years"
    return timedelta(days=table.number(key, 7, least=1e-6, most=MOST_DAYS, rule=rule))
