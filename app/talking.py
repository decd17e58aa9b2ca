"""What providers of chats tell us: kept once, with a job that answers each message; and what else it says is heeded.

delivery --(answered before, as Redis knows)--> nothing to do
   `--> kept with its jobs, in one statement --> staff wrote: the service is silent --> somebody blocked or freed us
"""

from __future__ import annotations

import dataclasses
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from app.clients import recall
from app.domain.conversations import Turn
from app.domain.errors import MemoryUnavailable
from app.domain.watches import recipient_name
from app.settings import address_of, watched
from app.settings.addresses import fingerprint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from app.clients.recall import Recall
    from app.context import Service
    from app.domain.chats import Kind, Said
    from app.settings import Recipient, Settings
    from app.settings.chats import ChatSettings

log = logging.getLogger(__name__)

BLOCKED = "has blocked the bot, or removed it"

REACH = frozenset({"follow", "unfollow"})
PRESENCE = frozenset({"join", "leave"})
"""The same of a group."""

MOST_TURNS = 10
"""Nobody blocks and frees a bot as often while one of it is heeded."""


async def hear(service: Service, chat: ChatSettings, events: Sequence[Said]) -> bool:
    """Keep what a provider has delivered. Whether a message waits for its reply.

    Raises:
        DatabaseUnavailable: nothing is kept; the provider is to come again.
        SchemaOutdated: the same.
    """
    stores = service.stores
    fresh = [_addressed(said) for said in await _unanswered(service, chat, events)]
    if not fresh:  # what is answered wakes no database, nor needs one
        return False
    await stores.require_schema()
    heard = await stores.conversations.keep(chat.name, fresh)
    # Also what was kept before: whoever kept it may have died before it was heeded, and to heed it twice is harmless.
    await _take_over(service, chat, [said for said in fresh if said.kind == "staff"])
    for said in fresh:
        if said.kind in REACH | PRESENCE:
            await _reach(service, chat, said)
    return any(not one.answered for one in heard)


def _addressed(said: Said) -> Said:
    """Without what is none of our business: what people say to each other in a group, and whatever is not answered."""
    overheard = said.kind == "message" and said.group and not said.mentioned
    if overheard or said.kind not in {"message", "staff"}:
        return dataclasses.replace(said, kind="other" if overheard else said.kind, text="")
    return said


async def _unanswered(service: Service, chat: ChatSettings, events: Sequence[Said]) -> list[Said]:
    """Without those that are known to be done with, so that a repeat wakes no database."""
    async with remembering(service.settings) as memory:
        if memory is None:
            return list(events)
        try:
            done = await memory.answered(chat.name, [said.id for said in events])
        except MemoryUnavailable as error:
            log.warning("memory unavailable", extra={"reason": str(error)})
            return list(events)
        return [said for said in events if said.id not in done]


async def _take_over(service: Service, chat: ChatSettings, said: Sequence[Said]) -> None:
    """Somebody of the house has written: the service is silent there for a while, and knows what was said."""
    if not said:
        return
    stores, memory = service.stores, service.settings.memory
    now = await stores.conversations.pause(chat.name, {one.conversation for one in said}, wait=chat.pause)
    for one in said:
        # By the database's clock, as all turns: replicas' own differ.
        turns = [Turn(mark=f"{one.id}:staff", side="staff", text=one.text, at=now)] if one.text and now else []
        await stores.conversations.remember(chat.name, one.conversation, turns, most=memory.turns)
    log.info("conversations paused", extra={"chat": chat.name, "count": len(said)})


async def _reach(service: Service, chat: ChatSettings, said: Said) -> None:
    """Somebody has blocked the bot, or does so no more. What the provider dates last counts, whenever it comes.

    Another replica may have kept a later one and heeded it before we heeded ours: so it is looked at once more.
    """
    stores, kinds = service.stores, REACH if said.kind in REACH else PRESENCE
    heeded: str | None = None
    for _ in range(MOST_TURNS):
        last = await stores.conversations.latest(chat.name, said.conversation, kinds)
        if last is None or last == heeded:
            return
        await _heed(service, chat, dataclasses.replace(said, kind=cast("Kind", last)))
        heeded = last


async def _heed(service: Service, chat: ChatSettings, said: Said) -> None:
    """Recipients at that address, and those who watch there."""
    stores = service.stores
    if chat.commands:
        await _watchers(service, chat, said)
    for recipient in _recipients(service.settings, chat, said) if said.kind in REACH else ():
        address = address_of(service.settings, recipient)
        if said.kind == "follow":
            await stores.reach.unblock(address=address, name=recipient.name)
        else:
            await stores.reach.block(address=address, name=recipient.name, channel=recipient.channel, reason=BLOCKED)
        log.info("recipient told of itself", extra={"recipient": recipient.name, "kind": said.kind})


async def _watchers(service: Service, chat: ChatSettings, said: Said) -> None:
    """Those who watch by commands in that conversation: nothing is owed to them while nobody is there."""
    stores, configured = service.stores, service.settings
    conversation = await stores.watches.find(chat.name, said.conversation)
    if conversation is None:
        return
    name, to = recipient_name(chat.name, conversation), watched.destination(configured, chat, said.address)
    address = fingerprint(configured.channels[chat.channel], to) if chat.channel and to else None
    if _recipients(configured, chat, said):  # it is somebody of the configuration, whose block is an alert
        address = None
    if said.kind in ("follow", "join"):
        await stores.watches.come_back(conversation)
        if address is not None:
            await stores.reach.unblock(address=address, name=name)
        return
    if address is not None and said.kind == "unfollow":  # what was composed already is not sent
        await stores.reach.block(address=address, name=name, channel=str(chat.channel), reason=BLOCKED, alert=False)
    await stores.watches.leave(name, conversation)


def _recipients(settings: Settings, chat: ChatSettings, said: Said) -> list[Recipient]:
    return [
        recipient
        for recipient in settings.recipients.values()
        if recipient.channel == chat.channel and recipient.to and recipient.to == said.address
    ]


@asynccontextmanager
async def remembering(settings: Settings) -> AsyncIterator[Recall | None]:
    """The Redis that remembers, where one is configured."""
    url = settings.environment.redis_url
    if url is None:
        yield None
        return
    prefix = f"wakebell:{settings.service.name}:"
    async with recall.opened(url, prefix=prefix, keep=settings.memory.keep) as memory:
        yield memory
