"""Alerts: what is wrong with ourselves, opened and resolved once, whoever ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from app.domain.alerts import MOST_KEPT, SOURCE_FAILURES, Incident
from app.stores import parked, sql
from app.stores.database import rows
from app.stores.messages import add_in
from app.stores.text import array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from app.domain.messages import Body
    from app.domain.parked import Parked
    from app.stores.database import Database

SQL = sql.load("alerts")

COUNT_OPEN = text("SELECT count(*) AS open, now() AS now FROM wakebell.alerts WHERE resolved_at IS NULL")


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
class Judged:
    """What one judging came to."""

    opened: int
    resolved: int
    open: int

    parked: Parked | None = None
    """Jobs that nobody handles. No alert is opened for them."""


class Alerts:
    """One row an incident."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def judge(
        self,
        *,
        sources: Sequence[str],
        recipients: Sequence[str],
        compose: Callable[[list[Incident], list[Incident]], list[Telling]],
        channels: Sequence[str] = (),
        addresses: Sequence[str] = (),
    ) -> Judged:
        """Open and resolve alerts, with the messages about them, in one transaction.

        `sources`, `recipients` and `channels` are the configured ones, `addresses` those recipients' fingerprints;
        others are nobody's concern any more, and their alerts end.
        `compose` words what was opened and what was resolved; it is called only when there is something, inside the
        transaction, and must neither wait nor raise. Two at once share what there is: nothing is told twice.
        """
        names = {"sources": array(sources)}
        looking = {**names, "source_failures": SOURCE_FAILURES}
        [look] = await self._database.fetch(SQL["look"], looking)
        nobodys = await parked.read(self._database) if look["parked"] else None
        if not look["work"]:
            return Judged(opened=0, resolved=0, open=0, parked=nobodys)
        async with self._database.transaction() as db:
            opened = [Incident(**row) for row in await rows(db, SQL["open"], looking)]
            closing = {
                **names,
                "recipients": array(recipients),
                "channels": array(channels),
                "addresses": array(addresses),
                "most_kept": MOST_KEPT + 1,
            }
            closed = await rows(db, SQL["resolve"], closing)
            resolved = [Incident(**row) for row in closed]
            [counted] = await rows(db, COUNT_OPEN)
            for telling in compose(opened, resolved) if opened or resolved else []:
                await add_in(
                    db,
                    telling.body,
                    recipient=telling.recipient,
                    channel=telling.channel,
                    kind="alert",
                    address=telling.address,
                    not_before=telling.held_until(counted["now"]),
                )
            return Judged(opened=len(opened), resolved=len(resolved), open=counted["open"], parked=nobodys)

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` that were resolved longer than `keep` ago."""
        found = await self._database.fetch(SQL["prune"], {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)
