"""Who is told by a command that they have given in a chat: recipients out of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import plugins
from app.settings.addresses import address_of
from app.settings.booked import check_address
from app.settings.chats import CHATS
from app.settings.model import Recipient

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.domain.watches import Listener, Watched
    from app.settings.chats import ChatSettings
    from app.settings.model import Settings


def chats_that_tell(settings: Settings) -> list[str]:
    """Names of the chats in which somebody may watch something."""
    return [chat.name for chat in settings.chats.values() if chat.commands and chat.channel is not None]


def may_be_told(settings: Settings, watched: Iterable[Watched]) -> list[Watched]:
    """Without those of people who may not give commands any more, and of chats that are gone."""
    telling = set(chats_that_tell(settings))
    return [
        one
        for one in watched
        if one.chat in telling and settings.chats[one.chat].allows(one.person, invited=one.invited)
    ]


def destination(settings: Settings, chat: ChatSettings, address: str | None) -> str | None:
    """The address on the chat's channel; None: nobody can be written to there unasked."""
    if chat.channel is None or address is None:
        return None
    topic = getattr(plugins.load(CHATS, chat.kind), "TOPIC", None)
    try:
        return check_address(settings, chat.channel, address.partition(topic)[0] if topic else address)
    except ValueError:
        return None


def listener(settings: Settings, found: Listener | None) -> Recipient | None:
    """Who is told in that conversation; None: nobody who watches there may be told."""
    chat = settings.chats.get(found.chat) if found is not None else None
    if found is None or chat is None or chat.channel is None or not chat.commands:
        return None
    to = destination(settings, chat, found.address)
    if to is None or not any(chat.allows(person, invited=invited) for person, invited in found.people):
        return None
    return Recipient(
        name=found.recipient,
        channel=chat.channel,
        to=to,
        timezone=settings.service.timezone,
        language=chat.language,
        muted_until=found.muted_until,
    )


def names_at(settings: Settings, address: str) -> list[str]:
    """Recipients of the configuration with that fingerprint: what becomes of their address is told as an alert."""
    return [name for name, one in settings.recipients.items() if address_of(settings, one) == address]
