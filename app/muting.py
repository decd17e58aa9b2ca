"""What people ask about alerts, by HTTP or on the command line: which one, and what is to be silent for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.asked import Instant, Refused, Text, refusal
from app.domain import spans
from app.domain.alerts import KINDS
from app.domain.shown import told

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from app.stores.incidents import Incidents, Mute, StoredAlert

PATTERN_LENGTH = 500

HOW_LONG = 'give "for", as in "8h", "30m" or "2d"; or "until", an instant'


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    pattern: Text | None = None
    length: Text | None = Field(default=None, alias="for")
    until: Instant | None = None


def read(given: Mapping[str, Any], *, named: bool = False) -> tuple[str, datetime | timedelta]:
    """The pattern and how long; `named`: it is said elsewhere what is to be muted, and the pattern is empty.

    Raises:
        Refused: what of it means nothing, by its field.
    """
    try:
        asked = _Asked.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise refusal(error) from None
    if named and asked.pattern is not None:
        raise Refused("pattern: is said by the alert's id already; leave it out")
    if (asked.length is None) == (asked.until is None):
        raise Refused(f"for: is missing, or stands beside until; {HOW_LONG}")
    pattern = "" if named else known_pattern(asked.pattern or "")
    return pattern, asked.until if asked.until is not None else span(asked.length or "")


def span(written: str) -> timedelta:
    """A length of time.

    Raises:
        Refused: it is none.
    """
    try:
        return spans.parse(written)
    except ValueError as error:
        raise Refused(f"for: {error}") from None


def known_pattern(pattern: str) -> str:
    """A pattern that some alert may fit: `kind:subject`, where `*` stands for anything.

    Raises:
        Refused: none can.
    """
    kind, colon, subject = pattern.partition(":")
    if not pattern or len(pattern) > PATTERN_LENGTH:
        raise Refused(
            f'pattern: must be an alert\'s key with at most {PATTERN_LENGTH} characters: "source_failing:board"'
        )
    if "*" in kind:
        return pattern
    if kind not in KINDS:
        raise Refused(f"pattern: there is no kind of alert before the colon; the kinds are {', '.join(KINDS)}")
    if not colon or not subject:
        raise Refused(f'pattern: names no subject; write "{kind}:*" for all of that kind')
    return pattern


async def find(incidents: Incidents, named: int | str) -> StoredAlert:
    """The alert with this id, or the one that is open for this key.

    Raises:
        Refused: there is none.
    """
    alert = await incidents.find(named)
    if alert is None:
        what = f"no alert {named}" if isinstance(named, int) else f"no open alert with the key {named}"
        raise Refused(f"there is {what}; `wakebell alerts` lists them")
    return alert


async def acknowledge(incidents: Incidents, named: int | str) -> StoredAlert:
    """Take it on: it is not told again while it is open. Returns how it stands then.

    Raises:
        Refused: it is not there, or over.
    """
    alert = await find(incidents, named)
    if not await incidents.acknowledge(alert.id):
        raise Refused(f"alert {alert.id} is over; there is nothing to acknowledge")
    return await find(incidents, alert.id)


async def mute(incidents: Incidents, pattern: str, until: datetime | timedelta) -> datetime:
    """Tell nothing of what fits it. Returns until when.

    Raises:
        Refused: that has passed already.
    """
    muted = await incidents.mute(pattern, until)
    if muted is None:
        raise Refused("until: has passed already; give a later instant")
    return muted


def shown(row: StoredAlert | Mute) -> dict[str, Any]:
    """As programs are shown it."""
    return told(row)
