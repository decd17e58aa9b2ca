"""Under which key each item of a round is kept, and which known items have got another one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from app.domain import identity
from app.domain.recognition import Keyed, Known, recognise
from app.stores import sql
from app.stores.database import rows
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from app.domain.identity import Marked, Rule
    from app.stores.database import Connection

SQL = sql.load("keys")

KEY_BYTES = 2000
"""An index of PostgreSQL takes 2,704 bytes a row: a thousand letters of most of Asia's scripts are more."""

MOST_ALIKE = 20
"""Known items of one link or title that are looked at: two are enough to see that it tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """A round by its keys."""

    kept: tuple[Keyed, ...]
    """Each key once, of two the first. Without what is held."""

    key_by_handle: Mapping[str, str]
    """By the key that the kind gave, which matches are told by."""

    rule: Rule
    """For the rounds to come."""

    unknown: frozenset[str] = frozenset()
    """Keys of what is kept and has no row: it is fresh."""

    moved: int = 0
    """Known items that have another key now."""

    held: int = 0
    unstable: bool = False


async def sort_in(
    db: Connection,
    source: str,
    state: Mapping[str, Any],
    found: Sequence[Marked],
    ignored: frozenset[str] = frozenset(),
    *,
    whole: bool = True,
) -> Sorted:
    """Decide it in the transaction that stores the round, and give known items their new keys.

    `state` is the source's row, which the caller has locked: two rounds of one source decide one after the other.

    A round that is not `whole` decides nothing: what it does not list may be listed beyond its end. The rule and the
    keys of what is known stay, and what looks like an edit is held until a whole one.
    """
    priming = state["primed_at"] is None
    former: Rule = "id" if priming else state["key_rule"]
    rule = identity.degraded(former, identity.deserved(found)) if whole or priming else former
    listed: dict[str, Keyed] = {}
    handles: dict[str, str] = {}
    for mark, key in zip(found, identity.keys(found, rule), strict=True):
        keyed = Keyed(key=kept_key(key), mark=mark)
        listed.setdefault(keyed.key, keyed)
        handles.setdefault(mark.item.key, keyed.key)
    unsorted = Sorted(kept=tuple(listed.values()), key_by_handle=handles, rule=rule)
    if priming or not listed:
        return unsorted
    formerly = zip(found, identity.keys(found, former), strict=True) if rule != former else ()
    former_by_handle = {mark.item.key: kept_key(key) for mark, key in formerly}
    unknown, translated = await _unknown_in(db, source, listed, former_by_handle)
    if not unknown:
        return Sorted(kept=unsorted.kept, key_by_handle=handles, rule=rule, moved=translated)
    seen = recognise(
        unknown,
        unsorted.kept,
        await _alike_in(db, source, unknown, since=state["primed_at"]),
        last_round_at=state["last_round_at"],
        now=state["now"],
        ignored=ignored,
    )
    moved = frozenset(keyed.key for keyed in seen.moves.values())
    held = seen.held
    if whole:
        await _move_in(db, seen.moves)
    else:
        moved, held = frozenset(), held | moved
    return Sorted(
        kept=tuple(keyed for keyed in unsorted.kept if keyed.key not in held),
        key_by_handle=handles,
        rule=identity.degraded(rule, "link") if seen.useless_ids and whole else rule,
        unknown=frozenset(keyed.key for keyed in unknown) - moved - held,
        moved=translated + len(moved),
        held=len(held),
        unstable=seen.unstable,
    )


def kept_key(key: str) -> str:
    """A key as a row can have it."""
    kept = clean(key, limit=1000)
    return kept if len(kept.encode()) <= KEY_BYTES else sha256(kept.encode()).hexdigest()


async def _unknown_in(
    db: Connection, source: str, listed: Mapping[str, Keyed], former_by_handle: Mapping[str, str]
) -> tuple[list[Keyed], int]:
    """What has no row, and how many had one by the key that the source's former rule gives them."""
    given = [{"key": keyed.key, "former": former_by_handle.get(keyed.mark.item.key)} for keyed in listed.values()]
    moves: dict[int, Keyed] = {}
    unknown: list[Keyed] = []
    for row in await rows(db, SQL["unknown"], {"source": source, "given": json.dumps(given)}):
        keyed = listed[row["key"]]
        if row["former_id"] is None or row["former"] in listed or row["former_id"] in moves:
            unknown.append(keyed)
        else:
            moves[row["former_id"]] = keyed
    await _move_in(db, moves)
    return unknown, len(moves)


async def _alike_in(db: Connection, source: str, unknown: Sequence[Keyed], *, since: datetime) -> list[Known]:
    marks = {
        "links": sorted({keyed.mark.link_mark for keyed in unknown if keyed.mark.link_mark is not None}),
        "titles": sorted({keyed.mark.title_mark for keyed in unknown}),
    }
    params = {"source": source, "marks": json.dumps(marks), "since": since, "most": MOST_ALIKE}
    return [Known(**row) for row in await rows(db, SQL["alike"], params)]


async def _move_in(db: Connection, moves: Mapping[int, Keyed]) -> None:
    if moves:
        given = [{"id": item_id, "key": keyed.key} for item_id, keyed in sorted(moves.items())]
        await rows(db, SQL["move"], {"given": json.dumps(given)})
