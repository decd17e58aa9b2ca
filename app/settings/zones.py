"""Time zones and languages, where a table names them."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING, cast, get_args

from app.settings.model import Language
from app.settings.problems import FromEnvironment, nearest, shown

if TYPE_CHECKING:
    from app.settings.table import Table

LANGUAGES: tuple[Language, ...] = get_args(Language)


def timezone(table: Table, default: str) -> str:
    """The zone under `timezone`, which is sure to be known to this system."""
    name = table.text("timezone", example="Asia/Bangkok")
    if name is None or name == "UTC":  # UTC needs no data
        return name or default
    try:
        zoneinfo.ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # a name of a folder, `..`, a name that no file can have
        table.tell("timezone", _unknown(name))
        return default
    return str(name)


def language(table: Table, default: Language) -> Language:
    """The language of the service's own words under `language`."""
    name = table.text("language", example="en")
    if name is None:
        return default
    if name not in LANGUAGES:
        table.tell("language", f'must be one of {", ".join(LANGUAGES)}, not {shown(name)}; write language = "en"')
        return default
    return cast("Language", str(name))


def _unknown(name: str) -> str:
    known = zoneinfo.available_timezones()
    if not known:
        return "this system has no time zones at all; install the package tzdata, or write UTC"
    by_lower = {zone.lower(): zone for zone in known}
    close = None if isinstance(name, FromEnvironment) else nearest(name.strip().replace(" ", "_"), by_lower)
    remedy = f'did you mean "{by_lower[close]}"?' if close else 'write it as in "Asia/Bangkok"'
    return f"there is no time zone {shown(name)}; {remedy}"
