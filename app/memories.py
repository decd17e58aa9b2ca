"""Conversations as people look at them, put together from both memories; pauses ended early, and one person forgotten.

Whoever lists them sees who talks and how much. What was said is shown of one conversation alone, when it is asked for.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app import talking
from app.domain.conversations import remembered
from app.domain.errors import MemoryUnavailable
from app.domain.shown import instant
from app.stores.listings import Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from app.domain.conversations import Turn
    from app.settings import Settings
    from app.stores import Stores
    from app.stores.talks import Talk

log = logging.getLogger(__name__)


async def listed(
    settings: Settings,
    stores: Stores,
    *,
    limit: int,
    before: int | None = None,
    chat: str | None = None,
    paused: bool | None = None,
) -> Page[Talk]:
    """A page of them, those that were begun last first. While Redis is away, as far as the database knows."""
    page = await stores.talks.list(limit=limit, before=before, chat=chat, paused=paused)
    return Page(rows=await _with_both(settings, page.rows), more=page.more)


async def found(settings: Settings, stores: Stores, conversation: int) -> dict[str, Any] | None:
    """One of them with its last turns, as programs are shown it; None: it is not there."""
    talk = await stores.talks.find(conversation)
    if talk is None:
        return None
    turns = list(await stores.talks.turns(conversation))
    async with _asked(settings) as memory:
        if memory is not None:
            turns += await memory.last(talk.chat, talk.key, most=settings.memory.turns)
    kept = remembered(turns, now=talk.now, keep=settings.memory.keep, most=settings.memory.turns)
    talk = replace(talk, turns=len(kept), last_at=kept[-1].at if kept else None)
    return {**shown(talk), "last_turns": [_turn(turn) for turn in kept]}


async def forget(settings: Settings, stores: Stores, conversation: int) -> bool:
    """All that was said in it, in both memories, and all that is known of its person. False: it is not there.

    Raises:
        MemoryUnavailable: Redis cannot be asked; nothing is forgotten in the database either, to be asked for again.
    """
    talk = await stores.talks.find(conversation)
    if talk is None:
        return False
    chat = settings.chats.get(talk.chat)
    async with talking.remembering(settings) as memory:
        if memory is not None:
            await memory.forget(talk.chat, talk.key)
        gone = await stores.talks.forget(conversation, kind=None if chat is None else chat.kind)
        if memory is not None:  # somebody may have been answered in between
            await memory.forget(talk.chat, talk.key)
    log.info("conversation forgotten", extra={"chat": talk.chat, "conversation": conversation})
    return gone


def shown(talk: Talk) -> dict[str, Any]:
    """As programs are shown it: without what was said."""
    return {
        "id": talk.id,
        "chat": talk.chat,
        "person": talk.person,
        "turns": talk.turns,
        "last_at": None if talk.last_at is None else instant(talk.last_at),
        "paused_until": None if talk.paused_until is None else instant(talk.paused_until),
    }


async def _with_both(settings: Settings, talks: Sequence[Talk]) -> list[Talk]:
    elsewhere: list[tuple[int, datetime | None]] = [(0, None)] * len(talks)
    async with _asked(settings) as memory:
        if memory is not None:
            elsewhere = await memory.standings([(talk.chat, talk.key) for talk in talks])
    most, keep = settings.memory.turns, settings.memory.keep
    told = []
    for talk, (more, last) in zip(talks, elsewhere, strict=True):
        at = max(filter(None, (talk.last_at, last)), default=None)
        known = at is not None and at > talk.now - keep
        told.append(replace(talk, turns=min(talk.turns + more, most) if known else 0, last_at=at if known else None))
    return told


@asynccontextmanager
async def _asked(settings: Settings) -> AsyncIterator[Any]:
    """The Redis that remembers, where there is one; while it is away the database is asked alone."""
    try:
        async with talking.remembering(settings) as memory:
            yield memory
    except MemoryUnavailable as error:
        log.warning("memory unavailable", extra={"reason": str(error)})


def _turn(turn: Turn) -> dict[str, str]:
    return {"side": turn.side, "text": turn.text, "at": instant(turn.at)}
