"""deploy/supabase.sql on a real PostgreSQL, with stand-ins for the extensions that a hosted one has."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import httpx
import pytest

from app import main
from tests.fakes.batches import CRON_SECRET, a_service

ROOT = Path(__file__).parent.parent
SQL = (ROOT / "deploy" / "supabase.sql").read_text("utf-8")
GUIDE = (ROOT / "docs" / "guides" / "hosts" / "supabase.md").read_text("utf-8")

# The signatures of pg_cron 1.6, pg_net 0.19 and supabase_vault 0.3, from their sources.
EXTENSIONS = """
CREATE SCHEMA cron;
CREATE TABLE cron.job (jobid bigserial, jobname text UNIQUE, schedule text NOT NULL, command text NOT NULL);
CREATE TABLE cron.job_run_details (start_time timestamptz, status text, return_message text);
CREATE FUNCTION cron.schedule(job_name text, schedule text, command text) RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO cron.job (jobname, schedule, command) VALUES (job_name, schedule, command)
    ON CONFLICT (jobname) DO UPDATE SET schedule = EXCLUDED.schedule, command = EXCLUDED.command RETURNING jobid $$;
CREATE FUNCTION cron.unschedule(job_name text) RETURNS boolean LANGUAGE sql AS $$
    DELETE FROM cron.job WHERE jobname = job_name RETURNING true $$;

CREATE SCHEMA net;
CREATE TABLE net.http_request_queue (
    url text NOT NULL, body jsonb, params jsonb, headers jsonb, timeout_milliseconds int NOT NULL
);
CREATE TABLE net._http_response (created timestamptz, status_code int, timed_out bool, error_msg text);
CREATE FUNCTION net.http_post(
    url text, body jsonb DEFAULT '{}', params jsonb DEFAULT '{}',
    headers jsonb DEFAULT '{"Content-Type": "application/json"}', timeout_milliseconds int DEFAULT 5000
) RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO net.http_request_queue VALUES (url, body, params, headers, timeout_milliseconds) RETURNING 1::bigint $$;

CREATE SCHEMA vault;
CREATE TABLE vault.decrypted_secrets (name text UNIQUE, decrypted_secret text);
"""

MADE = re.compile(r"^CREATE EXTENSION IF NOT EXISTS (pg_cron|pg_net);$", re.MULTILINE)


@pytest.fixture
async def supabase(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    await connection.execute(EXTENSIONS)
    yield connection
    await connection.close()


async def keep(connection: asyncpg.Connection, **secrets: str) -> None:
    await connection.executemany("INSERT INTO vault.decrypted_secrets VALUES ($1, $2)", list(secrets.items()))


async def set_up(connection: asyncpg.Connection) -> str:
    """The one job's command."""
    assert MADE.findall(SQL) == ["pg_cron", "pg_net"]
    await connection.execute(MADE.sub("", SQL))
    [job] = await connection.fetch("SELECT * FROM cron.job")
    assert (job["jobname"], job["schedule"]) == ("wakebell-tick", "7,22,37,52 * * * *")
    command: str = job["command"]
    return command


@asynccontextmanager
async def roles(connection: asyncpg.Connection, *names: str) -> AsyncIterator[None]:
    """They are of the whole server: gone afterwards, unless they were there before."""
    there = {row["rolname"] for row in await connection.fetch("SELECT rolname FROM pg_roles")}
    made = [name for name in names if name not in there]
    for name in made:
        await connection.execute(f"CREATE ROLE {name}")
    try:
        yield
    finally:
        for name in made:
            await connection.execute(f"DROP ROLE {name}")


async def test_its_ring_is_one_that_the_service_takes(supabase: asyncpg.Connection, database_url: str, tmp_path: Path):
    await keep(supabase, wakebell_url="https://bell.example/\n", wakebell_cron_secret=f"{CRON_SECRET}\n")
    await supabase.execute(await set_up(supabase))

    [ring] = await supabase.fetch("SELECT * FROM net.http_request_queue")
    transport = httpx.ASGITransport(main.create_app(a_service(database_url, tmp_path)))
    async with httpx.AsyncClient(transport=transport) as http:
        answer = await http.post(ring["url"], content=ring["body"], headers=json.loads(ring["headers"]))

    assert (ring["url"], json.loads(ring["params"])) == ("https://bell.example/api/cron/tick", {})
    assert ring["timeout_milliseconds"] == 120_000
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_a_second_run_of_it_leaves_one_job_without_a_secret(supabase: asyncpg.Connection):
    await keep(supabase, wakebell_url="https://bell.example", wakebell_cron_secret=CRON_SECRET)

    assert await set_up(supabase) == await set_up(supabase)
    assert CRON_SECRET not in str(await supabase.fetch("SELECT * FROM cron.job"))


async def test_a_secret_that_is_not_in_the_vault_is_told_by_the_job(supabase: asyncpg.Connection):
    with pytest.raises(asyncpg.NotNullViolationError, match='null value in column "url"'):
        await supabase.execute(await set_up(supabase))

    assert 'null value in column "url"' in re.sub(r"\s+", " ", GUIDE)


async def test_the_guides_statements_run_and_say_that_nobody_comes_in(supabase: asyncpg.Connection):
    look, *rest = re.findall(r"^ *```sql\n(.*?)^ *```", GUIDE, re.MULTILINE | re.DOTALL)
    rest += re.findall(r"`(SELECT cron\.unschedule.*?)`", GUIDE)
    await set_up(supabase)

    async with roles(supabase, "anon", "authenticated"):
        seen = await supabase.fetch(look)
    for statement in rest:
        await supabase.execute(statement)

    assert [tuple(row) for row in seen] == [("anon", False, False), ("authenticated", False, False)]
    assert await supabase.fetchval("SELECT count(*) FROM cron.job") == 0
