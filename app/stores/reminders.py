"""Reminders: which bookings are due one, and the messages that tell them, each once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any

from app.domain.bookings import Booking, Start, course, named, zone_of
from app.domain.errors import LeaseLost
from app.stores import jobs, sql
from app.stores.database import rows
from app.stores.messages import add_in
from app.stores.text import array, clean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import timedelta

    from app.domain.bookings import Course, Instant, Rule
    from app.domain.jobs import Job
    from app.domain.messages import Body
    from app.stores.database import Connection, Database

SQL = sql.load("reminders")

MOST = 1000
"""Bookings that are looked at in one transaction."""

MOST_WAITING = 500
"""Starts in the user's own tables that are looked at in one statement."""

MOVED = "the booking was moved or deleted"
TIME_PASSED = "its time has passed before it could be sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A start whose reminder is to be told."""

    booking: str
    starts_at: datetime

    reminder: str
    """The one that fell due last."""

    origin: str = ""
    """Empty: a row of `bookings`; else the first reminder with the query that it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A start in a table of the user's, of which a message waits."""

    origin: str
    booking: str
    starts_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A booking that still has its start."""

    booking: Booking

    told: frozenset[str]
    """Reminders of this start that were told."""

    now: datetime
    """By the database's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What tells a reminder, to be kept with the end of its job."""

    booking: Booking
    origin: str

    passed: Sequence[Instant]
    """All whose instants have passed: the first is told, the others count as told."""

    to: str
    """Name of the recipient who is written to."""

    channel: str
    address: str
    """Fingerprint of where."""

    bodies: Sequence[Body] = ()

    @property
    def expires_at(self) -> datetime:
        """From when on it is of no use."""
        return self.passed[0].expires_at


class Reminders:
    """One mark for each reminder of each start."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep_rules(self, fingerprint_by_name: Mapping[str, str]) -> None:
        """These are configured now. All bookings to come are looked at again."""
        rules = [{"name": name, "fingerprint": value} for name, value in fingerprint_by_name.items()]
        await self._database.fetch(SQL["keep_rules"], {"rules": json.dumps(rules)})

    async def plan(self, rules: Sequence[Rule], *, new: Collection[str] = ()) -> tuple[int, bool]:
        """Queue a job for each booking whose reminder has fallen due; how many, and whether more are to be looked at.

        At most `MOST` bookings; two at once share them. Also for one that has begun meanwhile, if it was booked before:
        its job makes a sound of it. Not for the sake of `new` reminders: no tick could have come for them.
        """
        async with self._database.transaction() as db:
            due = await rows(db, SQL["due"], {"most": MOST})
            if not due:
                return 0, False
            moved, asked = [], []
            for row in due:
                stands = course(_start(row), rules, row["now"])
                moved.append({"id": row["id"], "next_at": _written(stands.next_at)})
                if (one := _worth(stands, row, new)) is not None:
                    asked.append(Asked(booking=row["ref"], starts_at=row["starts_at"], reminder=one.rule.name))
            await db.execute(SQL["move_on"], {"moved": json.dumps(moved)})
            queued = await _queue_in(db, asked) if asked else 0
        return queued, len(due) == MOST

    async def any_due(self) -> bool:
        """Whether `plan` would find anything."""
        [found] = await self._database.fetch(SQL["any_due"])
        return bool(found["due"])

    async def queue(self, asked: Sequence[Asked]) -> int:
        """Queue a job for each whose reminder was not told and that has none yet; how many."""
        async with self._database.transaction() as db:
            return await _queue_in(db, asked)

    async def find(self, ref: str, starts_at: datetime) -> Found | None:
        """The booking, if it still has this start."""
        found = await self._database.fetch(SQL["standing"], {"booking": ref, "starts_at": starts_at})
        if not found:
            return None
        row = found[0]
        booking = Booking(
            start=_start(row),
            **{name: row[name] for name in ("ref", "title", "timezone", "recipient", "channel", "address", "language")},
        )
        return Found(booking=booking, told=frozenset(row["told"]), now=row["now"])

    async def tell(self, job: Job, telling: Telling) -> bool:
        """Keep the messages, their send jobs and the marks, and finish the job with them.

        False: the booking has changed since it was read; nothing was written, and the job goes on.

        Raises:
            LeaseLost: another tick has the job, or has told the reminder.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            if not telling.origin and not await _held_in(db, telling.booking):
                return False
            ids = [
                await add_in(
                    db,
                    body,
                    recipient=telling.to,
                    channel=telling.channel,
                    kind="reminder",
                    address=telling.address,
                    expires_at=telling.expires_at,
                )
                for body in telling.bodies
            ]
            await _mark_in(db, telling, ids[0])
            await jobs.finish_in(db, job, "done", result={"messages": ids})
        return True

    async def give_up(self, job: Job, telling: Telling, text: str, reason: str) -> None:
        """Its time has passed: a message that has failed is kept, which is judged as such; finishes the job with it.

        Raises:
            LeaseLost: another tick has the job, or has told the reminder.
        """
        params = {
            "recipient": telling.to,
            "channel": telling.channel,
            "fingerprint": telling.address,
            "text": clean(text),
            "reason": clean(reason),
            "expires_at": telling.expires_at,
        }
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            [added] = await rows(db, SQL["add_late"], params)
            await _mark_in(db, telling, added["id"])
            await jobs.finish_in(db, job, "done", result={"messages": [added["id"]]})

    async def refuse(
        self, job: Job, *, booking: str, starts_at: datetime, origin: str, passed: Sequence[str], reason: str
    ) -> None:
        """It can be told to nobody, and trying again cannot help: fails the job, and no tick asks for another.

        Raises:
            LeaseLost: another tick has the job.
        """
        params = {
            "booking": booking,
            "starts_at": starts_at,
            "origin": origin,
            "message": None,
            "reminders": json.dumps(list(passed)),
        }
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await db.execute(SQL["mark"], params)
            await jobs.finish_in(db, job, "failed", error=reason)

    async def waiting(self, origin: str, *, after: Waiting | None = None) -> list[Waiting]:
        """Starts in one of the user's own tables whose messages have not left yet: `MOST_WAITING` at most, in order."""
        params = {
            "origin": origin,
            "after_start": None if after is None else after.starts_at,
            "after_booking": None if after is None else after.booking,
            "most": MOST_WAITING,
        }
        return [Waiting(**row) for row in await self._database.fetch(SQL["waiting"], params)]

    async def withdraw(self, origin: str, gone: Sequence[Waiting]) -> None:
        """The user's table has no such starts any more: their messages are not sent."""
        starts = [{"booking": one.booking, "starts_at": one.starts_at.isoformat()} for one in gone]
        await self._database.fetch(SQL["withdraw"], {"origin": origin, "gone": json.dumps(starts), "reason": MOVED})

    async def expire(self) -> int:
        """End the messages whose time has passed before they were sent; how many."""
        return len(await self._database.fetch(SQL["expire"], {"most": MOST, "reason": TIME_PASSED}))

    async def fail_query(self, names: Sequence[str], reason: str) -> None:
        """The query of these reminders failed."""
        await self._database.fetch(SQL["fail_query"], {"names": array(names), "reason": clean(reason, limit=500)})

    async def heal_query(self, names: Sequence[str]) -> None:
        """It works again."""
        await self._database.fetch(SQL["heal_query"], {"names": array(names)})

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` marks of starts longer than `keep` ago."""
        found = await self._database.fetch(SQL["prune"], {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)


async def _queue_in(db: Connection, asked: Sequence[Asked]) -> int:
    given = [
        {
            "origin": one.origin,
            "booking": one.booking,
            "starts_at": one.starts_at.isoformat(),
            "reminder": one.reminder,
        }
        for one in asked
    ]
    [counted] = await rows(db, SQL["queue"], {"asked": json.dumps(given)})
    return int(counted["queued"])


async def _held_in(db: Connection, booking: Booking) -> bool:
    params = {
        "booking": booking.ref,
        "starts_at": booking.start.at,
        "title": booking.title,
        "recipient": booking.recipient,
        "channel": booking.channel,
        "address": booking.address,
        "all_day": booking.start.all_day,
        "timezone": booking.timezone,
        "language": booking.language,
    }
    return bool(await rows(db, SQL["hold"], params))


async def _mark_in(db: Connection, telling: Telling, message: int) -> None:
    params = {
        "booking": telling.booking.ref,
        "starts_at": telling.booking.start.at,
        "origin": telling.origin,
        "message": message,
        "reminders": json.dumps(named(telling.passed)),
    }
    marked = {row["reminder"] for row in await rows(db, SQL["mark"], params)}
    if telling.passed[0].rule.name not in marked:
        raise LeaseLost("the reminder has been told by somebody else")


def _start(row: Mapping[str, Any]) -> Start:
    """What the table holds was read by this service; a zone that this system has lost since is told as UTC."""
    try:
        zone = zone_of(row["timezone"])
    except ValueError:
        zone = zone_of("UTC")
    return Start(at=row["starts_at"], all_day=row["all_day"], zone=zone)


def _worth(stands: Course, row: Mapping[str, Any], new: Collection[str]) -> Instant | None:
    """What to queue a job for: what is due before it begins; after, what no tick came for of a booking made in time."""
    due = stands.due
    if due is None or row["now"] < due.expires_at:
        return due
    missed = next((one for one in stands.passed if one.rule.name not in new), None)
    return missed if missed is not None and row["scheduled_at"] < missed.expires_at else None


def _written(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
