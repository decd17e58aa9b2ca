"""Stored rows as programs are shown them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any


def told(row: Any) -> dict[str, Any]:
    """A stored row as JSON has it: its fields, instants in UTC with `Z`, rows inside it likewise."""
    return {field.name: _value(getattr(row, field.name)) for field in fields(row)}


def instant(at: datetime) -> str:
    """ISO 8601 with `Z`, as exact as it is stored."""
    utc = at if at.tzinfo is None else at.astimezone(UTC)  # the driver's infinity, the first or last instant, has none
    return utc.replace(tzinfo=None).isoformat() + "Z"


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, tuple):
        return [_value(inner) for inner in value]
    return told(value) if is_dataclass(value) else value
