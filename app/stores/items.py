"""Items: what each source has published, kept once, with what is owed for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.domain import identity
from app.domain.identity import UNSAID
from app.domain.watching import UNWATCHED
from app.stores import hosts, jobs, keys, messages, sources, sql, states, watches
from app.stores.database import rows
from app.stores.keys import kept_key
from app.stores.sources import Complete
from app.stores.text import array, clean

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from app.domain.identity import Identity, Marked, Rule
    from app.domain.items import Fetched, Item
    from app.domain.jobs import Job
    from app.domain.manners import Visited
    from app.domain.recognition import Keyed
    from app.domain.watches import Watched
    from app.domain.watching import Watch
    from app.stores.database import Connection, Database
    from app.stores.keys import Sorted

SQL = sql.load("items")

SIGHTING = timedelta(hours=1)
"""How exact `seen_at` is, at most: a round rewrites only rows whose mark is older."""

DETAIL_LENGTH = 4000
"""Characters of a text or a field that are kept for a template."""

MOST_FIELDS = 50

MOST_NUMBER = 10**15
"""A greater one is kept as the text of its digits; so is what is no number: infinity, for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An item that a recipient is to hear of, should it turn out to be new."""

    key: str
    recipient: str
    subscriptions: tuple[str, ...]

    detailed: bool = False
    """A template tells it: its text and its fields are kept too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """Who watches for what, by commands in chats."""

    chats: Sequence[str]
    """In which that may be; not empty."""

    match: Callable[[Sequence[Item], Sequence[Watched]], Awaitable[Sequence[Match]]]
    """Which of these new items whom of these is to hear of. Waits for nothing but a thread: a transaction is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What storing a complete round came to."""

    primed: bool
    """It was the silent first one."""

    added: int
    matched: int

    rule: Rule = "id"
    """What the keys are made of from now on, and whether that is new."""

    degraded: bool = False

    unstable: bool = False
    """Its keys cannot be believed: what was known has the new ones, and nothing was told."""

    empty: bool = False
    """It listed nothing, and has listed something before."""


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
        marked: Sequence[Marked] | None = None,
        apart: Identity = UNSAID,
        watch: Watch = UNWATCHED,
        merge_with: Sequence[str] = (),
        unexplained: bool = False,
        watching: Watching | None = None,
    ) -> Round | None:
        """Store a complete round, all of it or nothing.

        That is: fresh items, new keys of known ones, what is owed, the validators, the primed mark, what the round says
        of its source, the end of the job. Where it lists nothing for no reason that is known (it has listed something
        before, or `unexplained`), or its keys cannot be believed, or its end is missing, the validators are not those
        of such a round.

        `marked` are the items as `identity.marked` has them, by `apart`; worked out here where it is not given.
        `merge_with` are the sources, with itself, of which nobody hears the same twice, where `watch` says so.

        `watching` tells who watches for what is new, by commands in chats; asked only where something is.

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
            found = identity.marked(fetched.items, apart) if marked is None else marked
            by_key = await keys.sort_in(db, source, state, found, apart.ignored, whole=fetched.whole)
            if watching is not None:
                matches = [*matches, *await _watched_in(db, by_key, state, watching)]
            empty = unexplained or await _lists_no_more_in(db, source, fetched, state["primed_at"])
            counted = await self._add_in(
                db,
                by_key,
                source=source,
                state=state,
                watch=watch,
                matches=await _unmerged_in(db, by_key, matches, source=source, watch=watch, merge_with=merge_with),
                sighting=min(SIGHTING, keep / 50),
            )
            stored = Round(
                primed=state["primed_at"] is None,
                **counted,
                rule=by_key.rule,
                degraded=state["primed_at"] is not None and by_key.rule != state["key_rule"],
                unstable=by_key.unstable,
                empty=empty,
            )
            complete = _complete(fetched, by_key, stored) if fetched.whole and not empty else None
            await sources.settle_in(db, source, fingerprint, visited, complete)
            await states.judge_in(db, source, watch, _read(fetched, stored))
            if stored.primed:
                await messages.note_in(db, note(len(by_key.kept)))
            result = {"items": len(fetched.items), "new": stored.added, "edited": by_key.moved, "held": by_key.held}
            told = {name: count for name, count in result.items() if count or name in {"items", "new"}}
            await jobs.finish_in(db, job, "done", result=told)
            return stored

    async def _add_in(
        self,
        db: Connection,
        by_key: Sorted,
        *,
        source: str,
        state: Mapping[str, Any],
        watch: Watch,
        matches: Sequence[Match],
        sighting: timedelta,
    ) -> dict[str, int]:
        priming = state["primed_at"] is None
        oldest_at = None if priming else state["oldest_at"]
        max_age = None if priming else watch.max_age
        detailed = {by_key.key_by_handle.get(match.key, match.key) for match in matches if match.detailed}
        items = [
            _row(keyed, now=state["now"], oldest_at=oldest_at, max_age=max_age)
            | (as_detailed(keyed.mark.item) if keyed.key in detailed else {})
            | {"place": place}
            for place, keyed in enumerate(by_key.kept)
        ]
        params = {
            "source": source,
            "items": json.dumps(items),
            "matches": json.dumps([_match(match, by_key) for match in matches]),
            "telling": not priming,
            "sighting_seconds": sighting.total_seconds(),
        }
        [counted] = await rows(db, SQL["add"], params)
        return counted

    async def forget(self, *, keep: timedelta, most: int) -> int:
        """Delete at most `most` items that their sources' complete rounds have not listed for `keep`."""
        found = await self._database.fetch(SQL["forget"], {"keep_seconds": keep.total_seconds(), "most": most})
        return len(found)


def as_kept(item: Item) -> dict[str, str | None]:
    """An item as its row has it, and as it is told from there."""
    return {
        "key": kept_key(item.key),
        "title": clean(item.title, limit=1000),
        "link": None if item.link is None else clean(item.link, limit=4000),
        "published_at": None if item.published_at is None else item.published_at.isoformat(),
    }


def as_detailed(item: Item) -> dict[str, Any]:
    """What templates tell of it besides."""
    fields = list(item.fields.items())[:MOST_FIELDS]
    return {
        "text": clean(item.text, limit=DETAIL_LENGTH),
        "fields": {clean(name, limit=100): _detail(value) for name, value in fields},
    }


def _detail(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < MOST_NUMBER:
        return value
    try:
        return clean(str(value), limit=DETAIL_LENGTH)
    except ValueError:  # Python writes no number of more than some thousand digits
        return None


def _row(keyed: Keyed, *, now: datetime, oldest_at: datetime | None, max_age: timedelta | None) -> dict[str, Any]:
    item, mark = keyed.mark.item, keyed.mark
    return {
        **as_kept(item),
        "key": keyed.key,
        "link_mark": mark.link_mark,
        "title_mark": mark.title_mark,
        "news": not identity.is_old(item, now=now, oldest_at=oldest_at, max_age=max_age),
    }


def _match(match: Match, by_key: Sorted) -> Mapping[str, object]:
    return {
        "key": by_key.key_by_handle.get(match.key, match.key),
        "recipient": match.recipient,
        "subscriptions": list(match.subscriptions),
    }


async def _watched_in(db: Connection, by_key: Sorted, state: Mapping[str, Any], watching: Watching) -> Sequence[Match]:
    """What people watch for, among the items that nobody has seen. Read once, and not for a silent first round."""
    if state["primed_at"] is None or not by_key.unknown:
        return ()
    watched = await watches.watched_in(db, watching.chats)
    if not watched:
        return ()
    return await watching.match([keyed.mark.item for keyed in by_key.kept if keyed.key in by_key.unknown], watched)


async def _lists_no_more_in(db: Connection, source: str, fetched: Fetched, primed_at: datetime | None) -> bool:
    """Whether it has listed something since it was primed, and does not now, for no reason that it tells."""
    if fetched.items or fetched.empty_is_meant or primed_at is None:
        return False
    [found] = await rows(db, SQL["has_listed"], {"source": source, "since": primed_at})
    return bool(found["listed"])


async def _unmerged_in(
    db: Connection,
    by_key: Sorted,
    matches: Sequence[Match],
    *,
    source: str,
    watch: Watch,
    merge_with: Sequence[str],
) -> Sequence[Match]:
    """The matches without those whose recipient has the same from another source."""
    if watch.merge_within is None:
        return matches
    await rows(db, keys.SQL["merge_in_turn"])
    title_by_key = {keyed.key: keyed.mark.title_mark for keyed in by_key.kept if keyed.key in by_key.unknown}
    if not title_by_key:
        return matches
    params = {
        "titles": json.dumps(sorted(set(title_by_key.values()))),
        "sources": array(merge_with),
        "source": source,
        "within_seconds": watch.merge_within.total_seconds(),
        "most": keys.MOST_ALIKE,
    }
    owed = {(row["title_mark"], row["recipient"]) for row in await rows(db, keys.SQL["owed_elsewhere"], params)}
    return [
        match
        for match in matches
        if (title_by_key.get(by_key.key_by_handle.get(match.key, match.key)), match.recipient) not in owed
    ]


def _complete(fetched: Fetched, by_key: Sorted, stored: Round) -> Complete:
    """Without validators where something was held: it must be listed again."""
    return Complete(
        etag=None if stored.unstable else fetched.etag,
        last_modified=None if stored.unstable else fetched.last_modified,
        ttl=fetched.ttl,
        news=stored.added > 0 or bool(by_key.unknown),
    )


def _read(fetched: Fetched, stored: Round) -> states.Read:
    dates = [item.published_at for item in fetched.items if item.published_at is not None]
    return states.Read(
        priming=stored.primed,
        rule=stored.rule,
        news=stored.added > 0,
        empty=stored.empty,
        unstable=stored.unstable,
        oldest_at=min(dates, default=None),
    )
