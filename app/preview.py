"""A dry run of one source: what it lists, who would hear of it and why, and the very messages they would get.

    read, as a first round --> judge each item --> compose what one tick would tell, were all of it new

All of it is what a tick does, by the same functions; nothing is written and nothing sent, and no database is asked.
"""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from app import plugins, rounds
from app.clients.http import host_of
from app.clients.visits import Visit
from app.composing import Composer, most_items
from app.context import guarded, outbound, user_agent
from app.domain import identity, manners
from app.domain.errors import Failure, ServiceError
from app.domain.items import Unchanged
from app.domain.messages import Owed, OwedItem, Part
from app.domain.shown import instant
from app.handlers.fetch_source import SHORT, STORING, TIMEOUT
from app.sources import Reading
from app.stores.items import as_detailed, as_kept
from app.stores.keys import kept_key
from app.stores.messages import MOST_COUNTED, MOST_ITEMS
from app.stores.text import clean
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from app.domain.items import Fetched
    from app.domain.matching import Judged
    from app.domain.messages import Body
    from app.settings import Recipient, Settings, SourceSettings

    OwedBy = dict[str, list[OwedItem]]
    """By recipient."""

MOST_SHOWN = 200
"""Items."""

TEXT_SHOWN = 4000
"""Characters of an item's text and of each of its fields."""

READING_SECONDS = (TIMEOUT - SHORT - STORING).total_seconds()
"""What a fetch has in a tick that has just begun."""


class UnknownSource(ServiceError):
    """The configuration has no source of that name."""


async def run(settings: Settings, name: str, *, validate: bool = False) -> dict[str, Any]:
    """What a preview is as data. `status` is `ok`, or `failed` with the reason: a failing source is a good answer.

    With `validate`, providers that look at messages without sending them are asked: each message then has `refused`,
    their reason, None where they would take it or cannot be asked.

    Raises:
        UnknownSource: the sentence names those that there are.
    """
    source = settings.sources.get(name)
    if source is None:
        known = f"it has {', '.join(settings.sources)}" if settings.sources else "it has none"
        raise UnknownSource(f'the configuration has no source "{clean(name, limit=100)}"; {known}')
    bound = asyncio.timeout(TIMEOUT.total_seconds())
    try:
        async with bound:
            fetched, warnings = await _read(settings, source)
            told, bodies = await in_thread(partial(_told, settings, source, fetched, warnings))
            if validate:
                await _validate(settings, told["messages"], bodies)
            return dict(told)
    except Failure as failure:
        return _failed(name, str(failure))
    except TimeoutError:
        if not bound.expired():
            raise
        return _failed(name, f"reading and judging took more than {TIMEOUT.total_seconds():g} s")


async def _read(settings: Settings, source: SourceSettings) -> tuple[Fetched, list[str]]:
    agent = user_agent(settings)
    client = guarded if source.deny_private else outbound
    address = str(getattr(source.options, "url", ""))
    async with client(agent) as http, Visit(http, address=address) as visit:
        # Without validators: whatever a tick knows of the source, here all of it is wanted.
        reading = Reading(source=source.name, http=visit.http, user_agent=agent)
        fetched = await rounds.read(source, reading, seconds=READING_SECONDS)
        moved = manners.moved_to(visit.answers)
    if isinstance(fetched, Unchanged):
        raise Failure("answered that nothing has changed, though nothing was asked about a change")
    warnings = list(fetched.warnings)
    if moved is not None:
        warnings.append(f"it has moved for good to {host_of(moved)}: change its url")
    return fetched, warnings


async def _validate(settings: Settings, messages: list[dict[str, Any]], bodies: list[Body]) -> None:
    async with outbound(user_agent(settings)) as http:
        for message, body in zip(messages, bodies, strict=True):
            channel = settings.channels[message["channel"]]
            look: Any = getattr(plugins.load("app.channels", channel.kind), "validate", None)
            message["refused"] = None
            try:
                if look is not None:
                    await look(body.body, channel.options, http)
            except Failure as failure:
                message["refused"] = str(failure)


def _failed(name: str, reason: str) -> dict[str, Any]:
    told = " ".join(clean(reason).split())
    return {"source": name, "status": "failed", "reason": told, "warnings": [], "items": [], "messages": []}


def _told(
    settings: Settings, source: SourceSettings, fetched: Fetched, warnings: list[str]
) -> tuple[dict[str, Any], list[Body]]:
    """The preview, and the messages in it as they would leave."""
    now = datetime.now(UTC)
    judged = list(rounds.judge_all(fetched.items, source.name, settings.subscriptions, now=now))
    keyed = list(zip(_keys(source, fetched), judged, strict=True))
    news = [
        one for one in keyed if not identity.is_old(one[1].item, now=now, oldest_at=None, max_age=source.watch.max_age)
    ]
    owed = _owed(source, news)
    odd = list(_odd(settings, judged, owed, old=len(keyed) - len(news)))
    composed = list(_messages(settings, owed, now, odd.append))
    told = {
        "source": source.name,
        "status": "ok",
        "reason": _reason(len(keyed)),
        "warnings": [clean(warning) for warning in dict.fromkeys([*warnings, *odd])],
        "items": [_item(key, one) for key, one in keyed[:MOST_SHOWN]],
        "messages": [
            {"recipient": recipient.name, "channel": recipient.channel, "parts": _parts(body)}
            for recipient, body in composed
        ],
    }
    return told, [body for _, body in composed]


def _reason(count: int) -> str | None:
    if not count:
        return "it lists nothing"
    return f"the first {MOST_SHOWN} of its {count:,} items are shown" if count > MOST_SHOWN else None


def _odd(settings: Settings, judged: Sequence[Judged], owed: OwedBy, *, old: int) -> Iterator[str]:
    if old:
        yield f"{old} of its items: older than its max_age_days, and so no news to anybody"
    for name in sorted({asked.name for one in judged for asked, verdict in one.verdicts if verdict.slow}):
        yield f"a pattern of {name} takes too long: it counts as not found"
    for name, items in owed.items():
        most = most_items(settings, settings.recipients[name])
        more = len(items) - (MOST_ITEMS if most is None else most)
        if more > 0 and most is None:
            yield f"{name} would hear of {MOST_ITEMS} items at once, and of the other {more} next"
        elif more > 0:
            yield f"{name} would be told {most} items and that there are {more} more: max_items_per_tick says how many"


def _keys(source: SourceSettings, fetched: Fetched) -> list[str]:
    """Each item's key, as a first round gives it."""
    found = identity.marked(fetched.items, source.identity)
    return [kept_key(key) for key in identity.keys(found, identity.deserved(found))]


def _owed(source: SourceSettings, keyed: Sequence[tuple[str, Judged]]) -> OwedBy:
    """Who would hear of which items, in their source's order; of two with one key, the first is."""
    judged_by_key: dict[str, list[Judged]] = {}
    for key, one in keyed:
        judged_by_key.setdefault(key, []).append(one)
    owed: OwedBy = {}
    for alike in judged_by_key.values():
        kept = as_kept(alike[0].item)
        names_by_recipient: dict[str, tuple[str, ...]] = {}
        for one in alike:
            names_by_recipient = one.recipients() | names_by_recipient
        for recipient, names in names_by_recipient.items():
            told = OwedItem(
                title=str(kept["title"]),
                link=kept["link"],
                source=source.name,
                subscriptions=names,
                published_at=alike[0].item.published_at,
                **as_detailed(alike[0].item),
            )
            owed.setdefault(recipient, []).append(told)
    return owed


def _messages(
    settings: Settings, owed: OwedBy, now: datetime, note: Callable[[str], None]
) -> Iterator[tuple[Recipient, Body]]:
    """As they would be at an hour at which all of them may be told."""
    for recipient in settings.recipients.values():
        if recipient.name in owed:
            items, most = owed[recipient.name], most_items(settings, recipient)
            taken = tuple(items[: MOST_ITEMS if most is None else most])
            more = 0 if most is None else min(len(items) - len(taken), MOST_COUNTED)
            for body in Composer(settings, recipient, note=note).compose(Owed(items=taken, more=more, now=now)):
                yield recipient, body


def _parts(body: Body) -> list[dict[str, Any]]:
    parts = body.parts or (Part(text=body.text, length=len(body.text)),)
    return [{"text": part.text, "length": part.length, "limit": part.limit} for part in parts]


def _item(key: str, judged: Judged) -> dict[str, Any]:
    item, kept = judged.item, as_kept(judged.item)
    return {
        "key": key,
        "title": kept["title"],
        "link": kept["link"],
        "published": None if item.published_at is None else instant(item.published_at),
        "text": clean(item.text, limit=TEXT_SHOWN),
        "fields": {clean(name): _value(value) for name, value in item.fields.items()},
        "matches": [
            {"subscription": asked.name, "matched": verdict.matched, "why": clean(verdict.why)}
            for asked, verdict in judged.verdicts
        ],
    }


def _value(value: Any) -> Any:
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return clean(str(value), limit=TEXT_SHOWN)
