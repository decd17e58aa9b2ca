"""While a release is rolled out, the one before works on the new schema, and grants stay."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import pytest

from app.stores import migrations, schema
from app.stores.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FINISH = """
SELECT wakebell.finish_job(
    id => $1::bigint, token => 7::bigint, outcome => $2::text, delay_seconds => 0::double precision,
    error => 'no'::text, result => '{"a": 1}'::jsonb
)
"""
CLAIM = (
    "SELECT * FROM wakebell.claim_jobs(own => false, max_count => 1, leases => '{\"greet\": 60}', token => 7::bigint)"
)
SIGNATURES = "SELECT oid, oid::regprocedure::text AS told FROM pg_proc WHERE pronamespace = 'wakebell'::regnamespace"


@pytest.fixture
async def before(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database whose schema is that of the release before."""
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "HEAD", "0003")
        patched.setattr(schema, "HEAD", "0003")
        await migrate(empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    yield connection
    await connection.close()


async def test_functions_of_before_are_the_same_objects_with_the_same_signatures(
    before: asyncpg.Connection, empty_database_url: str
):
    old = {row["told"]: row["oid"] for row in await before.fetch(SIGNATURES)}

    await migrate(empty_database_url)

    new = {row["told"]: row["oid"] for row in await before.fetch(SIGNATURES)}
    assert old.items() <= new.items()
    assert len(new) > len(old)


async def test_the_release_before_goes_on_working(before: asyncpg.Connection, empty_database_url: str):
    waiting = await before.fetchval("SELECT id FROM wakebell.enqueue('greet', serial_key => 'k')")
    running = (await before.fetchrow(CLAIM))["id"]
    next_in_line = await before.fetchval("SELECT id FROM wakebell.enqueue('greet', serial_key => 'k')")

    await migrate(empty_database_url)

    assert running == waiting
    assert await before.fetchval(FINISH, running, "retry") == "pending"
    assert (await before.fetchrow(CLAIM))["id"] == running
    assert await before.fetchval(FINISH, running, "failed") == "failed"
    assert (await before.fetchrow(CLAIM))["id"] == next_in_line
    assert await before.fetchval(FINISH, next_in_line, "done") == "done"
    failures = await before.fetchval(
        "SELECT jsonb_path_query_array(failures, '$[*].error')::text FROM wakebell.jobs WHERE id = $1", running
    )
    assert failures == '["no", "no"]'


async def test_a_grant_on_enqueue_survives_and_nothing_new_is_open(before: asyncpg.Connection, empty_database_url: str):
    role = f"guest_{urlsplit(empty_database_url).path.lstrip('/')}"
    await before.execute(f'CREATE ROLE "{role}"')
    try:
        await before.execute(f'GRANT USAGE ON SCHEMA wakebell TO "{role}"')
        await before.execute(f'GRANT EXECUTE ON FUNCTION wakebell.enqueue TO "{role}"')
        await before.execute(f'ALTER DEFAULT PRIVILEGES GRANT ALL ON ROUTINES TO "{role}"')

        await migrate(empty_database_url)

        open_to_all = await before.fetch(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'wakebell'::regnamespace "
            "AND has_function_privilege($1, oid, 'EXECUTE')",
            role,
        )
        assert [row["proname"] for row in open_to_all] == ["enqueue"]
        await before.execute(f'GRANT EXECUTE ON FUNCTION wakebell.enqueue_many, wakebell.cancel_job TO "{role}"')
        await before.execute(f'SET ROLE "{role}"')
        assert await before.fetchval("SELECT created FROM wakebell.enqueue('greet', serial_key => 'k')")
        many = """SELECT id FROM wakebell.enqueue_many('[{"type": "greet", "unique_key": "u", "serial_key": "k"}]')"""
        added = await before.fetchval(many)
        assert await before.fetchval(many) == added
        assert await before.fetchval("SELECT wakebell.cancel_job($1)", added) == "cancelled"
        await before.execute("RESET ROLE")
    finally:
        await before.execute("RESET ROLE")
        await before.execute(f'DROP OWNED BY "{role}" CASCADE')
        await before.execute(f'DROP ROLE "{role}"')
