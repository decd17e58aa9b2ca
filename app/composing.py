"""What one recipient is told, for a tick and for a preview: how much of what is owed, in whose words, by which channel.

owed --template of a subscription, or none--> digest --channel--> bodies, no more than may go today
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app import plugins
from app.domain import quiet
from app.domain.messages import Digest, DigestItem
from app.domain.phrasing import WordingError
from app.domain.watches import conversation_of
from app.settings import address_of
from app.stores.alerts import Telling

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from app.domain.messages import Body, Owed, OwedItem
    from app.settings import Recipient, Settings

log = logging.getLogger(__name__)

MOST_ITEMS = 150
"""Told in full at once where nobody has said how many: about what one push of LINE holds. More than that in one tick is
no news but a flood."""


def most_items(settings: Settings, recipient: Recipient) -> int | None:
    """How many items the recipient is told in full at once, the others being counted. None: all of them.

    Where nothing is configured, that depends on who reads: people do not want five hundred at once, and programs must
    not miss one.
    """
    if recipient.max_items_per_tick is not None:
        return recipient.max_items_per_tick
    whole = getattr(plugins.load("app.channels", settings.channels[recipient.channel].kind), "WHOLE", False)
    return None if whole else MOST_ITEMS


def held_until(settings: Settings, name: str, now: datetime, full_since: datetime | None) -> datetime | None:
    """When that recipient may be told; None: now. `full_since`: told for the last time but the number of a day."""
    recipient = settings.recipients[name]
    return quiet.held_until(now, recipient.zone, recipient.quiet_hours, full_since=full_since)


def most_a_day(settings: Settings) -> dict[str, int]:
    """How many messages a day each recipient wants who has said so."""
    most = {name: recipient.max_messages_per_day for name, recipient in settings.recipients.items()}
    return {name: count for name, count in most.items() if count is not None}


def notes(settings: Settings, words: Callable[[str], str]) -> list[Telling]:
    """What all who hear of alerts are told at once, each in its language: `words` has it in one."""
    told: list[Telling] = []
    for name in settings.alerts:
        recipient = settings.recipients[name]
        channel = settings.channels[recipient.channel]
        digest = Digest(note=words(recipient.language), to=recipient.to, language=recipient.language)
        bodies = plugins.load("app.channels", channel.kind).compose(digest, channel.options)
        address = address_of(settings, recipient)
        told += [Telling(recipient=name, channel=channel.name, body=body, address=address) for body in bodies]
    return told


class Composer:
    """What makes messages for one recipient out of what it is owed."""

    def __init__(
        self,
        settings: Settings,
        recipient: Recipient,
        *,
        reader: Recipient | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`reader` is who gets them in its place, if that is another one; `note` hears of templates that fail."""
        self._recipient = recipient
        self._reader = reader or recipient
        channel = settings.channels[self._reader.channel]
        self._module: Any = plugins.load("app.channels", channel.kind)
        self._options = channel.options
        # What somebody watches for in a chat has a name too, which may be that of a subscription.
        own = () if conversation_of(recipient.name) is not None else settings.subscriptions
        self._wordings = {one.name: one.template for one in own if one.template is not None}
        self._note = note

    def __call__(self, owed: Owed) -> list[Body]:
        """The messages; none where the recipient may not be told now."""
        recipient = self._recipient
        if recipient.muted_until is not None and recipient.muted_until > owed.now:
            return []
        most = recipient.max_messages_per_day
        full_since = owed.told_at[most - 1] if most is not None and len(owed.told_at) >= most else None
        if quiet.held_until(owed.now, recipient.zone, recipient.quiet_hours, full_since=full_since) is not None:
            return []
        return self.compose(owed)

    def compose(self, owed: Owed) -> list[Body]:
        """The messages, whatever hour it is; no more than are left of the day's."""
        digest = Digest(
            items=tuple(self._item(item, owed.now) for item in owed.items),
            more=owed.more,
            to=self._reader.to,
            language=self._reader.language,
        )
        bodies = self._bodies(digest)
        room = self._room(owed)
        while room is not None and len(bodies) > room and digest.items:
            shown = len(digest.items) * room // len(bodies)
            digest = replace(digest, items=digest.items[:shown], more=digest.count - shown)
            bodies = self._bodies(digest)
        return bodies

    def _room(self, owed: Owed) -> int | None:
        """Messages that are left of the day's; None: as many as one likes."""
        most = self._recipient.max_messages_per_day
        if most is None:
            return None
        today = owed.now.astimezone(self._recipient.zone).date()
        told = sum(at.astimezone(self._recipient.zone).date() >= today for at in owed.told_at)
        return max(most - told, 1)

    def _bodies(self, digest: Digest) -> list[Body]:
        bodies: list[Body] = self._module.compose(digest, self._options)
        return bodies

    def _item(self, item: OwedItem, now: datetime) -> DigestItem:
        told = DigestItem(title=item.title, link=item.link, source=item.source, subscriptions=item.subscriptions)
        for name, wording in self._wordings.items():  # in the file's order: of two, the first one's words are taken
            if name in item.subscriptions:
                try:
                    lines = wording.lines(
                        item, subscription=name, language=self._reader.language, now=now, zone=self._reader.zone
                    )
                except WordingError as error:
                    log.warning("template failed", extra={"subscription": name, "reason": str(error)})
                    self._note(f"template of subscription {name} failed: items are told in the service's own words")
                    return told
                return replace(told, lines=lines)
        return told
