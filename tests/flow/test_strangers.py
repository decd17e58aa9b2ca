"""A database may belong to others, too: whatever is not in the schema `wakebell` is left as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncpg

from tests.fakes.feeds import Feeds
from tests.fakes.line import Line
from tests.flow.processes import Nursery
from tests.flow.stage import Stage

STRANGERS = """
CREATE TYPE public.mood AS ENUM ('fine', 'busy');
CREATE TABLE public.jobs (id serial PRIMARY KEY, status text NOT NULL, run_after timestamptz, mood public.mood);
CREATE TABLE public.messages (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), body text UNIQUE);
CREATE TABLE public.bookings (ref text PRIMARY KEY, starts_at timestamptz, job_id integer REFERENCES public.jobs);
CREATE TABLE public.items (source text, key text);
CREATE TABLE public.alembic_version (version_num varchar(32) PRIMARY KEY);
CREATE INDEX jobs_due_idx ON public.jobs (run_after);
CREATE FUNCTION public.enqueue(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
INSERT INTO public.jobs (status, run_after, mood) SELECT 'pending', now(), 'fine' FROM generate_series(1, 50);
INSERT INTO public.messages (body) VALUES ('mine'), ('theirs');
INSERT INTO public.bookings VALUES ('a', '2026-11-30T09:00:00Z', 1);
INSERT INTO public.items VALUES ('jobs', 'Cook');
INSERT INTO public.alembic_version VALUES ('f00dfeed');
"""

# The system's own columns show also a row that was written again as it had been.
ROWS = "SELECT xmin::text, ctid::text, t::text FROM public.{table} AS t ORDER BY ctid"
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname"
OBJECTS = """
SELECT 'relation' AS kind, oid::regclass::text AS name, relkind::text, relacl::text, relowner::text,
       relrowsecurity::text
FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'column', attrelid::regclass || '.' || attname, format_type(atttypid, atttypmod), attnotnull::text,
       attnum::text, attacl::text
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'constraint', conname, pg_get_constraintdef(oid), '', '', '' FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'index', indexname, indexdef, '', '', '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'function', oid::regprocedure::text, prosrc, proacl::text, '', '' FROM pg_proc
WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'type', oid::regtype::text, typtype::text, typacl::text, '', '' FROM pg_type
WHERE typnamespace = 'public'::regnamespace
UNION ALL
SELECT 'schema', nspname, nspacl::text, '', '', '' FROM pg_namespace WHERE nspname !~ '^(pg_|wakebell$)'
ORDER BY 1, 2
"""


async def test_tables_of_others_are_unchanged_by_migrations_and_ticks(
    tmp_path: Path,
    empty_database_url: str,
    nursery: Nursery,
):
    sql = await asyncpg.connect(empty_database_url)
    async with Feeds() as feeds, Line() as line:
        stage = Stage(
            folder=tmp_path, database_url=empty_database_url, sql=sql, feeds=feeds, line=line, nursery=nursery
        )
        feeds.add("jobs", "Cook")
        await sql.execute(STRANGERS)
        before = await dump(sql)
        try:
            migration = stage.command("migrate")
            assert await migration.ended() == 0, migration.log
            service = await stage.serve()
            await service.tick()
            feeds.feeds["jobs"].add("Driver")
            await stage.make_due()
            told = await service.tick()
        finally:
            for process in stage.processes:
                process.clear_away()

        assert told["messages"]["sent"] == 1
        assert await dump(sql) == before
    await sql.close()


async def dump(sql: asyncpg.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All there is outside of the service's schema."""
    tables = [row["relname"] for row in await sql.fetch(TABLES)]
    rows = {table: [tuple(row) for row in await sql.fetch(ROWS.format(table=table))] for table in tables}
    return {**rows, "objects": [tuple(row) for row in await sql.fetch(OBJECTS)]}
