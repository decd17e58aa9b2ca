"""What listings show, and what they read of a table with a long history: few pages, no whole table, no great sort."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql import asyncpg as dialect

from app.stores import listings
from app.stores.database import Database
from app.stores.jobs import Jobs
from app.stores.listings import Listings

OLD_JOBS = """
INSERT INTO wakebell.jobs (type, queue, status, finished_at)
SELECT 'type' || n % 7, CASE WHEN n % 3 = 0 THEN 'queue' || n % 5 ELSE 'wakebell.fetch' END, 'done', now()
FROM generate_series(1, 60000) AS n
"""
RARE_JOBS = """
INSERT INTO wakebell.jobs (type, queue, status, finished_at)
SELECT 'rare', 'odd', 'failed', now() FROM generate_series(1, 30)
"""
LATER_JOBS = """
INSERT INTO wakebell.jobs (type, queue, run_after)
SELECT 'later', 'queue1', now() + interval '9 days' FROM generate_series(1, 60000)
"""
MESSAGES = """
INSERT INTO wakebell.messages (recipient, channel, status, body, text)
SELECT
    'person' || n % 9,
    CASE WHEN n % 9 < 5 THEN 'line' ELSE 'mail' END,
    CASE WHEN n = 11 THEN 'failed' ELSE 'sent' END,
    'two new gigs',
    'two new gigs'
FROM generate_series(1, 60000) AS n
"""
SOURCES = """
INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at)
SELECT 'source' || n, 'x', 1800, now() FROM generate_series(1, 20) AS n
"""
ITEMS = """
INSERT INTO wakebell.items (source, key, title)
SELECT 'source' || n % 400, 'key' || n, repeat('a long title ', 20) FROM generate_series(1, 60000) AS n
"""

NO_JOBS_FILTER = {"before": None, "status": None, "type": None, "queue": None, "own": False}
NO_MESSAGES_FILTER = {"before": None, "status": None, "recipient": None, "channel": None}
PAGE = {"most": 50, "most_bytes": listings.MOST_BYTES}

JOBS_READ = [
    ({}, 3_000),
    ({"own": True}, 3_500),
    ({"before": 30_000}, 3_000),
    ({"status": "done"}, 3_000),
    ({"status": "failed"}, 400),
    ({"status": "cancelled"}, 400),
    ({"type": "type3"}, 1_500),
    ({"type": "rare"}, 400),
    ({"type": "nothing"}, 400),
    ({"type": "later", "status": "done"}, 400),
    ({"queue": "queue1"}, 1_000),
    ({"queue": "odd"}, 400),
    ({"queue": "nothing"}, 400),
    ({"queue": "wakebell.fetch", "own": True}, 1_500),
]
MESSAGES_READ = [
    ({}, 1_500),
    ({"before": 30_000}, 1_500),
    ({"status": "failed"}, 400),
    ({"status": "queued"}, 400),
    ({"recipient": "person3"}, 400),
    ({"recipient": "nobody"}, 400),
    ({"channel": "mail"}, 1_500),
    ({"channel": "mail", "status": "retrying"}, 400),
]
"""Pages that each may read; the tables have some 2,000, and would have 40,000 with a million rows."""


@pytest.fixture
def store(database: Database) -> Listings:
    return Listings(database)


async def test_a_page_of_long_payloads_ends_early_and_the_next_one_goes_on(jobs: Jobs, store: Listings):
    ids = [(await jobs.enqueue(type="greet", payload={"text": "x" * 250_000})).id for _ in range(9)][::-1]

    first = await store.list_jobs(limit=200)
    second = await store.list_jobs(limit=200, before=first.rows[-1].id)

    assert [job.id for job in [*first.rows, *second.rows]] == ids
    assert (len(first.rows), first.more, second.more) == (5, True, False)
    assert first.rows[0].payload == {"text": "x" * 250_000}


async def test_a_page_that_is_just_full_is_the_last(jobs: Jobs, store: Listings):
    for _ in range(3):
        await jobs.enqueue(type="greet")

    assert (await store.list_jobs(limit=3)).more is False
    assert (await store.list_jobs(limit=2)).more is True
    assert (await store.list_jobs(limit=2, before=1)).rows == []


async def test_a_listed_job_is_told_like_a_single_one(jobs: Jobs, store: Listings):
    added = await jobs.enqueue(type="greet", payload={"name": "မြန်မာ"}, queue="people", unique_key="one")

    [listed] = (await store.list_jobs(limit=10)).rows

    assert listed == await jobs.get(added.id)


async def test_groups_of_every_name_are_found(sql: asyncpg.Connection, store: Listings):
    names = ["a", "A", "b", "wakebell", "wakebell.", "wakebell.x", "ｚ", "မြန်", "ก", "a b", "-"]
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, queue) SELECT t, q FROM unnest($1::text[]) AS t, unnest($1::text[]) AS q",
        names,
    )

    every = await store.list_jobs(limit=200, own=True)
    users = await store.list_jobs(limit=200)

    assert {(job.type, job.queue) for job in every.rows} == {(t, q) for t in names for q in names}
    assert {job.queue for job in users.rows} == {name for name in names if not name.startswith("wakebell.")}
    for name in names:
        assert {job.queue for job in (await store.list_jobs(limit=200, queue=name, own=True)).rows} == {name}
        assert {job.type for job in (await store.list_jobs(limit=200, type=name, own=True)).rows} == {name}


@pytest.mark.timeout(300)
async def test_listings_read_few_pages_and_never_a_whole_table(sql: asyncpg.Connection):
    await sql.execute("CREATE INDEX IF NOT EXISTS jobs_listed_idx ON wakebell.jobs (queue, type, status, id)")
    await sql.execute(
        "CREATE INDEX IF NOT EXISTS messages_listed_idx ON wakebell.messages (recipient, channel, status, id)"
    )
    for script in (OLD_JOBS, RARE_JOBS, LATER_JOBS, MESSAGES, SOURCES, ITEMS):
        await sql.execute(script)

    never_analyzed = [told async for told in faults(sql)]
    await sql.execute("VACUUM ANALYZE wakebell.jobs, wakebell.messages, wakebell.items, wakebell.sources")
    analyzed = [told async for told in faults(sql)]

    assert never_analyzed == []
    assert analyzed == []


async def faults(sql: asyncpg.Connection):
    for given, most in JOBS_READ:
        for told in judged(await plan(sql, "list_jobs", {**NO_JOBS_FILTER, **PAGE, **given}), most):
            yield "list_jobs", given, told
    for given, most in MESSAGES_READ:
        for told in judged(await plan(sql, "list_messages", {**NO_MESSAGES_FILTER, **PAGE, **given}), most):
            yield "list_messages", given, told
    names = "{" + ",".join(f"source{n}" for n in range(1, 21)) + "}"
    for told in judged(await plan(sql, "list_sources", {"names": names}), 8_000):
        if told != "Seq Scan of sources":  # a page or two
            yield "list_sources", names, told


async def plan(sql: asyncpg.Connection, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """As the store runs it: parameters bound, not written in."""
    compiled = listings.SQL[name].compile(dialect=dialect.dialect())
    arguments = [params[parameter] for parameter in compiled.positiontup or []]
    async with sql.transaction():
        if name != "list_sources":
            await sql.execute(str(listings.BY_INDEX))
        told = await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {compiled}", *arguments)
    found: dict[str, Any] = json.loads(told)[0]["Plan"]
    return found


def judged(plan: dict[str, Any], most_pages: int) -> Iterator[str]:
    pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    if pages > most_pages:
        yield f"{pages} pages, not {most_pages}"
    for node in nodes(plan):
        rows = node["Actual Rows"] * node["Actual Loops"]
        if node["Node Type"] == "Seq Scan":
            yield f"Seq Scan of {node['Relation Name']}"
        if node["Node Type"].endswith("Sort") and sum(rows_of(child) for child in node["Plans"]) > 5_000:
            yield f"a sort of {rows} rows"


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def rows_of(node: dict[str, Any]) -> int:
    return int(node["Actual Rows"] * node["Actual Loops"])
