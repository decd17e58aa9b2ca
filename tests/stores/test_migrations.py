from __future__ import annotations

import asyncio
import re
import sys
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


async def test_six_processes_at_once_all_end_well(empty_database_url: str):
    script = "import asyncio, sys; from app.stores.migrations import migrate; print(asyncio.run(migrate(sys.argv[1])))"
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", script, empty_database_url),
            cwd=Path(migrations.__file__).parents[2],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(6)
    ]

    told = [await process.communicate() for process in processes]

    assert [(process.returncode, error) for process, (_, error) in zip(processes, told, strict=True)] == [(0, b"")] * 6
    assert sorted(out.count(b"before=None") for out, _ in told) == [0, 0, 0, 0, 0, 1]


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


@pytest.fixture
async def guest_url(empty_database_url: str):
    """The same database for a user who may connect and no more, with a `%` in the password."""
    name = f"guest_{urlsplit(empty_database_url).path.lstrip('/')}"
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(f"""CREATE ROLE "{name}" LOGIN PASSWORD '50%off%(x)s'""")
    parts = urlsplit(empty_database_url)
    address = parts.netloc.rpartition("@")[2]
    yield parts._replace(netloc=f"{name}:50%25off%25(x)s@{address}").geturl()
    await connection.execute(f'DROP OWNED BY "{name}" CASCADE')
    await connection.execute(f'DROP ROLE "{name}"')
    await connection.close()


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
