from __future__ import annotations

from datetime import timedelta

import asyncpg
import pytest

from app.stores.conversations import Conversations
from app.stores.database import Database
from app.stores.spendings import Spendings
from app.stores.talks import Talks
from app.stores.watches import Watches

ADDED = """
WITH talk AS (
    INSERT INTO wakebell.conversations (chat, key, address) VALUES ($1, $2, $2) RETURNING id
), said AS (
    INSERT INTO wakebell.said (conversation_id, chat, event_id, kind, person, text)
    SELECT id, $1, $2, 'message', $2, 'secret words' FROM talk
)
INSERT INTO wakebell.turns (conversation_id, mark, side, text)
SELECT id, side, side, 'secret words' FROM talk, unnest(ARRAY['person', 'service']) AS side
RETURNING conversation_id
"""


@pytest.fixture
def talks(database: Database) -> Talks:
    return Talks(database)


async def add(sql: asyncpg.Connection, key: str, chat: str = "line") -> int:
    return int(await sql.fetchval(ADDED, chat, key))


async def test_they_are_listed_by_pages_the_last_that_were_begun_first(talks: Talks, sql: asyncpg.Connection):
    first, second, third = [await add(sql, key) for key in "abc"]

    page = await talks.list(limit=2)
    rest = await talks.list(limit=2, before=second)

    assert ([talk.id for talk in page.rows], page.more) == ([third, second], True)
    assert ([talk.id for talk in rest.rows], rest.more) == ([first], False)
    assert [(talk.turns, talk.person) for talk in rest.rows] == [(2, "a")]
    assert "secret words" not in repr(page)


async def test_they_are_listed_by_chat_and_by_pause(talks: Talks, sql: asyncpg.Connection, database: Database):
    paused, other = await add(sql, "a"), await add(sql, "a", chat="page")
    await Conversations(database).pause("line", ["a"], wait=timedelta(hours=1))

    assert [talk.id for talk in (await talks.list(limit=9, chat="page")).rows] == [other]
    assert [talk.id for talk in (await talks.list(limit=9, paused=True)).rows] == [paused]
    assert [talk.id for talk in (await talks.list(limit=9, paused=False)).rows] == [other]

    assert await talks.resume(paused)
    assert (await talks.list(limit=9, paused=True)).rows == []
    assert not await talks.resume(other + 1)


async def test_one_is_forgotten_with_all_that_is_known_of_its_person(
    talks: Talks, sql: asyncpg.Connection, database: Database
):
    gone, other = await add(sql, "a"), await add(sql, "b")
    for person in "ab":
        await Watches(database).guess("line", person, said=1)
        await Spendings(database).begin("line", person, most_tries=1, most_tokens=1)
    item = await sql.fetchval("INSERT INTO wakebell.items (source, key, title) VALUES ('s', 'k', 't') RETURNING id")
    for talk in (gone, other):
        owe = "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) VALUES ($1, $2, '[]')"
        await sql.execute(owe, item, f"chats/line/{talk}")

    assert await talks.forget(gone, kind="line")
    assert not await talks.forget(gone, kind="line")

    assert await talks.find(gone) is None
    left = {
        table: await sql.fetchval(f"SELECT count(*) FROM wakebell.{table}")
        for table in ("conversations", "turns", "said", "watchers", "spendings", "owed")
    }
    assert left == {"conversations": 1, "turns": 2, "said": 1, "watchers": 1, "spendings": 1, "owed": 1}
    assert len(await talks.turns(other)) == 2
