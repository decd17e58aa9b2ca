"""Items: what each source has published, kept once, with what is owed for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from app.stores import hosts, jobs, messages, sources, sql
from app.stores.database import rows
from app.stores.sources import Complete
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from app.domain.items import Fetched, Item
    from app.domain.jobs import Job
    from app.domain.manners import Visited
    from app.stores.database import Database

SQL = sql.load("items")

KEY_BYTES = 2000
"""An index of PostgreSQL takes 2,704 bytes a row: a thousand letters of most of Asia's scripts are more."""

SIGHTING = timedelta(hours=1)
"""How exact `seen_at` is, at most: a round rewrites only rows whose mark is older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An item that a recipient is to hear of, should it turn out to be new."""

    key: str
    recipient: str
    subscriptions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What storing a complete round came to."""

    primed: bool
    """It was the silent first one."""

    added: int
    matched: int


class Items:
    """What was ever seen, until its source has long stopped listing it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_round(
        self,
        job: Job,
        *,
        source: str,
        fingerprint: str,
        fetched: Fetched,
        visited: Visited,
        matches: Sequence[Match],
        keep: timedelta,
        note: Callable[[int], str],
    ) -> Round | None:
        """Store a complete round, all of it or nothing.

        That is: fresh items, what is owed for them, the validators, the primed mark, the end of the job.

        `note` words the inbox's note of a first round from the number of known items. None: the source has been
        given another address meanwhile, nothing was written and it is planned again.

        Raises:
            LeaseLost: another tick has the job.
        """
        async with self._database.transaction() as db:
            await jobs.lock_in(db, job)
            await hosts.answered_in(db, visited.host, gap=visited.gap)
            state = await sources.lock_in(db, source)
            if state is None or state["fingerprint"] != fingerprint:
                await sources.leave_in(db, job, source)
                return None
            priming = state["primed_at"] is None
            [counted] = await rows(
                db,
                SQL["add"],
                {
                    "source": source,
                    "items": json.dumps([as_kept(item) for item in fetched.items]),
                    "matches": json.dumps([_match(match) for match in matches]),
                    "telling": not priming,
                    "sighting_seconds": min(SIGHTING, keep / 50).total_seconds(),
                },
            )
            complete = Complete(
                etag=fetched.etag,
                last_modified=fetched.last_modified,
                ttl=fetched.ttl,
                news=counted["added"] > 0,
            )
            await sources.settle_in(db, source, fingerprint, visited, complete)
            if priming:
                await messages.note_in(db, note(len(fetched.items)))
            stored = Round(primed=priming, added=counted["added"], matched=counted["matched"])
            await jobs.finish_in(db, job, "done", result={"items": len(fetched.items), "new": stored.added})
            return stored

    async def forget(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` items that their sources' complete rounds have not listed for `keep`."""
        found = await self._database.fetch(SQL["forget"], {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)


def as_kept(item: Item) -> dict[str, str | None]:
    """An item as its row has it, and as it is told from there."""
    return {
        "key": _key(item.key),
        "title": clean(item.title, limit=1000),
        "link": None if item.link is None else clean(item.link, limit=4000),
        "published_at": None if item.published_at is None else item.published_at.isoformat(),
    }


def _key(key: str) -> str:
    kept = clean(key, limit=1000)
    return kept if len(kept.encode()) <= KEY_BYTES else sha256(kept.encode()).hexdigest()


def _match(match: Match) -> Mapping[str, object]:
    return {
        "key": _key(match.key),
        "recipient": match.recipient,
        "subscriptions": list(match.subscriptions),
    }
