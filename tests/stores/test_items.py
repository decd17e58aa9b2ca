from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.domain.errors import LeaseLost
from app.domain.items import Fetched, Item
from app.domain.jobs import Job
from app.domain.manners import Visited
from app.stores.database import Database
from app.stores.items import Items, Match, Round
from app.stores.jobs import Jobs
from app.stores.sources import Sources, Wanted

DAY = timedelta(days=1)
LEASES = {"fetch_source": timedelta(seconds=30)}
FORGOTTEN = "UPDATE wakebell.items SET seen_at = now() - interval '46 days' WHERE key = $1"


class Board:
    """One source through its rounds."""

    def __init__(self, database: Database, sql: asyncpg.Connection, name: str = "board") -> None:
        self.items = Items(database)
        self.jobs = Jobs(database)
        self.sources = Sources(database)
        self.sql = sql
        self.name = name

    async def fetch(self, token: int = 1) -> Job:
        """The lease on a fetch of it."""
        await self.sources.plan([Wanted(name=self.name, fingerprint="feed:1", every=DAY, host=f"{self.name}.example")])
        await self.sql.execute(
            "INSERT INTO wakebell.jobs (type, payload, queue, unique_key) "
            "VALUES ('fetch_source', '{}', 'wakebell.fetch', $1) ON CONFLICT DO NOTHING",
            self.name,
        )
        [job] = await self.jobs.claim(own=True, limit=1, leases=LEASES, token=token)
        return job

    async def store(
        self,
        job: Job,
        items: Sequence[Item],
        *,
        to: Sequence[str] = ("me",),
        fingerprint: str = "feed:1",
        detailed: bool = False,
        whole: bool = True,
    ) -> Round | None:
        return await self.items.add_round(
            job,
            source=self.name,
            fingerprint=fingerprint,
            fetched=Fetched(items=tuple(items), whole=whole, etag='"e1"', last_modified="Mon"),
            visited=Visited(host=f"{self.name}.example", gap=timedelta(seconds=1)),
            matches=[
                Match(key=item.key, recipient=name, subscriptions=("all",), detailed=detailed)
                for item in items
                for name in to
            ],
            keep=45 * DAY,
            note=lambda known: f"watching {known}",
        )

    async def round(self, *keys: str, to: Sequence[str] = ("me",)) -> Round | None:
        return await self.store(await self.fetch(), [item(key) for key in keys], to=to)


def item(key: str, title: str = "A gig") -> Item:
    return Item(
        key=key, title=title, link=f"https://gigs.example/{key}", published_at=datetime(2026, 11, 30, tzinfo=UTC)
    )


async def keys(sql: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await sql.fetch("SELECT key FROM wakebell.items ORDER BY key")]


async def owed(sql: asyncpg.Connection) -> list[tuple[str, str]]:
    query = "SELECT key, recipient FROM wakebell.owed JOIN wakebell.items ON items.id = item_id ORDER BY 1, 2"
    return [tuple(row) for row in await sql.fetch(query)]


async def composing(sql: asyncpg.Connection) -> list[str]:
    query = "SELECT payload->>'recipient' FROM wakebell.jobs WHERE type = 'compose_messages' ORDER BY 1"
    return [row[0] for row in await sql.fetch(query)]


@pytest.fixture
def board(database: Database, sql: asyncpg.Connection) -> Board:
    return Board(database, sql)


async def test_the_first_round_is_silent(board: Board, sql: asyncpg.Connection):
    stored = await board.round("a", "b")

    assert stored == Round(primed=True, added=2, matched=0)
    assert await keys(sql) == ["a", "b"]
    assert await owed(sql) == []
    assert await composing(sql) == []
    note = await sql.fetchrow("SELECT recipient, channel, kind, status, text FROM wakebell.messages")
    assert tuple(note) == ("inbox", "inbox", "note", "sent", "watching 2")


async def test_a_first_round_with_nothing_in_it_is_a_first_round(board: Board, sql: asyncpg.Connection):
    assert await board.round() == Round(primed=True, added=0, matched=0)
    assert await board.round("a") == Round(primed=False, added=1, matched=1)


async def test_what_is_new_after_it_is_owed_once(board: Board, sql: asyncpg.Connection):
    await board.round("a")

    assert await board.round("a", "b", "c", to=("me", "you")) == Round(primed=False, added=2, matched=2)
    assert await board.round("a", "b", "c", to=("me", "you")) == Round(primed=False, added=0, matched=0)

    assert await owed(sql) == [("b", "me"), ("b", "you"), ("c", "me"), ("c", "you")]
    assert await composing(sql) == ["me", "you"]


async def test_items_are_owed_in_the_order_of_their_source(board: Board, sql: asyncpg.Connection):
    await board.round()
    await board.round("10", "9", "b", "a")

    query = "SELECT key FROM wakebell.owed JOIN wakebell.items ON items.id = item_id ORDER BY owed.id"
    assert [row[0] for row in await sql.fetch(query)] == ["10", "9", "b", "a"]


async def test_an_item_that_nobody_asked_for_is_known_all_the_same(board: Board, sql: asyncpg.Connection):
    await board.round("a")

    assert await board.round("a", "b", to=()) == Round(primed=False, added=1, matched=0)
    assert await board.round("a", "b") == Round(primed=False, added=0, matched=0)
    assert await owed(sql) == []


async def test_the_round_ends_its_job_and_keeps_what_to_ask_with(board: Board, sql: asyncpg.Connection):
    await sql.execute("SELECT 1")
    await board.round("a")

    state = await board.sources.get("board")
    assert state is not None
    assert (state.etag, state.last_modified) == ('"e1"', "Mon")
    assert state.primed_at is not None
    source = await sql.fetchrow("SELECT failures, last_round_at, last_success_at FROM wakebell.sources")
    assert source["last_round_at"] == source["last_success_at"] is not None
    assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE type = 'fetch_source'") == "done"


async def test_two_rounds_of_one_source_at_once_tell_an_item_once(board: Board, sql: asyncpg.Connection):
    await board.round("a")
    first = await board.fetch()
    await sql.execute("UPDATE wakebell.jobs SET unique_key = 'other' WHERE id = $1", first.id)
    second = await board.fetch()
    new = [item(f"new{number}") for number in range(50)]

    stored = await asyncio.gather(board.store(first, new), board.store(second, new[::-1]))

    assert sum(found.added for found in stored if found) == 50
    assert len(await owed(sql)) == 50


async def test_two_first_rounds_at_once_are_silent(board: Board, sql: asyncpg.Connection):
    first = await board.fetch()
    await sql.execute("UPDATE wakebell.jobs SET unique_key = 'other' WHERE id = $1", first.id)
    second = await board.fetch()

    stored = await asyncio.gather(board.store(first, [item("a")]), board.store(second, [item("a")]))

    assert sorted(found.primed for found in stored if found) == [False, True]
    assert await owed(sql) == []
    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages") == 1


async def test_sources_at_once_do_not_stand_in_each_others_way(database: Database, sql: asyncpg.Connection):
    boards = [Board(database, sql, f"board{number}") for number in range(4)]
    for board in boards:
        await board.round("a")
    fetches = [await board.fetch() for board in boards]
    same = [item(f"new{number}") for number in range(100)]
    recipients = ("one", "two", "three")

    stored = await asyncio.gather(
        *(
            board.store(job, same[::step], to=recipients[::step])
            for board, job, step in zip(boards, fetches, (1, -1, 1, -1), strict=True)
        ),
    )

    assert [found.added for found in stored if found] == [100, 100, 100, 100]
    assert len(await owed(sql)) == 4 * 100 * 3
    assert await composing(sql) == ["one", "three", "two"]


async def test_a_lost_lease_rolls_everything_back(board: Board, sql: asyncpg.Connection):
    await board.round("a")
    job = await board.fetch()
    await sql.execute("UPDATE wakebell.jobs SET lease_token = 2 WHERE status = 'running'")

    with pytest.raises(LeaseLost):
        await board.store(job, [item("b")])

    assert await keys(sql) == ["a"]
    assert await owed(sql) == []
    assert await composing(sql) == []


async def test_a_note_that_fails_rolls_everything_back(board: Board, sql: asyncpg.Connection):
    job = await board.fetch()

    def broken(known: int) -> str:
        raise KeyError(known)

    with pytest.raises(KeyError):
        await board.items.add_round(
            job,
            source="board",
            fingerprint="feed:1",
            fetched=Fetched(items=(item("a"),)),
            visited=Visited(host="board.example", gap=timedelta(0)),
            matches=[],
            keep=DAY,
            note=broken,
        )

    assert await keys(sql) == []
    state = await board.sources.get("board")
    assert state is not None
    assert state.primed_at is None


async def test_a_round_from_the_former_address_is_not_stored(board: Board, sql: asyncpg.Connection):
    await board.round("a")
    job = await board.fetch()
    await board.sources.plan([Wanted(name="board", fingerprint="feed:2", every=DAY, host="board.example")])

    assert await board.store(job, [item("b")]) is None

    assert await keys(sql) == ["a"]
    state = await board.sources.get("board")
    assert state is not None
    assert state.primed_at is None, "the new address has a silent round of its own"
    assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE id = $1", job.id) == "cancelled"
    assert await sql.fetchval("SELECT retry_at > now() FROM wakebell.sources"), "it is planned again"


async def test_what_postgres_cannot_hold_is_taken_out(board: Board, sql: asyncpg.Connection):
    await board.round()
    nasty = Item(key="k\x00\ud800", title="T\x00i\udfffท", link="https://x.example/\x00\ud83d")

    stored = await board.store(await board.fetch(), [nasty])

    assert stored == Round(primed=False, added=1, matched=1)
    row = await sql.fetchrow("SELECT key, title, link FROM wakebell.items")
    assert "\x00" not in "".join(row)
    assert row["title"].startswith("Ti")


async def test_a_key_that_comes_twice_is_one_item(board: Board, sql: asyncpg.Connection):
    await board.round()

    stored = await board.store(await board.fetch(), [item("k"), item("k\x00", title="the same")])

    assert stored == Round(primed=False, added=1, matched=1)
    assert await owed(sql) == [("k", "me")]


async def test_a_key_of_a_thousand_letters_of_any_script_is_kept(board: Board):
    chance = random.Random(1)
    long = "".join(chr(chance.randrange(0x4E00, 0x9FA0)) for _ in range(1000))

    assert await board.round(long) == Round(primed=True, added=1, matched=0)
    assert await board.round(long) == Round(primed=False, added=0, matched=0)


async def test_a_thousand_items_are_one_round(board: Board, sql: asyncpg.Connection):
    await board.round()

    assert await board.round(*map(str, range(1000))) == Round(primed=False, added=1000, matched=1000)


async def seen_at(sql: asyncpg.Connection, key: str) -> datetime:
    found = await sql.fetchval("SELECT seen_at FROM wakebell.items WHERE key = $1", key)
    assert isinstance(found, datetime)
    return found


async def test_a_round_marks_what_it_lists_and_writes_only_old_marks(board: Board, sql: asyncpg.Connection):
    await board.round("a", "b", "c")
    await sql.execute("UPDATE wakebell.items SET seen_at = now() - interval '2 hours' WHERE key <> 'b'")
    b, c = await seen_at(sql, "b"), await seen_at(sql, "c")

    await board.round("a", "b")

    assert datetime.now(UTC) - await seen_at(sql, "a") < timedelta(hours=1)
    assert (await seen_at(sql, "b"), await seen_at(sql, "c")) == (b, c)


async def test_an_item_that_is_no_longer_listed_is_forgotten_in_the_end(board: Board, sql: asyncpg.Connection):
    await board.round("old", "young")
    await sql.execute(FORGOTTEN, "old")

    assert await board.items.forget(keep=45 * DAY, most=10) == 1
    assert await board.items.forget(keep=45 * DAY, most=10) == 0
    assert await keys(sql) == ["young"]


async def test_a_round_whose_end_is_missing_tells_what_it_has_and_ages_nothing(board: Board, sql: asyncpg.Connection):
    await board.round("a", "b")
    before = await sql.fetchrow("SELECT last_round_at, etag, last_modified FROM wakebell.sources")
    job = await board.fetch(2)

    stored = await board.store(job, [item("c")], whole=False)

    assert stored is not None
    assert await owed(sql) == [("c", "me")]
    assert await sql.fetchrow("SELECT last_round_at, etag, last_modified FROM wakebell.sources") == before


async def test_an_outage_ages_nothing(board: Board, sql: asyncpg.Connection):
    await board.round("a")
    await sql.execute("UPDATE wakebell.items SET seen_at = now() - interval '99 days'")
    await sql.execute("UPDATE wakebell.sources SET last_round_at = now() - interval '98 days'")

    assert await board.items.forget(keep=45 * DAY, most=10) == 0


async def test_what_is_owed_is_not_forgotten_until_it_is_told(board: Board, sql: asyncpg.Connection):
    await board.round()
    await board.round("a")
    await sql.execute(FORGOTTEN, "a")
    assert await board.items.forget(keep=45 * DAY, most=10) == 0

    await sql.execute(
        "WITH told AS (INSERT INTO wakebell.messages (recipient, channel, body, text) VALUES ('me', 'line', '', '') "
        "RETURNING id) UPDATE wakebell.owed SET message_id = told.id FROM told",
    )

    assert await board.items.forget(keep=45 * DAY, most=10) == 1
    assert await owed(sql) == []


async def test_forgetting_goes_in_portions(board: Board, sql: asyncpg.Connection):
    await board.round(*map(str, range(30)))
    await sql.execute("UPDATE wakebell.items SET seen_at = now() - interval '46 days'")

    forgotten = [await board.items.forget(keep=45 * DAY, most=20) for _ in range(3)]

    assert forgotten == [20, 10, 0]


@pytest.mark.parametrize("detailed", [True, False])
async def test_texts_and_fields_are_kept_only_for_what_a_template_tells(
    board: Board,
    sql: asyncpg.Connection,
    detailed: bool,  # noqa: FBT001
):
    await board.round()
    fields = {
        "pay": 7.5,
        "firm": "Ac\0me \ud800",
        "far": float("inf"),
        "big": 10**400,
        "huge": 10**9999,
        "on": True,
        "x\0": None,
    }
    told = Item(key="a", title="A gig", text="lo\0ng " * 2000, fields=fields)

    await board.store(await board.fetch(), [told], detailed=detailed)

    row = await sql.fetchrow("SELECT text, fields FROM wakebell.items WHERE key = 'a'")
    if not detailed:
        assert tuple(row) == (None, None)
        return
    assert (row["text"][:8], len(row["text"])) == ("long lon", 4000)
    kept = json.loads(row["fields"])
    assert len(kept.pop("big")) <= 401
    assert kept == {"pay": 7.5, "firm": "Acme ?", "far": "inf", "huge": None, "on": True, "x": None}
