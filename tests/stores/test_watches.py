from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import asyncpg
import pytest

from app.settings import Retention
from app.stores.conversations import Conversations
from app.stores.database import Database
from app.stores.looks import About, Looks
from app.stores.text import array
from app.stores.watches import Watches

ABOUT = About(users=[], own=[], sources=[], recipients=[], kept=Retention(), chats=["desk"])


@pytest.fixture
def watches(database: Database) -> Watches:
    return Watches(database)


@pytest.fixture
async def conversation(sql: asyncpg.Connection) -> int:
    """In which person 7 watches for Python."""
    added = """
    WITH talk AS (INSERT INTO wakebell.conversations (chat, key, address) VALUES ('desk', '7', '7') RETURNING id),
    person AS (
        INSERT INTO wakebell.watchers (chat, person, invited_at) VALUES ('desk', '7', now()) RETURNING id)
    INSERT INTO wakebell.watches (watcher_id, conversation_id, phrases, mark)
    SELECT person.id, talk.id, '{python}', 'python' FROM talk, person
    RETURNING conversation_id
    """
    return int(await sql.fetchval(added))


async def owe(sql: asyncpg.Connection, recipient: str, *, hours: int = 0) -> None:
    owed = """
    WITH item AS (INSERT INTO wakebell.items (source, key, title) VALUES ('board', gen_random_uuid()::text, 't')
                  RETURNING id)
    INSERT INTO wakebell.owed (item_id, recipient, subscriptions, created_at)
    SELECT id, $1, '["python"]', now() - make_interval(hours => $2) FROM item
    """
    await sql.execute(owed, recipient, hours)


async def test_a_guess_is_counted_once_for_each_message(watches: Watches):
    counts = [await watches.guess("desk", "7", said=said) for said in (1, 1, 2, 2, 3)]

    assert counts == [1, 1, 2, 2, 3]


async def test_guesses_at_once_are_all_counted(watches: Watches):
    counts = await asyncio.gather(*(watches.guess("desk", "7", said=said) for said in range(5)))

    assert sorted(counts) == [1, 2, 3, 4, 5]


async def test_a_conversation_is_told_with_those_who_watch_there(
    watches: Watches, sql: asyncpg.Connection, conversation: int
):
    found = await watches.listener(conversation)

    assert found is not None
    assert (found.recipient, found.address, found.people) == (f"chats/desk/{conversation}", "7", (("7", True),))
    assert await watches.find("desk", "7") == conversation
    assert await watches.count_listeners(["desk"]) == 1

    await watches.leave(found.recipient, conversation)
    assert await watches.listener(conversation) is None
    assert await watches.count_listeners(["desk"]) == 0

    await watches.come_back(conversation)
    await sql.execute("DELETE FROM wakebell.watches")
    assert await watches.listener(conversation) is None


async def test_a_look_sees_what_is_owed_in_conversations_of_its_chats(
    database: Database, sql: asyncpg.Connection, conversation: int
):
    name = f"chats/desk/{conversation}"
    for recipient in (name, "somebody", "chats/desk/999999"):
        await owe(sql, recipient)

    look = await Looks(database).look(ABOUT)
    assert (look.tellable, look.held) == ((name,), 0)

    await sql.execute("UPDATE wakebell.conversations SET muted_until = now() + interval '1 hour'")
    look = await Looks(database).look(ABOUT)
    assert (look.tellable, look.held) == ((), 1)
    assert look.next_due_at == await sql.fetchval("SELECT muted_until FROM wakebell.conversations")


async def test_what_cannot_be_told_is_dropped_after_a_while(watches: Watches, sql: asyncpg.Connection):
    await owe(sql, "chats/desk/1", hours=25)
    await owe(sql, "chats/desk/1")

    assert await watches.drop("chats/desk/1", keep=timedelta(days=1))
    assert await sql.fetchval("SELECT count(*) FROM wakebell.owed") == 1

    assert not await watches.drop("chats/desk/1", keep=timedelta(0))


async def test_conversations_with_watches_lose_their_turns_only(
    database: Database, sql: asyncpg.Connection, conversation: int
):
    await sql.execute("INSERT INTO wakebell.conversations (chat, key) VALUES ('desk', '8')")
    turns = "INSERT INTO wakebell.turns (conversation_id, mark, side, text) SELECT id, 'm', 'person', 't' FROM {}"
    await sql.execute(turns.format("wakebell.conversations"))
    await sql.execute("UPDATE wakebell.conversations SET last_at = now() - interval '8 days'")

    assert await Conversations(database).prune(keep=timedelta(days=7), most=10) == 2

    assert await sql.fetchval("SELECT array_agg(id) FROM wakebell.conversations") == [conversation]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.turns") == 0
    assert await Conversations(database).prune(keep=timedelta(days=7), most=10) == 0


async def test_people_who_have_only_guessed_are_forgotten(watches: Watches, sql: asyncpg.Connection, conversation: int):
    await watches.guess("desk", "8", said=1)
    await watches.guess("desk", "9", said=2)
    await sql.execute("UPDATE wakebell.watchers SET guessed_on = guessed_on - 3 WHERE person IN ('7', '8')")

    assert await watches.prune(most=10) == 1

    people = await sql.fetch("SELECT person FROM wakebell.watchers ORDER BY person")
    assert [row["person"] for row in people] == ["7", "9"], conversation


async def test_phrases_are_kept_as_they_are(sql: asyncpg.Connection):
    phrases = ['a "quote"', "back\\slash", "{brace}", "ไลน์บอท", "NULL"]
    stored = await sql.fetchval("SELECT to_jsonb(CAST(CAST($1 AS text) AS text[]))::text", array(phrases))

    assert json.loads(stored) == phrases
