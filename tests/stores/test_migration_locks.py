"""A migration of a filled database stands in nobody's way: no large table is written anew, read through or indexed.

While that lasts, whoever writes to the table waits, and every tick with them. docs/decisions/0024 says how it is done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from alembic.script import ScriptDirectory

from app.stores import migrations, schema
from app.stores.migrations import migrate

ROWS = 2000

SMALL = frozenset(
    # One row for each thing that somebody has configured, or that is wrong now
    {"alerts", "alembic_version", "channels", "hosts", "queues", "recipients", "schedules", "sources"}
    # What is said in chats: forgotten after days
    | {"conversations", "said", "spendings", "talks", "turns", "watches"}
)
"""Tables that are never large; any other one may hold a million rows."""

FILL = f"""
INSERT INTO wakebell.jobs (type, status, finished_at)
    SELECT 'greet', CASE WHEN n % 2 = 0 THEN 'done' ELSE 'failed' END, now() FROM generate_series(1, {ROWS}) AS n;
INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at) VALUES ('board', 'f', 900, now());
INSERT INTO wakebell.items (source, key, title) SELECT 'board', n::text, 'Cook' FROM generate_series(1, {ROWS}) AS n;
INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at)
    SELECT 'me', 'line', 'sent', 'body', 'text', now() FROM generate_series(1, {ROWS}) AS n;
INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, 'me', '[]' FROM wakebell.items;
INSERT INTO wakebell.ticks (trigger) SELECT 'test' FROM generate_series(1, {ROWS}) AS n;
"""

KNOWN = {
    "0002": {
        "writes rows of jobs",  # half of those above are failed jobs, which had to be marked as judged
        *(f"builds {name}" for name in ("jobs_done_idx", "jobs_judged_idx", "jobs_unjudged_idx")),
        *(f"builds {name}" for name in ("messages_sent_idx", "messages_unjudged_idx")),
    },
    "0003": {"builds jobs_listed_idx", "builds messages_listed_idx"},
    "0007": {"builds items_link_idx", "builds items_title_idx"},  # of columns that are new: a look at each row, no more
    "0010": {"builds messages_expiring_idx"},  # the same
}
"""Of versions that are out: they were made when nobody had a large table, and are never changed."""

FACTS = """
WITH tables AS (
    SELECT oid, relname FROM pg_class WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'r'
)
SELECT 'storage' AS what, t.relname AS table, t.relname AS name, pg_relation_filenode(t.oid)::text AS value
FROM tables AS t
UNION ALL
SELECT 'index', t.relname, i.indexrelid::regclass::text, pg_relation_filenode(i.indexrelid)::text
FROM tables AS t JOIN pg_index AS i ON i.indrelid = t.oid
UNION ALL
SELECT CASE WHEN c.convalidated THEN 'rule' ELSE 'unchecked' END, t.relname, c.conname, ''
FROM tables AS t JOIN pg_constraint AS c ON c.conrelid = t.oid WHERE c.contype IN ('c', 'f')
UNION ALL
SELECT 'column', t.relname, a.attname, CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END
FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid WHERE a.attnum > 0 AND NOT a.attisdropped
"""

Facts = dict[tuple[str, str, str], str]


@dataclass(frozen=True)
class Filled:
    """A database whose tables were filled at its first version."""

    url: str
    sql: asyncpg.Connection

    async def facts(self) -> Facts:
        found = await self.sql.fetch(FACTS)
        return {(row["what"], row["table"], row["name"].removeprefix("wakebell.")): row["value"] for row in found}

    async def written(self, table: str, since: int) -> int:
        """Rows of transactions from this one on."""
        query = f"SELECT count(*) FROM wakebell.{table} WHERE xmin::text::bigint >= $1"
        count: int = await self.sql.fetchval(query, since)
        return count

    async def offences(self, version: str, patched: pytest.MonkeyPatch) -> set[str]:
        """What a migration to this version does to the tables that are large."""
        for statement in getattr(module_of(version), "BEFOREHAND", ()):
            await self.sql.execute(statement)
        before = await self.facts()
        since = int(await self.sql.fetchval("SELECT pg_current_xact_id()::text"))
        patched.setattr(migrations, "HEAD", version)
        patched.setattr(schema, "HEAD", version)
        await migrate(self.url)
        after = await self.facts()
        large = {table for what, table, _ in before if what == "storage"} - SMALL
        found = {told for key in after if key[1] in large and (told := offence(key, before, after))}
        return found | {f"writes rows of {table}" for table in large if await self.written(table, since) > ROWS / 10}


def module_of(version: str) -> Any:
    return ScriptDirectory.from_config(migrations._config()).get_revision(version).module


def offence(key: tuple[str, str, str], before: Facts, after: Facts) -> str | None:
    """What has come of one thing that takes as long as its table is large."""
    what, table, name = key
    if before.get(key) == after[key]:
        return None
    match what:
        case "storage":
            return f"writes {table} anew"
        case "index":
            return f"builds {name}"
        case "rule":
            # One that was there already, not valid, is read through beside everybody's writing.
            return None if ("unchecked", table, name) in before else f"checks {name}"
        case "column":
            return f"checks that {name} is not null" if before.get(key) == "null" else None
        case _:
            return None


@pytest.fixture
async def filled(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Filled]:
    sql = await asyncpg.connect(empty_database_url)
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "HEAD", "0001")
        patched.setattr(schema, "HEAD", "0001")
        await migrate(empty_database_url)
    await sql.execute(FILL)
    yield Filled(url=empty_database_url, sql=sql)
    await sql.close()


async def test_no_version_keeps_writers_waiting_for_as_long_as_a_table_is_large(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
):
    versions = [f"{number:04}" for number in range(2, int(schema.HEAD) + 1)]

    with monkeypatch.context() as patched:
        found = {version: await filled.offences(version, patched) for version in versions}

    assert {version: told for version, told in found.items() if told} == KNOWN


SEEN: tuple[tuple[str, set[str]], ...] = (
    ("ALTER TABLE wakebell.jobs ADD COLUMN note text NOT NULL DEFAULT 'x'", set()),
    ("ALTER TABLE wakebell.jobs ADD CONSTRAINT later CHECK (id > 0) NOT VALID", set()),
    ("ALTER TABLE wakebell.jobs VALIDATE CONSTRAINT later", set()),
    ("ALTER TABLE wakebell.jobs ADD CONSTRAINT at_once CHECK (id > 0)", {"checks at_once"}),
    ("ALTER TABLE wakebell.jobs ALTER COLUMN last_error SET NOT NULL", {"checks that last_error is not null"}),
    ("CREATE INDEX IF NOT EXISTS beforehand_idx ON wakebell.jobs (id)", set()),
    ("CREATE INDEX built_idx ON wakebell.jobs (id)", {"builds built_idx"}),
    ("CREATE INDEX small_idx ON wakebell.sources (name, due_at)", set()),
    ("UPDATE wakebell.items SET title = 'Cook' WHERE id < 100", set()),
    ("UPDATE wakebell.items SET title = 'Cook'", {"writes rows of items"}),
)


async def test_what_takes_long_is_seen(filled: Filled, monkeypatch: pytest.MonkeyPatch):
    await filled.sql.execute("UPDATE wakebell.jobs SET last_error = ''")
    await filled.sql.execute("CREATE INDEX CONCURRENTLY beforehand_idx ON wakebell.jobs (id)")

    for statement, told in SEEN:
        monkeypatch.setattr(migrations, "_upgrade", lambda db, script=statement: migrations._run(db, script))

        assert await filled.offences("0002", monkeypatch) == told, statement


async def test_a_table_that_is_written_anew_is_seen(filled: Filled, monkeypatch: pytest.MonkeyPatch):
    statement = "ALTER TABLE wakebell.ticks ALTER COLUMN trigger TYPE varchar(5)"
    monkeypatch.setattr(migrations, "_upgrade", lambda db: migrations._run(db, statement))

    assert "writes ticks anew" in await filled.offences("0002", monkeypatch)
