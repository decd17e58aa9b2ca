"""What items are recognised by: what it reads of a long table, two replicas at once, and the release before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.identity import UNSAID, marked
from app.domain.items import Item
from app.stores import items, keys, migrations, schema
from app.stores.database import Database, connect
from app.stores.items import Round
from app.stores.migrations import migrate
from tests.stores.pages import read
from tests.stores.test_items import Board

TITLES = [f"Gig {letter}" for letter in "abcdefghijklmnopqrst"]


def item(title: str, link: str, **more: Any) -> Item:
    return Item(key=link, title=title, id="", link=link, **more)


def listed(salt: str, titles: Sequence[str] = TITLES) -> list[Item]:
    return [item(title, f"https://e.test/p?id={n}&v={salt}{n}") for n, title in enumerate(titles)]


@pytest.fixture
def board(database: Database, sql: asyncpg.Connection) -> Board:
    return Board(database, sql)


async def rounds(board: Board, *lists: Sequence[Item]) -> list[Round | None]:
    return [await board.store(await board.fetch(), listed) for listed in lists]


async def test_the_brake_keeps_the_new_keys_and_tells_nothing(board: Board, sql: asyncpg.Connection):
    _, braked, stable = await rounds(board, listed("x"), listed("y"), listed("y"))

    assert braked == Round(primed=False, added=0, matched=0, unstable=True)
    assert stable == Round(primed=False, added=0, matched=0)
    assert await sql.fetchval("SELECT count(*) FROM wakebell.items") == 20
    assert await sql.fetchval("SELECT count(*) FROM wakebell.owed") == 0
    results = await sql.fetch("SELECT result FROM wakebell.jobs WHERE type = 'fetch_source' ORDER BY id")
    assert [json.loads(row["result"]) for row in results] == [
        {"items": 20, "new": 20},
        {"items": 20, "new": 0, "edited": 20},
        {"items": 20, "new": 0},
    ]


async def test_two_replicas_that_read_an_edit_at_once_tell_nothing(board: Board, sql: asyncpg.Connection):
    await rounds(board, [item("T", "https://e.test/build-a-your-shop/")])
    first = await board.fetch()
    await sql.execute("UPDATE wakebell.jobs SET unique_key = 'other' WHERE id = $1", first.id)
    second = await board.fetch()
    edited = [item("T", "https://e.test/build-your-shop/")]

    stored = await asyncio.gather(board.store(first, edited), board.store(second, edited))

    assert list(stored) == [Round(primed=False, added=0, matched=0)] * 2
    assert await sql.fetchval("SELECT count(*) FROM wakebell.items") == 1


async def test_two_replicas_at_the_brake_tell_nothing(board: Board, sql: asyncpg.Connection):
    await rounds(board, listed("x"))
    first = await board.fetch()
    await sql.execute("UPDATE wakebell.jobs SET unique_key = 'other' WHERE id = $1", first.id)
    second = await board.fetch()

    stored = await asyncio.gather(board.store(first, listed("y")), board.store(second, listed("z")))

    assert [found.unstable for found in stored if found] == [True, True]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.owed") == 0


async def test_a_source_that_is_primed_again_is_not_compared_with_what_it_was_before(
    board: Board, sql: asyncpg.Connection
):
    await rounds(board, [item("T", "https://e.test/1")])
    await sql.execute("UPDATE wakebell.items SET key = 'as it was told apart then', seen_at = now() - interval '1 day'")
    await sql.execute("UPDATE wakebell.sources SET primed_at = NULL")
    before = [Item(key="g1", id="g1", title="T", link="https://e.test/1")]
    after = [Item(key="g2", id="g2", title="T!", link="https://e.test/1")]

    primed, edited = await rounds(board, before, after)

    assert primed == Round(primed=True, added=1, matched=0)
    assert edited == Round(primed=False, added=0, matched=0)


MANY = """
INSERT INTO wakebell.items (source, key, title, link_mark, title_mark)
SELECT 'source' || n % 100, 'key' || n, 'a title', n, n % 20000 FROM generate_series(1, 100000) AS n
"""
OWED = """
INSERT INTO wakebell.owed (item_id, recipient, subscriptions)
SELECT id, 'me', '[]' FROM wakebell.items
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("analyzed", [False, True])
async def test_its_statements_read_what_they_name_and_no_whole_table(sql: asyncpg.Connection, *, analyzed: bool):
    await sql.execute(MANY)
    await sql.execute(OWED)
    if analyzed:
        await sql.execute("VACUUM ANALYZE wakebell.items, wakebell.owed")
    given = [{"key": f"key{n}", "former": f"key{n}"} for n in range(0, 20_000, 100)]
    marks = {"links": list(range(7, 20_000, 1000)), "titles": list(range(7, 20_000, 1000))}
    since = datetime.now(UTC) - timedelta(days=1)
    sources = "{" + ",".join(f"source{n}" for n in range(10)) + "}"
    asked: dict[str, dict[str, Any]] = {
        "unknown": {"source": "source0", "given": json.dumps(given)},
        "alike": {"source": "source7", "marks": json.dumps(marks), "since": since, "most": 20},
        "move": {"given": json.dumps([{"id": n, "key": f"moved{n}"} for n in range(1, 40_000, 2000)])},
        "owed_elsewhere": {
            "titles": json.dumps(marks["titles"]),
            "sources": sources,
            "source": "source0",
            "within_seconds": 86400.0,
            "most": 20,
        },
    }
    statements = {**{name: (keys.SQL[name], params) for name, params in asked.items()}}
    statements["has_listed"] = (items.SQL["has_listed"], {"source": "source7", "since": since})

    found = {}
    for name, (text, params) in statements.items():
        compiled, names = text.driver
        found[name] = await read(sql, compiled, *(params[one] for one in names))

    assert {name: scans for name, (_, scans) in found.items() if scans} == {}
    assert {name: pages for name, (pages, _) in found.items() if pages > 2_000} == {}


@pytest.fixture
async def before(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database whose schema is that of the release before."""
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "HEAD", "0006")
        patched.setattr(schema, "HEAD", "0006")
        await migrate(empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    yield connection
    await connection.close()


KEPT_BEFORE = """
INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, primed_at, last_round_at, host)
VALUES ('board', 'feed:1', 86400, now(), now() - interval '9 days', now(), 'board.example');
INSERT INTO wakebell.items (source, key, title, link, first_seen_at) VALUES
    ('board', 'g0 https://e.test/0', 'T0', 'https://e.test/0', now() - interval '9 days'),
    ('board', 'g0 https://e.test/1', 'T1', 'https://e.test/1', now() - interval '2 days');
INSERT INTO wakebell.alerts (key, kind, subject, failed_at) VALUES ('source_failing:x', 'source_failing', 'x', now());
"""
ADD_BEFORE = "INSERT INTO wakebell.items (source, key, title) VALUES ('board', $1, 'T') ON CONFLICT DO NOTHING"


async def test_what_the_release_before_has_kept_is_known_and_it_goes_on_working(
    before: asyncpg.Connection, empty_database_url: str
):
    await before.execute(KEPT_BEFORE)

    await migrate(empty_database_url)

    row = await before.fetchrow("SELECT state, key_rule, now() - last_news_at AS quiet FROM wakebell.sources")
    assert (row["state"], row["key_rule"], row["quiet"].days) == ("ok", "id", 2)
    await before.execute(ADD_BEFORE, "g7")
    database = connect(empty_database_url)
    try:
        now = [
            *(Item(key=f"g0 https://e.test/{n}", id="g0", title=f"T{n}", link=f"https://e.test/{n}") for n in range(3)),
            Item(key="g7", id="g7", title="T", link="https://e.test/7"),
        ]
        [stored] = await rounds(Board(database, before), now)
    finally:
        await database.dispose()
    assert stored == Round(primed=False, added=1, matched=1, rule="link", degraded=True)
    assert await before.fetchval("SELECT array_agg(key ORDER BY key) FROM wakebell.items") == [
        "https://e.test/0",
        "https://e.test/1",
        "https://e.test/2",
        "https://e.test/7",
    ]


def test_marks_are_what_an_index_can_hold():
    [found] = marked([item("T" * 5000, f"https://e.test/{'a' * 3000}")], UNSAID)

    assert all(-(2**63) <= mark < 2**63 for mark in (found.link_mark or 0, found.title_mark))
