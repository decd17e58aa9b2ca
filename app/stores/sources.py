"""Sources: when each is due, and what its last rounds came to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.domain import manners
from app.domain.jobs import retry_delays
from app.domain.watching import UNWATCHED
from app.stores import hosts, jobs, messages, sql, states
from app.stores.database import rows
from app.stores.text import array, clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from app.domain.jobs import Job
    from app.domain.manners import Visited
    from app.domain.watching import Watch
    from app.stores.database import Connection, Database

SQL = sql.load("sources")

ELSEWHERE = timedelta(minutes=1)
"""When a source is planned again whose fetch fell to a replica that knows it no more, or not as it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A source as the configuration has it."""

    name: str
    fingerprint: str
    every: timedelta

    host: str
    """The key of the host at its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What a visit needs to know of the ones before it, and of its host."""

    fingerprint: str
    etag: str | None
    last_modified: str | None
    primed_at: datetime | None

    host: str | None
    """Whose turn a fetch takes. None: not planned since there are turns."""

    refusals: int

    gone: bool
    """Its server has said that it is over for good."""

    distrusted: bool
    """Its validators are not sent any more."""

    moved_to: str | None
    """Where requests begin: a permanent redirect that has proved itself."""

    whole_due: bool | None
    """The last complete round is so old that one without validators is due. None: there was none."""

    unchanged_lately: bool | None
    """The last round was a 304."""

    watched: bool
    """Some replica has planned it lately."""

    wait: timedelta
    """Until its host may be asked; zero or less: now."""

    host_waits: bool
    """It waits because it has asked for it, not only for the gap."""

    host_reason: str | None

    now: datetime
    """By the database's clock."""


class Sources:
    """One row a source that was ever configured."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(self, wanted: Sequence[Wanted]) -> int:
        """Queue a fetch for each source that is due, and tell how many were. Two ticks at once share them.

        Fetches of one host stand in one line: one at a time, over all replicas.
        """
        given = [
            {"name": w.name, "fingerprint": w.fingerprint, "every_seconds": w.every.total_seconds(), "host": w.host}
            for w in wanted
        ]
        [found] = await self._database.fetch(SQL["plan"], {"wanted": json.dumps(given)})
        return int(found["due"])

    async def get(self, name: str) -> SourceState | None:
        """The source's state; None when no tick has planned it yet."""
        params = {"name": name, "whole_seconds": manners.WHOLE_EVERY.total_seconds()}
        found = await self._database.fetch(SQL["get"], params)
        if not found:
            return None
        wait = timedelta(seconds=float(found[0].pop("wait_seconds") or 0))
        return SourceState(**found[0] | {"wait": wait, "host_waits": bool(found[0]["host_waits"])})

    async def keep_unchanged(
        self, job: Job, name: str, fingerprint: str, visited: Visited, watch: Watch = UNWATCHED
    ) -> None:
        """A 304: the source answers, nothing is new and nothing ages. Finishes the job with it; raises LeaseLost."""
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await hosts.answered_in(db, visited.host, gap=visited.gap)
            if await settle_in(db, name, fingerprint, visited):
                await states.judge_in(db, name, watch, None)
                await jobs.finish_in(db, job, "done", result={"unchanged": True})
            else:
                await leave_in(db, job, name)

    async def fail(
        self,
        job: Job,
        name: str,
        fingerprint: str,
        reason: str,
        *,
        host: str,
        gap: timedelta,
        answered: bool,
        jitter: float,
    ) -> int:
        """A round that failed: told, and tried again after the usual delays while its next slot is not nearer.

        `answered`: the host did answer, if badly. Returns how many rounds in a row have failed; 0 when the source has
        been given another address meanwhile. Finishes the job with it; raises LeaseLost.
        """
        params = {
            "name": name,
            "fingerprint": fingerprint,
            "reason": clean(reason),
            "delays": hosts.seconds(retry_delays(jitter=jitter)),
        }
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await hosts.answered_in(db, host, gap=gap, answered=answered)
            found = await rows(db, SQL["fail"], params)
            if not found:
                await leave_in(db, job, name)
                return 0
            # Ended, not put off: as the head of its host's line it would keep the other sources from being read.
            await jobs.finish_in(db, job, "cancelled", error=reason)
            return int(found[0]["failures"])

    async def refuse(
        self,
        job: Job,
        name: str,
        fingerprint: str,
        reason: str,
        *,
        host: str,
        asked: timedelta | None,
        jitter: float,
    ) -> bool:
        """The host asks to be left alone, by 429 or 503: all of its sources wait, this one is no exception.

        Returns whether that has lasted so long that the source counts as failing. Finishes the job with it; raises
        LeaseLost.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            waiting = await hosts.refused_in(db, host, asked=asked, usual=retry_delays(jitter=jitter), reason=reason)
            params = {
                "name": name,
                "fingerprint": fingerprint,
                "reason": clean(reason),
                "wait_seconds": waiting.wait.total_seconds(),
                "host_refusals": waiting.refusals,
                "lasting": manners.LASTING_REFUSALS,
            }
            found = await rows(db, SQL["refuse"], params)
            if not found:
                await leave_in(db, job, name)
                return False
            # Ended: the next time another source of the host asks first, should it be this one that is refused.
            await jobs.finish_in(db, job, "cancelled", error=reason)
            return bool(found[0]["lasting"])

    async def stop(self, job: Job, name: str, fingerprint: str, reason: str, *, host: str, gap: timedelta) -> None:
        """The source is gone for good, says its server: not read any more. Finishes the job; raises LeaseLost."""
        params = {"name": name, "fingerprint": fingerprint, "reason": clean(reason)}
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await hosts.answered_in(db, host, gap=gap)
            if await rows(db, SQL["stop"], params):
                await jobs.finish_in(db, job, "cancelled", error=reason)
            else:
                await leave_in(db, job, name)

    async def leave(self, job: Job, name: str) -> None:
        """This replica does not know the source, or not as it was planned: let the one have it that does.

        It is planned again in a minute, by whoever knows it. Finishes the job; raises LeaseLost.
        """
        async with self._database.transaction() as db:
            await leave_in(db, job, name)

    async def line_up(self, job: Job, name: str) -> None:
        """The job stands in the line of another host than the source is at: a new one takes its place.

        Finishes the job; raises LeaseLost.
        """
        async with self._database.transaction() as db:
            await jobs.finish_in(db, job, "cancelled", error="the source is at another host by now")
            await rows(db, SQL["line_up"], {"name": name})

    async def next_due_at(self, names: Sequence[str]) -> datetime | None:
        """When the first of these sources is due. UTC."""
        [found] = await self._database.fetch(SQL["look"], {"names": array(names)})
        due_at: datetime | None = found["next_source_at"]
        return due_at


async def lock_in(db: Connection, name: str) -> dict[str, Any] | None:
    """What a round is judged by, locked to the end of the transaction: fingerprint, primed mark, keys, dates."""
    found = await rows(db, SQL["lock"], {"name": name})
    return found[0] if found else None


async def leave_in(db: Connection, job: Job, name: str) -> None:
    """`Sources.leave` in the transaction of whoever has found it out. Raises LeaseLost."""
    await rows(db, SQL["leave"], {"name": name, "delay_seconds": ELSEWHERE.total_seconds()})
    await jobs.finish_in(db, job, "cancelled", error="left to a replica that has the source's new configuration")


async def settle_in(
    db: Connection,
    name: str,
    fingerprint: str,
    visited: Visited,
    complete: Complete | None = None,
) -> bool:
    """A round went well: a complete one, or a 304. False: the source has been given another address meanwhile."""
    params = {
        "name": name,
        "fingerprint": fingerprint,
        "complete": complete is not None,
        "distrust": complete is not None and complete.news and visited.against_validators,
        "etag": complete and complete.etag,
        "last_modified": complete and complete.last_modified,
        "ttl_seconds": _seconds(complete.ttl if complete else None),
        "fresh_seconds": _seconds(visited.fresh_for),
        "moved_to": visited.moved_to,
        "moved_host": visited.moved_to and manners.host_key(visited.moved_to),
        "at_once": visited.at_once,
        "least_rounds": manners.MOVED_ROUNDS,
        "least_seconds": manners.MOVED_FOR.total_seconds(),
    }
    found = await rows(db, SQL["settle"], params)
    if not found:
        return False
    if found[0]["moved_now"]:
        await messages.note_in(db, visited.moved_note)
    if found[0]["distrusted_now"]:
        await messages.note_in(db, visited.distrust_note)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """What a complete round has brought beside its items."""

    etag: str | None
    last_modified: str | None

    ttl: timedelta | None
    """How long the document itself asks to be left alone."""

    news: bool
    """Some of its items were not known."""


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else time.total_seconds()
