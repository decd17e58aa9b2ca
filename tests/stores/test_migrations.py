from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from app.domain.errors import DatabaseUnavailable, ServiceError
from app.stores import migrations, schema
from app.stores.database import connect
from app.stores.migrations import Migrated, migrate
from app.stores.schema import HEAD, SchemaState, schema_state

STRANGERS = """
CREATE TABLE jobs (id text PRIMARY KEY, mine text);
CREATE TABLE messages (mine text);
CREATE TABLE bookings (mine text);
CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY);
INSERT INTO jobs VALUES ('a', 'b');
INSERT INTO alembic_version VALUES ('0a1b2c');
"""
PUBLIC = """
SELECT table_name, column_name, data_type
FROM information_schema.columns
WHERE table_schema <> ALL (ARRAY['pg_catalog', 'information_schema', 'wakebell'])
ORDER BY table_name, column_name
"""


async def state_of(url: str) -> SchemaState:
    database = connect(url)
    try:
        return await schema_state(database)
    finally:
        await database.dispose()


async def test_a_second_migration_has_nothing_to_do(empty_database_url: str):
    assert await state_of(empty_database_url) == "missing"

    assert await migrate(empty_database_url) == Migrated(before=None, after=HEAD)
    assert await migrate(empty_database_url) == Migrated(before=HEAD, after=HEAD)

    assert await state_of(empty_database_url) == "current"


def test_the_release_asks_for_the_newest_version():
    numbers = sorted(path.name[:4] for path in (migrations.location() / "versions").glob("[0-9]*.py"))

    assert numbers[-1] == HEAD
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]


OWN_LOCKS = """
SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
WHERE locktype = 'advisory' AND datname = current_database()
"""


@pytest.mark.parametrize(
    ("version", "state"),
    [(HEAD, "current"), ("0000", "behind"), ("9999", "ahead"), ("", "missing")],
)
def test_versions_are_compared_by_number(version: str, state: SchemaState):
    assert schema.compared(version) == state


async def test_a_newer_schema_is_left_to_its_release(database_url: str, sql: asyncpg.Connection):
    await sql.execute("UPDATE wakebell.alembic_version SET version_num = '9999'")

    assert await migrate(database_url) == Migrated(before="9999", after="9999")
    assert await state_of(database_url) == "ahead"


async def test_a_version_table_without_a_version_is_a_missing_schema(database_url: str, sql: asyncpg.Connection):
    await sql.execute("DELETE FROM wakebell.alembic_version")

    assert await state_of(database_url) == "missing"


async def test_a_strangers_tables_are_untouched(empty_database_url: str):
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute(STRANGERS)
        before = await connection.fetch(PUBLIC)

        await migrate(empty_database_url)

        assert await connection.fetch(PUBLIC) == before
        assert await connection.fetch("SELECT * FROM public.jobs") == [("a", "b")]
        assert await connection.fetchval("SELECT version_num FROM public.alembic_version") == "0a1b2c"
    finally:
        await connection.close()


async def test_a_search_path_of_somebody_elses_does_not_matter(empty_database_url: str):
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute(STRANGERS)
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f'ALTER DATABASE "{name}" SET search_path = nowhere')

        await migrate(empty_database_url)

        assert await connection.fetchval("SELECT created FROM wakebell.enqueue('greet')")
    finally:
        await connection.close()


@pytest.mark.direct
async def test_a_user_who_may_create_nothing_is_told_what_to_change(guest_url: str, empty_database_url: str):
    with pytest.raises(ServiceError, match="may not create or change the schema wakebell") as caught:
        await migrate(guest_url)

    assert "50%" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert await state_of(empty_database_url) == "missing"


async def test_a_schema_made_for_a_user_who_may_create_nothing_else_will_do(guest_url: str, empty_database_url: str):
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(f'CREATE SCHEMA wakebell AUTHORIZATION "{urlsplit(guest_url).username}"')
    await connection.close()

    assert await migrate(guest_url) == Migrated(before=None, after=HEAD)


async def test_what_fails_half_way_leaves_nothing(empty_database_url: str, monkeypatch: pytest.MonkeyPatch):
    real = migrations._script
    monkeypatch.setattr(
        migrations,
        "_script",
        lambda name: real(name) + "SELECT 1 / 0;" * (name == "0001_watching.sql"),
    )

    with pytest.raises(ServiceError, match="the migration failed and changed nothing: division by zero"):
        await migrate(empty_database_url)

    assert await state_of(empty_database_url) == "missing"


async def test_one_that_failed_is_in_nobodys_way(empty_database_url: str, monkeypatch: pytest.MonkeyPatch):
    real = migrations._script
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "_script", lambda name: real(name) + "SELECT 1 / 0;" * (name == "close.sql"))
        patched.setattr(migrations, "PREPARE", migrations.PREPARE.replace("'120s'", "'1s'"))
        with pytest.raises(ServiceError, match="division by zero"):
            await migrate(empty_database_url)

    connection = await asyncpg.connect(empty_database_url)
    assert await connection.fetchval(OWN_LOCKS) == 0
    await connection.close()
    assert (await migrate(empty_database_url)).after == HEAD


async def test_two_databases_are_migrated_by_one_process_at_once(
    empty_database_url: str, database_url: str, sql: asyncpg.Connection
):
    await sql.execute("DROP SCHEMA wakebell CASCADE")

    done = await asyncio.gather(*(migrate(url) for url in (empty_database_url, database_url) * 2))

    assert [migrated.after for migrated in done] == [HEAD] * 4
    assert [await state_of(url) for url in (empty_database_url, database_url)] == ["current", "current"]


async def test_a_version_that_is_no_releases_is_told(database_url: str, sql: asyncpg.Connection):
    await sql.execute("UPDATE wakebell.alembic_version SET version_num = '0000'")

    with pytest.raises(ServiceError, match="at a version that this release knows no way from"):
        await migrate(database_url)


async def test_an_old_server_is_refused(empty_database_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schema, "OLDEST_SERVER", 99)

    with pytest.raises(ServiceError, match=r"PostgreSQL \d\d is too old: this release needs PostgreSQL 99 or newer"):
        await migrate(empty_database_url)


@pytest.mark.parametrize(("server", "too_old"), [(130023, True), (140000, False), (180006, False)])
def test_servers_are_told_by_their_number(server: int, too_old: bool):  # noqa: FBT001
    told = schema.unfit("UTF8", server)

    assert (told is not None) == too_old
    assert told is None or told.startswith("PostgreSQL 13 is too old: this release needs PostgreSQL 14 or newer;")


async def test_a_migration_that_never_ends_is_told_of(empty_database_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(migrations, "PREPARE", migrations.PREPARE.replace("'120s'", "'1ms'"))
    connection = await asyncpg.connect(empty_database_url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(1464549965, 0)")
            with pytest.raises(ServiceError, match="another migration, or somebody's open transaction"):
                await migrate(empty_database_url)
    finally:
        await connection.close()


async def test_a_database_that_cannot_keep_every_name_is_refused(ascii_database_url: str):
    with pytest.raises(ServiceError, match=r"encoding is SQL_ASCII.*ENCODING 'UTF8'"):
        await migrate(ascii_database_url)


async def test_an_unreachable_database_is_named():
    with pytest.raises(DatabaseUnavailable, match=re.escape("127.0.0.1/nowhere")):
        await migrate("postgresql://someone:secret@127.0.0.1:1/nowhere")


def test_a_new_version_is_numbered_after_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = migrations.location()
    (tmp_path / "versions").mkdir()
    for name in ("script.py.mako", "env.py"):
        (tmp_path / name).write_text((here / name).read_text())
    monkeypatch.setattr(migrations, "location", lambda: tmp_path)

    first = migrations.new_version("expand: one more column")
    second = migrations.new_version("contract")

    assert (first.name, second.name) == ("0001_expand_one_more_column.py", "0002_contract.py")
    assert "down_revision = '0001'" in second.read_text()
