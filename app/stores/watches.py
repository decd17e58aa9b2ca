"""Watches: who may give commands in a chat, what they watch for, and the conversations in which they are told."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.domain import watches
from app.domain.folding import fold
from app.domain.watches import Listener, Watch, Watched
from app.stores import conversations, jobs, sql
from app.stores.database import rows
from app.stores.payloads import json_value
from app.stores.text import array, clean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from app.domain.conversations import Inbound
    from app.domain.jobs import Job
    from app.stores.database import Connection, Database

SQL = sql.load("watches")

PERSON_LENGTH = 500

MOST_LOOKED_AT = 1000
"""Items that are looked through for what somebody watches for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An item as it was kept."""

    title: str
    link: str | None
    source: str

    labels: frozenset[str]
    """Of the watches by which it was owed to whoever asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How things are, for one conversation."""

    now: datetime
    muted_until: datetime | None
    last_at: datetime | None
    """When the last tick was."""


class Watches:
    """One row a person, one a watch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_invited(self, chat: str, person: str) -> bool:
        """Whether this person has said the chat's invitation."""
        [found] = await self._database.fetch(SQL["invited"], {"chat": chat, "person": _person(person)})
        return bool(found["invited"])

    async def guess(self, chat: str, person: str, *, said: int) -> int:
        """How often this person has tried today what might be the invitation, this message too: it counts once."""
        params = {"chat": chat, "person": _person(person), "said": said}
        [found] = await self._database.fetch(SQL["guess"], params)
        return int(found["guesses"])

    @asynccontextmanager
    async def obeying(self, job: Job, inbound: Inbound) -> AsyncIterator[Obeying]:
        """One transaction, in which a command is followed and its reply frozen: both happen, once, or neither.

        Raises:
            LeaseLost: the job is another one's.
        """
        async with self._database.transaction() as db:
            await conversations.hold_in(db, inbound)
            await jobs.lock_in(db, job)
            begun = await rows(db, SQL["begin"], {"id": inbound.id})
            reply = json_value(begun[0]["reply"]) if begun else ()  # forgotten meanwhile: nothing is done, nor said
            yield Obeying(db, inbound, None if reply is None else tuple(map(str, reply)))

    async def listener(self, conversation: int) -> Listener | None:
        """Who is told in a conversation; None: nobody watches anything there, or nobody is there any more."""
        found = await self._database.fetch(SQL["listener"], {"conversation": conversation})
        people = json_value(found[0].pop("people")) if found else None
        if not people:
            return None
        return Listener(**found[0], people=tuple((str(person), bool(invited)) for person, invited in people))

    async def find(self, chat: str, key: str) -> int | None:
        """The conversation of that name, where somebody watches something."""
        found = await self._database.fetch(SQL["found"], {"chat": chat, "key": clean(key, limit=500)})
        return int(found[0]["id"]) if found else None

    async def leave(self, recipient: str, conversation: int) -> None:
        """Nobody is there any more: nothing is kept for them."""
        params = {"conversation": conversation, "recipient": recipient}
        await self._database.fetch(SQL["leave"], params)

    async def come_back(self, conversation: int) -> None:
        """Somebody is there again, and hears of what is new from now on."""
        await self._database.fetch(SQL["come_back"], {"conversation": conversation})

    async def drop(self, recipient: str, *, keep: timedelta) -> bool:
        """Forget what has been owed for longer to somebody who cannot be told. Whether anything is left."""
        params = {"recipient": recipient, "keep_seconds": keep.total_seconds()}
        [found] = await self._database.fetch(SQL["drop"], params)
        return bool(found["left"])

    async def count_listeners(self, chats: Collection[str]) -> int:
        """In how many conversations of these chats somebody is told of something."""
        [found] = await self._database.fetch(SQL["count"], {"chats": array(sorted(chats))})
        return int(found["count"])

    async def prune(self, *, most: int) -> int:
        """Forget at most `most` people who have only guessed."""
        return len(await self._database.fetch(SQL["prune"], {"most": most}))


class Obeying:
    """What one message may do, in its transaction."""

    def __init__(self, db: Connection, inbound: Inbound, frozen: tuple[str, ...] | None) -> None:
        self._db = db
        self._inbound = inbound

        self.frozen = frozen
        """The reply of an earlier try, whose effect has been had."""

    @property
    def recipient(self) -> str:
        """The conversation, as a recipient."""
        return watches.recipient_name(self._inbound.chat, self._inbound.conversation_id)

    async def invite(self) -> None:
        """Whoever has said it may give commands."""
        await self._db.execute(SQL["invite"], self._who)

    async def watches(self) -> list[Watch]:
        """Of the person, in this conversation, as they are numbered."""
        found = await rows(self._db, SQL["list"], {**self._who, **self._where})
        return [Watch(id=row["id"], phrases=_phrases(row)) for row in found]

    async def add(self, phrases: Sequence[str], *, most: int) -> bool:
        """Watch for these too. False: the person has `most` watches already, wherever. One that is there stays."""
        [watcher] = await rows(self._db, SQL["watcher"], self._who)
        known = {_mark(watch.phrases) for watch in await self.watches()}
        if watcher["watches"] >= most and _mark(phrases) not in known:
            return False
        params = {"watcher": watcher["id"], **self._where, "phrases": array(phrases), "mark": _mark(phrases)}
        await self._db.execute(SQL["add"], params)
        return True

    async def remove(self, watch: Watch) -> None:
        """Watch for these no longer, and tell nothing that was found for them alone."""
        await self._db.execute(SQL["remove"], {"id": watch.id})
        left = [watches.label(_phrases(row)) for row in await rows(self._db, SQL["labels"], self._where)]
        await self._db.execute(SQL["forget"], {"recipient": self.recipient, "labels": array(left)})

    async def mute(self, length: timedelta) -> Standing:
        """Tell nothing for so long; of no length: tell all again."""
        params = {**self._where, "seconds": length.total_seconds()}
        [muted] = await rows(self._db, SQL["mute"], params)
        return Standing(now=muted["now"], muted_until=muted["muted_until"], last_at=None)

    async def latest(self, sources: Sequence[str], *, most: int = MOST_LOOKED_AT) -> list[Kept]:
        """The newest items of these sources, newest first."""
        params = {"recipient": self.recipient, "sources": array(sources), "most": most}
        return [
            Kept(
                title=row["title"],
                link=row["link"],
                source=row["source"],
                labels=frozenset(map(str, json_value(row["subscriptions"]) or ())),
            )
            for row in await rows(self._db, SQL["latest"], params)
        ]

    async def standing(self) -> Standing:
        """How things are."""
        [found] = await rows(self._db, SQL["status"], self._where)
        return Standing(**found)

    async def freeze(self, texts: Sequence[str], *, secret: bool) -> None:
        """The reply as it will be sent. `secret`: what was said to get it does not stay."""
        await conversations.freeze_in(self._db, self._inbound, texts)
        if secret:
            await self._db.execute(SQL["unsay"], {"id": self._inbound.id})

    @property
    def _who(self) -> dict[str, Any]:
        return {"chat": self._inbound.chat, "person": _person(self._inbound.person or "")}

    @property
    def _where(self) -> dict[str, Any]:
        return {"conversation": self._inbound.conversation_id}


async def watched_in(db: Connection, chats: Collection[str]) -> list[Watched]:
    """All that is watched for in these chats, where somebody is there to be told."""
    found = await rows(db, SQL["watched"], {"chats": array(sorted(chats))})
    return [Watched(**{**row, "phrases": _phrases(row)}) for row in found]


def _mark(phrases: Sequence[str]) -> str:
    """The same for the same phrases, in whatever order and case."""
    return "\n".join(sorted(map(fold, phrases)))


def _phrases(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, json_value(row["phrases"])))


def _person(person: str) -> str:
    return clean(person, limit=PERSON_LENGTH)
