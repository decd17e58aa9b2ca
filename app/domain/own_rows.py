"""What a user's own query must give: which columns, of which types."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUIRED = ("ref", "title", "starts_at")

TEXT = frozenset({"text", "varchar", "bpchar", "name", "citext", "unknown"})
NUMBERS = frozenset({"int2", "int4", "int8", "numeric"})
TYPES: dict[str, frozenset[str]] = {
    "ref": TEXT | NUMBERS | {"uuid"},
    "title": TEXT,
    "starts_at": frozenset({"timestamptz"}),
    "timezone": TEXT,
    "to": TEXT,
    "channel": TEXT,
    "address": TEXT,
    "language": TEXT,
    "all_day": frozenset({"bool"}),
}

REMEDIES = {
    "ref": "a column that names the booking, such as id AS ref",
    "title": "a text, such as name AS title",
    "starts_at": "a timestamptz, such as day_and_time AT TIME ZONE 'Asia/Bangkok' AS starts_at",
    "to": 'a recipient\'s name AS "to" (in double quotes), or the two columns channel and address',
}


def faults(type_by_column: Mapping[str, str]) -> list[str]:
    """What is missing or of a wrong type, and what to change; nothing, when all is well."""
    found = [f"has no column {name}; add {REMEDIES[name]}" for name in REQUIRED if name not in type_by_column]
    if "to" not in type_by_column and not {"channel", "address"} <= type_by_column.keys():
        found.append(f"has no column to; add {REMEDIES['to']}")
    for name, allowed in TYPES.items():
        kind = type_by_column.get(name)
        if kind is not None and kind not in allowed:
            found.append(f"gives {name} as {kind}; {_remedy(name)}")
    return found


def unzoned(kind: str) -> str:
    """What to change where `starts_at` is of that type, which has no zone."""
    return f"it gives starts_at as {kind}; {_remedy('starts_at')}"


def _remedy(name: str) -> str:
    if name == "starts_at":
        return f"it must be {REMEDIES['starts_at']}"
    if name == "all_day":
        return "it must be a boolean"
    return f"cast it: CAST({name} AS text) AS {quoted(name)}"


def quoted(name: str) -> str:
    """As SQL has it: `to` is a word of its own."""
    return '"to"' if name == "to" else name
