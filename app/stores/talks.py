"""Conversations as people look at them: who is talked with, whether it is paused; and forgetting one on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.domain import watches
from app.domain.conversations import Turn
from app.stores import sql
from app.stores.database import rows
from app.stores.listings import Page

if TYPE_CHECKING:
    from datetime import datetime

    from app.stores.database import Database

SQL = sql.load("talks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation, without what was said in it."""

    id: int
    chat: str

    key: str = field(repr=False)
    """By which the provider, and Redis, know it."""

    person: str | None = field(repr=False)
    """The provider's id of the person, or of the group."""

    paused_until: datetime | None
    """A person of the house answers until then; None: the service does."""

    turns: int
    """How many the database remembers."""

    last_at: datetime | None
    """Of the last of them."""

    now: datetime


class Talks:
    """The same rows as `Conversations`, one by one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, *, limit: int, before: int | None = None, chat: str | None = None, paused: bool | None = None
    ) -> Page[Talk]:
        """Those that were begun last first; `paused` None: whether they are or not."""
        params = {"limit": limit + 1, "before": before, "chat": chat, "paused": paused}
        found = [Talk(**row) for row in await self._database.fetch(SQL["list"], params)]
        return Page(rows=found[:limit], more=len(found) > limit)

    async def find(self, conversation: int) -> Talk | None:
        """The one with this id."""
        found = await self._database.fetch(SQL["find"], {"id": conversation})
        return Talk(**found[0]) if found else None

    async def turns(self, conversation: int) -> tuple[Turn, ...]:
        """What was said in it, oldest first, as far as the database remembers it."""
        return tuple(Turn(**row) for row in await self._database.fetch(SQL["turns"], {"id": conversation}))

    async def resume(self, conversation: int) -> bool:
        """End its pause, if there is one. False: there is no such conversation."""
        return bool(await self._database.fetch(SQL["resume"], {"id": conversation}))

    async def forget(self, conversation: int, *, kind: str | None) -> bool:
        """Delete all that was said, delivered and watched for in it, and what is known of its person besides.

        Whoever is answering there finds nothing any more. `kind`: of its chat, where the configuration has that chat.
        False: there is no such conversation.
        """
        async with self._database.transaction() as db:
            found = await rows(db, SQL["lock"], {"id": conversation})
            if not found:
                return False
            chat, person = found[0]["chat"], found[0]["address"]
            recipient = watches.recipient_name(chat, conversation)
            await db.execute(SQL["forget"], {"id": conversation, "recipient": recipient})
            await db.execute(SQL["forget_person"], {"chat": chat, "kind": kind, "person": person})
        return True
