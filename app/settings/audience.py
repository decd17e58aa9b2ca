"""Who is told of what: recipients and subscriptions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from app.domain import patterns
from app.domain.subscriptions import Subscription
from app.settings.model import EVERYTHING, INBOX, Recipient
from app.settings.names import check_name
from app.settings.problems import SHOWN_LENGTH, choose, shown
from app.settings.sections import MOST_DAYS
from app.settings.telling import read_limits, read_wording
from app.settings.zones import language, timezone

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from app.settings.model import Service
    from app.settings.table import Table
    from app.settings.telling import Fields

    Checks = Mapping[str, Callable[[str], str | None]]


REPEAT_HOURS = 24
MOST_REPEAT_HOURS = 24 * 366


def read_recipients(
    root: Table, service: Service, channels: Mapping[str, bool], checks: Checks
) -> dict[str, Recipient]:
    """Every one that is named, with its problems told, and the inbox.

    `channels` says of each channel's name whether its recipients need an address (`to`); `checks`, of some of them,
    what is wrong with an address.
    """
    recipients: dict[str, Recipient] = {}
    for table in root.tables("recipients"):
        check_name(table)
        name = table.keys[-1]
        if name == INBOX:
            table.problems.add(table.where(), f"the recipient {INBOX} is built in; remove it, or give it another name")
        recipients[name] = _recipient(table, service, channels, checks)
        table.close()
    _check_fallbacks(root, recipients)
    inbox = Recipient(name=INBOX, channel=INBOX, to="", timezone=service.timezone, language=service.language)
    return recipients | {INBOX: inbox}


def read_subscriptions(
    root: Table, sources: Collection[str], recipients: Collection[str], fields: Fields, folder: Path
) -> list[Subscription]:
    """Every one that is named, with its problems told; one of everything where none is named.

    `fields` are the names that each source's items have among their fields, where they are known; `folder` is the
    configuration file's own.
    """
    subscriptions: list[Subscription] = []
    for table in root.tables("subscriptions"):
        check_name(table)
        subscription = _subscription(table, sources, recipients)
        heard = [source for source in sources if subscription.hears(source)]
        subscriptions.append(replace(subscription, template=read_wording(table, folder, heard, fields)))
        table.close()
    if sources and not subscriptions:
        subscriptions.append(Subscription(name=EVERYTHING, to=(INBOX,)))
    return subscriptions


def read_alerts(table: Table, recipients: Collection[str]) -> tuple[tuple[str, ...], timedelta | None]:
    """Who is told of alerts: the inbox where nobody is named. And how long until they are told again; None: never."""
    to = _references(table, "to", recipients, one="recipient", absent=f"to tell the {INBOX}")
    rule = f"a number of hours from 0 (never again) to {MOST_REPEAT_HOURS}"
    hours = table.number("repeat_hours", REPEAT_HOURS, least=0, most=MOST_REPEAT_HOURS, rule=rule)
    table.close()
    return (INBOX,) if to is None else to, timedelta(hours=hours) if hours else None


def names_in(root: Table, section: str) -> set[str]:
    """The names that stand under a section, right or wrong: to refer to one of them is no further problem."""
    named = root.values.get(section)
    return set(named) if isinstance(named, dict) else set()


def _recipient(table: Table, service: Service, channels: Mapping[str, bool], checks: Checks) -> Recipient:
    channel = table.text("channel", example=INBOX)
    if not table.has("channel"):
        table.tell("channel", f"is missing; write the name of a channel ({choose('', channels, none=INBOX)})")
    elif channel is not None and channel not in channels:
        table.tell("channel", f"there is no channel {shown(channel)}; {choose(channel, channels, none=INBOX)}")
    to = table.text("to", example="env:NAME")
    if not table.has("to") and channel is not None and channels.get(channel):
        table.tell("to", f'is missing: whom to reach on the channel {shown(channel)}; write to = "..."')
    elif to is not None and channel is not None and channel in checks and (wrong := checks[channel](to)):
        table.tell("to", f"{shown(to)} {wrong}")
    return Recipient(
        name=table.keys[-1],
        channel=str(channel or INBOX),
        to=str(to or ""),
        timezone=timezone(table, service.timezone),
        language=language(table, service.language),
        fallback=_fallback(table),
        **read_limits(table),
    )


def _fallback(table: Table) -> str | None:
    name = table.text("fallback", example=INBOX)
    return None if name is None else str(name)


def _check_fallbacks(root: Table, recipients: Mapping[str, Recipient]) -> None:
    """Each is another recipient, and none stand in for each other: that would look as if one of them was reached."""
    told: set[str] = set()
    for table in root.tables("recipients"):
        name = table.keys[-1]
        named = recipients[name].fallback
        known = [*recipients, INBOX]
        if named is None or name in told:
            continue
        if named not in known:
            table.tell("fallback", f"there is no recipient {shown(named)}; {choose(named, known, none='remove it')}")
        elif named == name:
            table.tell("fallback", "is the recipient itself; name another one, or remove the line")
        elif name in (behind := _behind(named, recipients)):
            table.tell("fallback", f"leads in a circle by way of {shown(named)}; take one of its lines away")
            told |= behind


def _behind(name: str, recipients: Mapping[str, Recipient]) -> set[str]:
    """Who stands in for it, and for that one, as far as it goes."""
    seen: set[str] = set()
    at: str | None = name
    while at is not None and at not in seen:
        seen.add(at)
        at = recipients[at].fallback if at in recipients else None
    return seen


def _subscription(table: Table, sources: Collection[str], recipients: Collection[str]) -> Subscription:
    named = _references(table, "sources", sources, one="source", absent="to hear of all sources")
    to = _references(table, "to", recipients, one="recipient", absent=f"to tell the {INBOX}")
    return Subscription(
        name=table.keys[-1],
        sources=None if named is None else frozenset(named),
        any=_words(table, "any"),
        all=_words(table, "all"),
        none=_words(table, "none"),
        regex=_patterns(table),
        fields=_fields(table),
        min=MappingProxyType(table.numbers("min")),
        max=MappingProxyType(table.numbers("max")),
        max_age=_max_age(table),
        to=(INBOX,) if to is None else to,
    )


def _references(table: Table, key: str, known: Collection[str], *, one: str, absent: str) -> tuple[str, ...] | None:
    """Names of things that are there, each once; None where the key is not there."""
    names = table.texts(key, example=min(known, default="NAME"))
    if table.values.get(key) == []:
        table.tell(key, f"is empty, so that nothing would ever be told; remove the line {absent}")
    for position, name in enumerate(names or ()):
        if name not in known:
            table.tell(key, f"there is no {one} {shown(name)}; {choose(name, known, none='remove the name')}")
        elif name in (names or ())[:position]:
            table.tell(key, f"names {shown(name)} twice; remove one of them")
    return None if names is None else tuple(str(name) for name in names)


def _words(table: Table, key: str) -> tuple[str, ...]:
    return tuple(str(word) for word in dict.fromkeys(table.texts(key, example="python") or ()))


def _patterns(table: Table) -> tuple[str, ...]:
    """Those that can be searched for; the others are told."""
    given = list(dict.fromkeys(table.texts("regex", example="python[0-9]*") or ()))
    faults = [patterns.fault(pattern) for pattern in given]
    for place, (pattern, fault) in enumerate(zip(given, faults, strict=True), 1):
        if fault is not None:
            name = shown(pattern) if len(pattern) <= SHOWN_LENGTH else f"pattern {place} of the list"
            table.tell("regex", f"{name} {fault}")
    return tuple(str(pattern) for pattern, fault in zip(given, faults, strict=True) if fault is None)


def _fields(table: Table) -> Mapping[str, tuple[str, ...]]:
    lists = table.lists("fields", example='company = ["Acme"]')
    return MappingProxyType({str(name): tuple(map(str, dict.fromkeys(words))) for name, words in lists.items()})


def _max_age(table: Table) -> timedelta | None:
    rule = "a number of days, more than 0 and at most a hundred years"
    days = table.number("max_age_days", 7, least=1e-6, most=MOST_DAYS, rule=rule)
    return timedelta(days=days) if table.has("max_age_days") else None
