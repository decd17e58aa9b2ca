"""Conversations: who is talked with, what was said, and the messages that wait for a reply."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from app.domain.conversations import Heard, Inbound, Turn
from app.stores import jobs, sql
from app.stores.database import rows
from app.stores.messages import add_in
from app.stores.payloads import json_value
from app.stores.text import array, clean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import timedelta

    from app.domain.chats import Said
    from app.domain.jobs import Job
    from app.stores.alerts import Telling
    from app.stores.database import Connection, Database

SQL = sql.load("conversations")

QUEUE = "wakebell.chat."
"""And the chat's name: what is drained as soon as something was said."""

MAX_ATTEMPTS = 6
"""A reply that could not be made or sent for an hour and more is told as a failed job."""

TEXT_LENGTH = 5000
"""Characters of a turn that are remembered."""


class Conversations:
    """One row a conversation, one an event, one a turn."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, chat: str, events: Sequence[Said]) -> list[Heard]:
        """Keep each event once, and queue the answering of each message, in one statement.

        Copies at once: one of them keeps it, and all are told so.
        """
        if not events:
            return []
        given = [_given(place, said) for place, said in enumerate(events)]
        params = {"chat": chat, "given": json.dumps(given), "queue": queue_of(chat), "max_attempts": MAX_ATTEMPTS}
        found = await self._database.fetch(SQL["keep"], params)
        return [
            Heard(event_id=row["event_id"], kind=row["kind"], fresh=row["fresh"], answered=row["answered"])
            for row in found
        ]

    async def pause(self, chat: str, keys: Collection[str], *, wait: timedelta) -> datetime | None:
        """The service does not answer in these conversations before `wait` is over: a person does.

        Returns since when, by the database's clock; None: none of them is there.
        """
        params = {"chat": chat, "keys": array(sorted(keys)), "seconds": wait.total_seconds()}
        paused: list[dict[str, Any]] = await self._database.fetch(SQL["pause"], params)
        return paused[0]["now"] if paused else None

    async def read(self, said: int, *, most: int) -> Inbound | None:
        """A message and the last `most` turns of its conversation, however old; None: it is not there any more."""
        found = await self._database.fetch(SQL["read"], {"id": said, "most": most})
        return _inbound(found[0]) if found else None

    async def waiting(self, inbound: Inbound) -> list[str]:
        """What was said after this message and waits for its reply, the first twenty."""
        params = {"conversation": inbound.conversation_id, "id": inbound.id}
        return [row["text"] for row in await self._database.fetch(SQL["waiting"], params)]

    async def freeze(self, job: Job, inbound: Inbound, texts: Sequence[str]) -> Inbound:
        """Commit the reply and that it is being sent, before it is.

        Returns the message with the token that the reply is to be sent with: it may have come again meanwhile.

        Raises:
            LeaseLost: the job is another one's; nothing may be sent.
        """
        async with self._database.transaction() as db:
            await hold_in(db, inbound)
            await jobs.lock_in(db, job)
            return await freeze_in(db, inbound, texts)

    async def still_of(self, job: Job) -> None:
        """Nothing, where the job is still whose it was when it was frozen: a machine may have been suspended since.

        Raises:
            LeaseLost: the job is another one's; nothing may be sent.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)

    async def progress(self, job: Job, inbound: Inbound, *, sent: int) -> None:
        """So many texts of the reply have arrived, and the next one has not.

        Raises:
            LeaseLost: the job is another one's.
        """
        async with self._database.transaction() as db:
            await hold_in(db, inbound)
            await jobs.lock_in(db, job)
            await db.execute(SQL["progress"], {"id": inbound.id, "sent": sent})

    async def answer(
        self,
        job: Job,
        inbound: Inbound,
        outcome: str,
        *,
        turns: Sequence[Turn] = (),
        most: int,
        pause: timedelta | None = None,
        tellings: Sequence[Telling] = (),
        fault: str | None = None,
    ) -> bool:
        """There is nothing more to do about the message: its turns are remembered, `most` in all. Finishes the job.

        False: the conversation was forgotten meanwhile, and nothing of it is remembered.

        Args:
            job: that had the message.
            inbound: the message.
            outcome: what became of it, in two words.
            turns: what was said, in its order.
            most: turns that are remembered.
            pause: how long the service is silent in the conversation from now on.
            tellings: messages to those who are to know of it.
            fault: why the job counts as failed all the same, which opens an alert.

        Raises:
            LeaseLost: another one has the job; nothing is written.
        """
        async with self._database.transaction() as db:
            there = await hold_in(db, inbound)
            await jobs.lock_in(db, job)
            about = {"id": inbound.id, "conversation": inbound.conversation_id, "outcome": outcome}
            await db.execute(SQL["answer"], about)
            await _remember_in(db, inbound.conversation_id, turns if there else (), most)
            if pause is not None:
                params = {"chat": inbound.chat, "keys": array([inbound.key]), "seconds": pause.total_seconds()}
                await db.execute(SQL["pause"], params)
            for telling in tellings:
                await add_in(
                    db,
                    telling.body,
                    recipient=telling.recipient,
                    channel=telling.channel,
                    kind="alert",
                    address=telling.address,
                )
            if fault is None:
                await jobs.finish_in(db, job, "done", result={"outcome": outcome})
            else:
                await jobs.finish_in(db, job, "failed", error=fault, result={"outcome": outcome})
        return there

    async def remember(self, chat: str, key: str, turns: Sequence[Turn], *, most: int) -> None:
        """Add turns to a conversation that is there."""
        async with self._database.transaction() as db:
            found = await rows(db, SQL["conversation"], {"chat": chat, "key": key})
            if found and turns:
                await _remember_in(db, found[0]["id"], turns, most)

    async def latest(self, chat: str, key: str, kinds: Collection[str]) -> str | None:
        """Which of these kinds was said last in this conversation, by the provider's clock; None: none of them."""
        params = {"chat": chat, "key": clean(key, limit=500), "kinds": array(sorted(kinds))}
        found = await self._database.fetch(SQL["latest"], params)
        return str(found[0]["kind"]) if found else None

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Forget at most `most` conversations in which nothing was said for so long, and what was delivered by then."""
        params = {"keep_seconds": keep.total_seconds(), "most": most}
        [found] = await self._database.fetch(SQL["prune"], params)
        return int(found["pruned"])


def queue_of(chat: str) -> str:
    """Of the jobs that answer in this chat."""
    return f"{QUEUE}{chat}"


async def hold_in(db: Connection, inbound: Inbound) -> bool:
    """Whether the message's conversation is there still: to be asked first in a transaction that writes of one.

    Its row is locked before messages and jobs, as `keep` does, so that none of them waits for another in a circle.
    """
    return bool(await rows(db, SQL["hold"], {"conversation": inbound.conversation_id}))


async def freeze_in(db: Connection, inbound: Inbound, texts: Sequence[str]) -> Inbound:
    """The reply to a message, as it will be sent; the first one that was made stays."""
    params = {"id": inbound.id, "reply": json.dumps([clean(text) for text in texts])}
    frozen = await rows(db, SQL["freeze"], params)
    return dataclasses.replace(inbound, **frozen[0]) if frozen else inbound


async def _remember_in(db: Connection, conversation: int, turns: Sequence[Turn], most: int) -> None:
    if not turns:
        return
    given = [
        {
            "place": place,
            "mark": turn.mark,
            "side": turn.side,
            "text": clean(turn.text, limit=TEXT_LENGTH),
            "at": turn.at.isoformat(),
        }
        for place, turn in enumerate(turns)
    ]
    await db.execute(SQL["remember"], {"conversation": conversation, "turns": json.dumps(given)})
    await db.execute(SQL["trim"], {"conversation": conversation, "most": most})


def _given(place: int, said: Said) -> dict[str, Any]:
    return {
        "place": place,
        "event": clean(said.id, limit=500),
        "kind": said.kind,
        "key": clean(said.conversation, limit=500),
        "address": None if said.address is None else clean(said.address, limit=500),
        "person": None if said.person is None else clean(said.person, limit=500),
        "text": clean(said.text, limit=TEXT_LENGTH),
        "reply_token": None if said.reply_token is None else clean(said.reply_token, limit=500),
        "at": None if said.at is None else said.at.isoformat(),
    }


def _inbound(row: Mapping[str, Any]) -> Inbound:
    given = dict(row)
    reply, turns = json_value(given.pop("reply")), json_value(given.pop("turns"))
    return Inbound(
        **{**given, "retry_key": UUID(str(given["retry_key"]))},
        reply=None if reply is None else tuple(map(str, reply)),
        turns=tuple(
            Turn(mark=mark, side=side, text=text, at=datetime.fromisoformat(at)) for mark, side, text, at in turns or ()
        ),
    )
