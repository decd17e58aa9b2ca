"""Messages: composed once from what is owed, then sent as they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.domain.errors import LeaseLost
from app.domain.messages import Message, Owed, OwedItem
from app.stores import jobs, sql
from app.stores.database import rows
from app.stores.payloads import json_value
from app.stores.sql import text
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from app.domain.jobs import Job
    from app.domain.messages import Body, Receipt
    from app.stores.database import Connection, Database

SEND_QUEUE = "wakebell.send."
"""And the channel's name: the queue of the jobs that send by it."""

SQL = sql.load("messages")

MOST_ITEMS = 500
"""Rows that one compose job tells in full; more are taken by the next one, unless they are only to be counted."""

MOST_COUNTED = 5000
"""Rows that it takes besides, to be counted only."""

NOTE = text(
    "INSERT INTO wakebell.messages (recipient, channel, kind, status, body, text, sent_at, finished_at) "
    "VALUES ('inbox', 'inbox', 'note', 'sent', :body, :body, now(), now())",
)
SENT = text(
    "UPDATE wakebell.messages SET status = 'sent', sent_at = now(), finished_at = now(), last_error = NULL, "
    "provider_id = :provider_id, repeated = :repeated WHERE id = :id",
)
POSTPONED = text(
    "UPDATE wakebell.messages SET status = 'retrying', last_error = :reason, unanswered = unanswered OR :unanswered "
    "WHERE id = :id AND status = 'sending'",
)
ENDED = text(
    "UPDATE wakebell.messages SET status = :status, last_error = :reason, finished_at = now() WHERE id = :id",
)
LATEST = text(
    "SELECT id, recipient, channel, status, text, created_at FROM wakebell.messages "
    "WHERE recipient = :recipient AND id > :after ORDER BY id DESC LIMIT :most",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A message on its way."""

    message: Message
    age: timedelta
    """Since its first try."""

    unanswered: bool
    """An earlier try ended without an answer: it may have arrived."""

    kind: str = "items"
    """`items`, `alert`, or `reminder`."""

    address: str | None = None
    """Fingerprint of where it was composed for; None: composed by a release that did not keep it."""

    moved_to: str | None = None
    """Where that is reached by now, when it is another address."""

    left: timedelta | None = None
    """Until it is of no use; None: it always is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why an open message was not begun."""

    message_id: int
    recipient: str
    channel: str
    kind: str
    unanswered: bool

    blocked: str | None
    """Nobody is at its address, and why."""

    parked: str | None
    """Its channel takes nothing now, and why."""

    expired: bool = False
    """Its time has passed."""

    called_off: str | None = None
    """Its booking changed while it was being sent, and how: that is why its time has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a plan came to."""

    queued: int
    """Compose jobs."""

    abandoned: int
    """Messages that turned out to be given up: each process that tried to send one died of it."""


class Messages:
    """Every message composed, with what became of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(self, recipients: Sequence[str]) -> Planned:
        """Queue a compose job for each of these recipients who is owed something.

        It is for the caller to leave out whom nothing may be told now.
        """
        [found] = await self._database.fetch(SQL["plan"], {"recipients": json.dumps(list(recipients))})
        return Planned(**found)

    async def compose(
        self,
        job: Job,
        *,
        recipient: str,
        channel: str,
        compose: Callable[[Owed], list[Body]],
        most: int | None = None,
        most_a_day: int | None = None,
        told: str | None = None,
        address: str | None = None,
    ) -> int:
        """Turn all that the recipient is owed into frozen messages and their send jobs; finishes the job with it.

        `most` items are to be told in full, the others counted; None: 500, and the others by the next job. With
        `most_a_day`, `compose` is told of as many times when the recipient was told. Where it makes no message, all is
        still owed.

        `told` is who gets them in the recipient's place, when it is another one; `address` is the fingerprint of where.
        `compose` is called inside the transaction and must not wait for anything. Returns the number of messages.

        Raises:
            LeaseLost: another tick has the job, or has told some of the rows.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            found, more = await _owed_in(db, recipient, most)
            if not found:
                await jobs.finish_in(db, job, "done", result={"messages": []})
                return 0
            owed = Owed(
                items=tuple(map(_owed_item, found)),
                more=len(more),
                now=found[0]["now"],
                told_at=await _told_in(db, recipient, most_a_day),
            )
            bodies = compose(owed)
            ids = [
                await add_in(db, body, recipient=told or recipient, channel=channel, kind="items", address=address)
                for body in bodies
            ]
            if ids:
                await _hold_in(db, _told_by(bodies, ids, [row["id"] for row in found], more))
            await jobs.finish_in(db, job, "done", result={"messages": ids})
            return len(ids)

    async def start(self, job: Job, message_id: int) -> Try | Obstacle | None:
        """Commit that the message is being sent, before it is. None: it is over already.

        Raises:
            LeaseLost: the job is another tick's, or will be; a machine that was suspended finds its leases run out.
        """
        params = {"id": message_id, "job": job.id, "token": job.token}
        found = await self._database.fetch(SQL["start"], params)
        if not found:
            return await self._obstacle(job, message_id)
        row = found[0]
        about = {name: row.pop(name) for name in ("age", "unanswered", "kind", "address", "moved_to", "left")}
        return Try(message=Message(**row), **about)

    async def _obstacle(self, job: Job, message_id: int) -> Obstacle | None:
        found = await self._database.fetch(SQL["obstacle"], {"id": message_id})
        if not found:
            return None
        row = found[0]
        if not (row["blocked"] or row["parked"] or row["expired"]):
            raise LeaseLost(f"the lease of job {job.id} ran out before its message was begun")
        return Obstacle(
            message_id=message_id,
            recipient=row["recipient"],
            channel=row["channel"],
            kind=row["kind"],
            unanswered=row["unanswered"],
            blocked=(row["blocked_reason"] or "nobody is there") if row["blocked"] else None,
            parked=(row["parked_reason"] or "it takes nothing now") if row["parked"] else None,
            expired=bool(row["expired"]),
            called_off=row["called_off"],
        )

    async def finish_sent(self, job: Job, message_id: int, receipt: Receipt) -> None:
        """The provider has it. Finishes the job with it; raises LeaseLost."""
        params = {"id": message_id, "provider_id": receipt.provider_id, "repeated": receipt.repeated}
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await db.execute(SENT, params)
            await jobs.finish_in(db, job, "done")

    async def postpone(self, job: Job, message_id: int, reason: str, *, delay: timedelta, unanswered: bool) -> bool:
        """Try again after `delay`. Finishes the try with it; raises LeaseLost. False: called off, and over."""
        params = {"id": message_id, "reason": clean(reason), "unanswered": unanswered}
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await db.execute(POSTPONED, params)
            over = await _let_go_in(db, message_id)
            await jobs.finish_in(db, job, "cancelled" if over else "retry", delay=None if over else delay, error=reason)
        return not over

    async def set_back(self, job: Job, message_id: int, reason: str, *, delay: timedelta) -> None:
        """Try again after `delay`, as if this try had not been: it has reached nobody. Snoozes; raises LeaseLost.

        One that was called off meanwhile is over.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await db.execute(SQL["set_back"], {"id": message_id, "reason": clean(reason)})
            if await _let_go_in(db, message_id):
                await jobs.finish_in(db, job, "cancelled", error=reason)
            else:
                await jobs.finish_in(db, job, "snooze", delay=delay)

    async def take_back(self, job: Job, message_id: int, reason: str) -> None:
        """It reaches nobody: `failed`, and what it tells is owed again, or to be reminded of again.

        Cancels the job with it; raises LeaseLost.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await db.execute(SQL["take_back"], {"id": message_id, "reason": clean(reason)})
            await jobs.finish_in(db, job, "cancelled", error=reason)

    async def give_up(self, job: Job, message_id: int, reason: str, *, uncertain: bool) -> None:
        """No further try: `failed`, or `uncertain` when it may have arrived. Fails the job too; raises LeaseLost."""
        status = "uncertain" if uncertain else "failed"
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await db.execute(ENDED, {"id": message_id, "status": status, "reason": clean(reason)})
            await _let_go_in(db, message_id)
            await jobs.finish_in(db, job, "failed", error=reason)

    async def note(self, words: str) -> None:
        """Put a note into the inbox."""
        async with self._database.transaction() as db:
            await note_in(db, words)

    async def latest(self, recipient: str, *, after: int = 0, most: int = 20) -> list[dict[str, object]]:
        """The newest messages to a recipient with an id above `after`, newest first."""
        return await self._database.fetch(LATEST, {"recipient": recipient, "after": after, "most": most})

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` messages that ended longer than `keep` ago."""
        found = await self._database.fetch(SQL["prune"], {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)


async def note_in(db: Connection, words: str) -> None:
    """A note to the inbox, told by being written."""
    await db.execute(NOTE, {"body": clean(words)})


async def add_in(
    db: Connection,
    body: Body,
    *,
    recipient: str,
    channel: str,
    kind: str,
    address: str | None = None,
    not_before: datetime | None = None,
    expires_at: datetime | None = None,
) -> int:
    """A frozen message and the job that sends it; its id.

    `kind` is `items`, `alert` or `reminder`, `address` a fingerprint. No try begins after `expires_at`.
    """
    params = {
        "not_before": not_before,
        "expires_at": expires_at,
        "recipient": recipient,
        "channel": channel,
        "address": address,
        "kind": kind,
        "body": body.body,
        "text": body.text,
    }
    [added] = await rows(db, SQL["add"], params)
    return int(added["id"])


async def _let_go_in(db: Connection, message_id: int) -> bool:
    """After a try that has failed: whether the message was called off while it lasted, and so is over."""
    return bool(await rows(db, SQL["let_go"], {"id": message_id}))


async def _owed_in(db: Connection, recipient: str, most: int | None) -> tuple[list[dict[str, Any]], list[int]]:
    """Rows to be told in full, and ids of those to be counted."""
    found = await rows(db, SQL["owed"], {"recipient": recipient, "most": MOST_ITEMS if most is None else most})
    if most is None or len(found) < most:
        return found, []
    params = {"recipient": recipient, "after": found[-1]["id"], "most": MOST_COUNTED}
    return found, [row["id"] for row in await rows(db, SQL["owed_more"], params)]


async def _told_in(db: Connection, recipient: str, most: int | None) -> tuple[datetime, ...]:
    if most is None:
        return ()
    told = await rows(db, SQL["told_at"], {"recipient": recipient, "most": most})
    return tuple(row["created_at"] for row in told)


def _told_by(
    bodies: Sequence[Body], messages: Sequence[int], rows_: Sequence[int], more: Sequence[int]
) -> dict[int, int]:
    """Which message tells each row: that which shows it; the last one counts what none shows."""
    told = {rows_[place]: message for body, message in zip(bodies, messages, strict=True) for place in body.items}
    return dict.fromkeys([*rows_, *more], messages[-1]) | told


async def _hold_in(db: Connection, message_by_row: Mapping[int, int]) -> None:
    params = {
        "ids": "{" + ",".join(map(str, message_by_row)) + "}",
        "messages": "{" + ",".join(map(str, message_by_row.values())) + "}",
    }
    [counted] = await rows(db, SQL["hold"], params)
    if counted["held"] != len(message_by_row):
        raise LeaseLost("some of what was owed has been told by somebody else")


def _owed_item(row: Mapping[str, Any]) -> OwedItem:
    fields = json_value(row["fields"])
    return OwedItem(
        title=row["title"],
        link=row["link"],
        source=row["source"],
        subscriptions=tuple(map(str, json_value(row["subscriptions"]))),
        published_at=row["published_at"],
        text=row["text"] or "",
        fields=fields if isinstance(fields, dict) else {},
    )
