"""An application's own transaction, with an application's own rights: its job is there exactly if its data is."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from app.dev import postgres
from app.stores.jobs import Jobs

SIGN_UP = "INSERT INTO public.people (name) VALUES ('Ann')"
WELCOME = "SELECT * FROM wakebell.enqueue('welcome', '{\"name\": \"Ann\"}', unique_key => 'welcome-ann')"


@pytest.fixture
async def role(sql: asyncpg.Connection, database_url: str) -> AsyncIterator[str]:
    """An application's: it has its own table, and of ours what the guide grants it."""
    role = f"app_{urlsplit(database_url).path.lstrip('/')}"
    await sql.execute("CREATE TABLE public.people (name text NOT NULL)")
    await sql.execute(f'CREATE ROLE "{role}"')
    await sql.execute(f'GRANT SELECT, INSERT ON public.people TO "{role}"')
    await sql.execute(f'GRANT USAGE ON SCHEMA wakebell TO "{role}"')
    await sql.execute(f'GRANT EXECUTE ON FUNCTION wakebell.enqueue TO "{role}"')
    yield role
    await sql.execute(f'DROP OWNED BY "{role}"')
    await sql.execute(f'DROP ROLE "{role}"')


@pytest.fixture
async def app(database_url: str, role: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url, server_settings={"role": role})
    yield connection
    await connection.close()


Counted = Callable[[], Any]


@pytest.fixture
def counted(sql: asyncpg.Connection) -> Counted:
    """How many people and how many jobs there are."""

    async def count() -> tuple[int, int]:
        row = await sql.fetchrow(
            "SELECT (SELECT count(*) FROM public.people) AS people, (SELECT count(*) FROM wakebell.jobs) AS jobs"
        )
        return row["people"], row["jobs"]

    return count


async def test_a_sign_up_that_is_rolled_back_leaves_no_job(app: asyncpg.Connection, counted: Counted):
    transaction = app.transaction()
    await transaction.start()
    await app.execute(SIGN_UP)
    assert (await app.fetchrow(WELCOME))["created"]
    await transaction.rollback()

    assert await counted() == (0, 0)


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
async def test_one_that_commits_leaves_exactly_one(app: asyncpg.Connection, counted: Counted, isolation: Any):
    async with app.transaction(isolation=isolation):
        await app.execute(SIGN_UP)
        first = await app.fetchrow(WELCOME)
        again = await app.fetchrow(WELCOME)

    assert (first["id"], first["created"], again["created"]) == (again["id"], True, False)
    assert await counted() == (1, 1)


async def test_a_savepoint_takes_its_job_back_too(app: asyncpg.Connection, counted: Counted):
    async with app.transaction():
        await app.execute(SIGN_UP)
        savepoint = app.transaction()
        await savepoint.start()
        await app.fetchrow(WELCOME)
        await savepoint.rollback()

    assert await counted() == (1, 0)


@pytest.mark.parametrize("commits", [True, False])
async def test_sqlalchemys_session_is_as_good(database_url: str, role: str, counted: Counted, *, commits: bool):
    async def connect() -> asyncpg.Connection:
        return await asyncpg.connect(database_url, server_settings={"role": role})

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect)
    async with engine.connect() as connection:
        await connection.execute(text(SIGN_UP))
        enqueue = text("SELECT id FROM wakebell.enqueue('welcome', CAST(:payload AS jsonb))")
        await connection.execute(enqueue, {"payload": json.dumps({"name": "Ann"})})
        await (connection.commit() if commits else connection.rollback())
    await engine.dispose()

    assert await counted() == ((1, 1) if commits else (0, 0))


@pytest.mark.direct
@pytest.mark.parametrize(("ends", "left"), [("COMMIT", (1, 1)), ("ROLLBACK", (0, 0))])
async def test_psql_is_as_good(database_url: str, role: str, counted: Counted, ends: str, left: tuple[int, int]):
    program = shutil.which("psql") or str(postgres.programs() / "psql")
    script = f"BEGIN; {SIGN_UP}; {WELCOME}; {ends};"
    process = await asyncio.create_subprocess_exec(
        program,
        database_url,
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        script,
        stdout=asyncio.subprocess.DEVNULL,
        env={"PGOPTIONS": f"-c role={role}"},
    )

    assert await process.wait() == 0
    assert await counted() == left


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("''", "type must not be empty"),
        ("'a', '[1]'", "payload must be a JSON object"),
        ("'a', queue => 'wakebell.send'", 'queues named "wakebell.…" are the service\'s own; choose another name'),
        ("'a', priority => 101", "priority must be from 0 to 100"),
        ("'a', max_attempts => 0", "max_attempts must be at least 1"),
        ("'a', unique_key => ''", "unique_key must be from 1 to 1000 bytes"),
        ("'a', jsonb_build_object('a', repeat('x', 262144))", "payload must be at most 256 KiB"),
    ],
)
async def test_what_is_wrong_is_refused_in_the_same_words(app: asyncpg.Connection, arguments: str, told: str):
    with pytest.raises(asyncpg.InvalidParameterValueError, match=told.replace(".", r"\.")):
        await app.fetch(f"SELECT * FROM wakebell.enqueue({arguments})")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM wakebell.jobs",
        "INSERT INTO wakebell.jobs (type) VALUES ('a')",
        "SELECT * FROM wakebell.enqueue_many('[]')",
        "SELECT wakebell.replace_job('a', 'b')",
        "SELECT * FROM wakebell.add_job('a', '{}', 'wakebell.send', 0, NULL, NULL, NULL, 4)",
        "SELECT * FROM wakebell.keep_event('a', 'b', NULL, 'c', NULL, NULL, NULL, 'd', 'wakebell.send')",
        "SELECT * FROM wakebell.events",
    ],
)
async def test_nothing_else_is_open_to_it(app: asyncpg.Connection, statement: str):
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await app.fetch(statement)


async def test_256_kib_are_the_limit_in_each_way(app: asyncpg.Connection, jobs: Jobs):
    most, more = ({"a": "x" * (262_144 - len('{"a": ""}') + extra)} for extra in (0, 1))

    await jobs.enqueue(type="a", payload=most)
    await app.fetch("SELECT * FROM wakebell.enqueue('a', $1)", json.dumps(most))
    with pytest.raises(ValueError, match="payload must be at most 256 KiB"):
        await jobs.enqueue(type="a", payload=more)
    with pytest.raises(asyncpg.InvalidParameterValueError, match="payload must be at most 256 KiB"):
        await app.fetch("SELECT * FROM wakebell.enqueue('a', $1)", json.dumps(more))
