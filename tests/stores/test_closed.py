"""Hosts that offer an HTTP door to the database give its roles everything by default: not this schema."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import pytest

from app.stores import migrations
from app.stores.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'r'"
ROUTINES = "SELECT oid FROM pg_proc WHERE pronamespace = 'wakebell'::regnamespace"
SEQUENCES = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'S'"


@pytest.fixture
async def admin(empty_database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(empty_database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def anon(admin: asyncpg.Connection, empty_database_url: str) -> AsyncIterator[str]:
    """A role that is given everything that anybody will make."""
    role = f"anon_{urlsplit(empty_database_url).path.lstrip('/')}"
    await admin.execute(f'CREATE ROLE "{role}"')
    for kind in ("TABLES", "SEQUENCES", "ROUTINES", "SCHEMAS"):
        for grantee in (f'"{role}"', "PUBLIC"):
            await admin.execute(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO {grantee}")
    yield role
    await admin.execute(f'DROP OWNED BY "{role}" CASCADE')
    await admin.execute(f'DROP ROLE "{role}"')


async def test_a_role_that_is_given_everything_by_default_has_nothing(
    admin: asyncpg.Connection, anon: str, empty_database_url: str
):
    await admin.execute("CREATE TABLE public.theirs ()")

    await migrate(empty_database_url)

    may = "has_table_privilege($1, $2, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')"
    assert await admin.fetchval(f"SELECT {may}", anon, "public.theirs"), "the stage is set"
    tables = [row[0] for row in await admin.fetch(TABLES)]
    assert "wakebell.jobs" in tables
    assert "wakebell.alembic_version" in tables
    assert [name for name in tables if await admin.fetchval(f"SELECT {may}", anon, name)] == []
    assert not await admin.fetchval("SELECT has_schema_privilege($1, 'wakebell', 'USAGE, CREATE')", anon)
    routines = [row[0] for row in await admin.fetch(ROUTINES)]
    assert routines
    may = "has_function_privilege($1, $2::oid, 'EXECUTE')"
    assert [oid for oid in routines if await admin.fetchval(f"SELECT {may}", anon, oid)] == []
    sequences = [row[0] for row in await admin.fetch(SEQUENCES)]
    assert sequences
    may = "has_sequence_privilege($1, $2, 'USAGE, SELECT, UPDATE')"
    assert [name for name in sequences if await admin.fetchval(f"SELECT {may}", anon, name)] == []


async def test_row_level_security_is_on_for_every_table(sql: asyncpg.Connection):
    without = "SELECT relname FROM pg_class WHERE relnamespace = 'wakebell'::regnamespace AND relkind = 'r'"

    assert await sql.fetch(f"{without} AND NOT relrowsecurity") == []


async def test_a_grant_made_on_purpose_survives_later_migrations(
    admin: asyncpg.Connection, anon: str, empty_database_url: str
):
    await migrate(empty_database_url)
    await admin.execute(f'GRANT USAGE ON SCHEMA wakebell TO "{anon}"')
    await admin.execute(f'GRANT EXECUTE ON FUNCTION wakebell.enqueue TO "{anon}"')
    await admin.execute(f'GRANT SELECT ON wakebell.ticks TO "{anon}"')

    async with admin.transaction():
        await admin.execute(migrations._script("remember.sql"))
        await admin.execute("ALTER TABLE wakebell.ticks ADD COLUMN more text")
        await admin.execute("CREATE TABLE wakebell.more ()")
        await admin.execute("CREATE FUNCTION wakebell.more() RETURNS integer LANGUAGE sql RETURN 1")
        await admin.execute(migrations._script("close.sql"))

    assert await admin.fetchval("SELECT has_table_privilege($1, 'wakebell.ticks', 'SELECT')", anon)
    assert not await admin.fetchval("SELECT has_table_privilege($1, 'wakebell.more', 'SELECT')", anon)
    assert not await admin.fetchval("SELECT has_function_privilege($1, 'wakebell.more()', 'EXECUTE')", anon)
    assert await admin.fetchval("SELECT relrowsecurity FROM pg_class WHERE oid = 'wakebell.more'::regclass")
    await admin.execute(f'SET ROLE "{anon}"')
    created = await admin.fetchval("SELECT created FROM wakebell.enqueue('greet', serial_key => 'k')")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await admin.fetch("SELECT * FROM wakebell.jobs")
    await admin.execute("RESET ROLE")
    assert created


async def test_a_role_that_may_enqueue_cannot_lead_it_astray(
    admin: asyncpg.Connection, anon: str, empty_database_url: str
):
    await migrate(empty_database_url)
    await admin.execute(f'GRANT USAGE ON SCHEMA wakebell TO "{anon}"')
    await admin.execute(f'GRANT EXECUTE ON FUNCTION wakebell.enqueue TO "{anon}"')
    await admin.execute(f'GRANT CREATE ON SCHEMA public TO "{anon}"')
    await admin.execute(f'SET ROLE "{anon}"')
    await admin.execute("CREATE FUNCTION public.octet_length(text) RETURNS integer LANGUAGE sql AS 'SELECT 1 / 0'")
    await admin.execute("SET search_path = public, pg_catalog")

    created = await admin.fetchval("SELECT created FROM wakebell.enqueue('greet')")

    await admin.execute("RESET ROLE")
    assert created
