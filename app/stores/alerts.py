"""Alerts: what is wrong with ourselves, opened and resolved once, whoever ticks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from app.domain.alerts import MOST_KEPT, SOURCE_FAILURES, Incident, News, Sign, Undelivered
from app.stores import parked, sql
from app.stores.database import rows
from app.stores.messages import add_in
from app.stores.sql import text
from app.stores.text import array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from app.domain.alerts import Well
    from app.domain.messages import Body
    from app.domain.parked import Parked
    from app.stores.database import Connection, Database

SQL = sql.load("alerts")

COUNT_OPEN = text("SELECT count(*) AS open, now() AS now FROM wakebell.alerts WHERE resolved_at IS NULL")

NEVER_OVERDUE = 1e9
"""Seconds, where nobody has said how long a job may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """One message about alerts, as its channel composed it."""

    recipient: str
    channel: str
    body: Body

    address: str | None = None
    """Fingerprint of where it goes."""

    held_until: Callable[[datetime], datetime | None] = lambda _: None
    """Of the instant at which it is composed: when it may be sent; None: at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """The names that are configured: of others nothing is said any more, and their alerts end."""

    sources: Sequence[str]
    recipients: Sequence[str]
    channels: Sequence[str] = ()

    addresses: Sequence[str] = ()
    """Fingerprints of where the recipients are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the tick itself has seen."""

    signs: Sequence[Sign] = ()
    well: Sequence[Well] = ()

    overdue: timedelta | None = None
    """How long a job may be due before its queue is behind; None: nobody asks."""

    behind: bool = True
    """Some queue may be."""


NOTHING_SEEN = Seen()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one judging came to."""

    opened: int
    resolved: int
    open: int

    parked: Parked | None = None
    """Jobs that nobody handles."""

    told: bool = False
    """There are messages about it to be sent."""


class Alerts:
    """One row an incident."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def judge(
        self,
        whose: Whose,
        *,
        compose: Callable[[News], list[Telling]],
        seen: Seen = NOTHING_SEEN,
        repeat: timedelta | None = None,
    ) -> Judged:
        """Open and resolve alerts, with the messages about them, in one transaction.

        `compose` words what is to be told; it is called only when there is something, inside the transaction, and must
        neither wait nor raise. What stays open is told again after `repeat`; None: never. Two at once share what there
        is: nothing is told twice.
        """
        names = _names(whose)
        [look] = await self._database.fetch(SQL["look"], names)
        nobodys = await parked.read(self._database) if look["parked"] else None
        signs = [*seen.signs, *_unknown(nobodys), *await self._late(seen)]
        if not look["work"] and not signs:
            return Judged(opened=0, resolved=0, open=0, parked=nobodys)
        overdue = NEVER_OVERDUE if seen.overdue is None else seen.overdue.total_seconds()
        params = {
            **names,
            "signs": json.dumps([asdict(sign) for sign in signs]),
            "well": json.dumps([asdict(well) for well in seen.well]),
            "overdue_seconds": overdue,
            "repeat_seconds": None if repeat is None else repeat.total_seconds(),
            "most_kept": MOST_KEPT + 1,
        }
        async with self._database.transaction() as db:
            return await _judged(db, params, compose, nobodys)

    async def _late(self, seen: Seen) -> list[Sign]:
        if seen.overdue is None or not seen.behind:
            return []
        found = await parked.late(self._database, overdue=seen.overdue)
        return [Sign(kind="jobs_overdue", subject=late.queue, reason=late.type, last_job=late.id) for late in found]

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` that were resolved longer than `keep` ago."""
        found = await self._database.fetch(SQL["prune"], {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)


def _names(whose: Whose) -> dict[str, Any]:
    return {
        "sources": array(whose.sources),
        "recipients": array(whose.recipients),
        "channels": array(whose.channels),
        "addresses": array(whose.addresses),
        "source_failures": SOURCE_FAILURES,
    }


def _unknown(nobodys: Parked | None) -> list[Sign]:
    return [Sign(kind="job_unknown", subject=name) for name in nobodys.old_types] if nobodys is not None else []


async def _judged(
    db: Connection,
    params: dict[str, Any],
    compose: Callable[[News], list[Telling]],
    nobodys: Parked | None,
) -> Judged:
    lost = [Undelivered(**row) for row in await rows(db, SQL["undelivered"])]
    [opened] = await rows(db, SQL["open"], params)
    closed = await rows(db, SQL["resolve"], params)
    due = await rows(db, SQL["tell"], params)
    [counted] = await rows(db, COUNT_OPEN)
    news = News(
        opened=[Incident(**row) for row in due],
        resolved=[Incident(**row) for row in closed if row.pop("told")],
        undelivered=lost,
    )
    tellings = compose(news) if news else []
    for telling in tellings:
        await add_in(
            db,
            telling.body,
            recipient=telling.recipient,
            channel=telling.channel,
            kind="alert",
            address=telling.address,
            not_before=telling.held_until(counted["now"]),
        )
    return Judged(
        opened=opened["opened"],
        resolved=len(closed),
        open=counted["open"],
        parked=nobodys,
        told=bool(tellings),
    )
