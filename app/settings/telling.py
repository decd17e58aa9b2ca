"""How somebody wants to be told: not at night, not too much at once, in other words than ours."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app.domain import quiet
from app.domain.messages import OwedItem
from app.domain.phrasing import WordingError
from app.domain.wording import Wording
from app.settings.problems import choose, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from app.domain.quiet import QuietHours
    from app.settings.table import Table

    Fields = Mapping[str, Collection[str] | None]
    """The names that each source's items may have among their fields; None: any."""

MOST_ITEMS = 500
"""In one message; what composing takes at once."""

MOST_MESSAGES = 1000

FILE_BYTES = 100_000

SAMPLE = OwedItem(
    title="Sample",
    link="https://jobs.example/1",
    source="sample",
    subscriptions=("sample",),
    text="A sample of a text.",
)
SEEN_AT = datetime(2026, 11, 30, 9, tzinfo=UTC)

EXAMPLE = "{{ item.title }}"


def read_limits(table: Table) -> dict[str, Any]:
    """The fields of a recipient that say when and how much it is told at once."""
    hours = _quiet_hours(table)
    quiet_alerts = table.flag("quiet_alerts")
    if quiet_alerts and not table.has("quiet_hours"):
        table.tell("quiet_alerts", f'says nothing without quiet hours; write quiet_hours = "{quiet.EXAMPLE}" above it')
    return {
        "quiet_hours": hours,
        "quiet_alerts": quiet_alerts,
        "max_items_per_tick": _most(table, "max_items_per_tick", 150, MOST_ITEMS),
        "max_messages_per_day": _most(table, "max_messages_per_day", 20, MOST_MESSAGES),
    }


def read_wording(table: Table, folder: Path, sources: Collection[str], fields: Fields) -> Wording | None:
    """The subscription's template, tried out.

    `folder` is the configuration file's own; `sources` are those that the subscription hears of.
    """
    key = "template"
    written = table.lines(key, example=EXAMPLE)
    named = table.text("template_file", example="gigs.txt")
    if table.has("template") and table.has("template_file"):
        table.tell("template_file", "stands beside template; remove one of the two")
    elif named is not None:
        key, written = "template_file", _file(table, folder / named)
    if written is None:
        return None
    try:
        wording = Wording(written)
        wording.try_out(SAMPLE, now=SEEN_AT, zone=UTC)
    except WordingError as error:
        table.tell(key, f"{error}; mend that line")
        return None
    _check_fields(table, key, wording, sources, fields)
    return wording


def _quiet_hours(table: Table) -> QuietHours | None:
    written = table.text("quiet_hours", example=quiet.EXAMPLE)
    if written is None:
        return None
    try:
        return quiet.parse(written)
    except ValueError as error:
        table.tell("quiet_hours", f"{shown(written)} {error}")
        return None


def _most(table: Table, key: str, example: int, most: int) -> int | None:
    number = table.whole(key, example, least=1, most=most)
    return number if table.has(key) else None


def _check_fields(table: Table, key: str, wording: Wording, sources: Collection[str], fields: Fields) -> None:
    """Where all that the sources have is known, a field that none of them has is a slip of the pen."""
    known: set[str] = set()
    for source in sources:
        names = fields.get(source)
        if names is None:
            return
        known.update(names)
    for name, line in wording.fields.items() if sources else ():
        if name not in known:
            remedy = choose(name, known, none="name it in the source's fields")
            table.tell(key, f"line {line}: none of its sources has a field {shown(name)}; {remedy}")


def _file(table: Table, path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES + 1).decode("utf-8-sig")
    except OSError as error:
        table.tell("template_file", f"cannot be read ({error.strerror}); name a file beside this one")
        return None
    except UnicodeDecodeError:
        table.tell("template_file", "is no text in UTF-8; save it as such")
        return None
    if not text.strip():
        table.tell("template_file", "is an empty file; write a template into it")
        return None
    return text
