"""What listings show, and what they read of a table with a long history: few pages, no whole table, no great sort."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

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

JOBS_ASKED: list[dict[str, Any]] = [
    {},
    {"own": True},
    {"before": 30_000},
    {"status": "done"},
    {"status": "failed"},
    {"status": "cancelled"},
    {"type": "type3"},
    {"type": "rare"},
    {"type": "nothing"},
    {"type": "later", "status": "done"},
    {"queue": "queue1"},
    {"queue": "odd"},
    {"queue": "nothing"},
    {"queue": "wakebell.fetch", "own": True},
]
MESSAGES_ASKED: list[dict[str, Any]] = [
    {},
    {"before": 30_000},
    {"status": "failed"},
    {"status": "queued"},
    {"recipient": "person3"},
    {"recipient": "nobody"},
    {"channel": "mail"},
    {"channel": "mail", "status": "retrying"},
]

MOST_PAGES = {"list_jobs": 3_500, "list_messages": 600, "list_sources": 4_000}
"""That each may read, however many rows there are: with a million jobs it is the same. To walk through all of these in
the order of their ids takes more than 50,000.
"""


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

    single = await jobs.get(added.id)
    assert single is not None
    assert listed == dataclasses.replace(single, failures=None, then=None)


@pytest.mark.parametrize("result", ['"a text"', '"5"', "5", "null", '{"a": [1.5, null]}', '["x"]'])
async def test_a_result_comes_back_as_it_went_in(sql: asyncpg.Connection, jobs: Jobs, store: Listings, result: str):
    job_id = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, status, result) VALUES ('greet', 'done', $1) RETURNING id", result
    )

    [listed] = (await store.list_jobs(limit=1)).rows
    got = await jobs.get(job_id)

    assert got is not None
    assert listed.result == got.result == json.loads(result)


@pytest.mark.parametrize(
    ("number", "read"),
    [
        pytest.param("1" * 5000, "1" * 5000, id="whole"),
        pytest.param("1" * 400 + ".5", "1" * 400 + ".5", id="fraction"),
        pytest.param("1e400", 10**400, id="great"),
        pytest.param("1.50", 1.5, id="usual"),
    ],
)
async def test_a_number_beyond_python_stops_nobody(
    sql: asyncpg.Connection, jobs: Jobs, store: Listings, number: str, read: Any
):
    await sql.execute("SELECT wakebell.enqueue('greet', CAST(CAST($1 AS text) AS jsonb))", f'{{"n": {number}}}')

    [listed] = (await store.list_jobs(limit=1)).rows
    [claimed] = await jobs.claim(own=False, limit=1, leases={"greet": timedelta(seconds=30)}, token=1)

    assert listed.payload == claimed.payload == {"n": read}


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
    for script in (OLD_JOBS, RARE_JOBS, LATER_JOBS, MESSAGES, SOURCES, ITEMS):
        await sql.execute(script)

    never_analyzed = await faults(sql)
    await sql.execute("VACUUM ANALYZE wakebell.jobs, wakebell.messages, wakebell.items, wakebell.sources")
    analyzed = await faults(sql)

    assert never_analyzed == []
    assert analyzed == []


async def faults(sql: asyncpg.Connection) -> list[str]:
    names = "{" + ",".join(f"source{n}" for n in range(1, 21)) + "}"
    asked = [
        *(("list_jobs", {**NO_JOBS_FILTER, **PAGE, **given}) for given in JOBS_ASKED),
        *(("list_messages", {**NO_MESSAGES_FILTER, **PAGE, **given}) for given in MESSAGES_ASKED),
        ("list_sources", {"names": names}),
    ]
    return [
        f"{name} {params}: {told}"
        for name, params in asked
        for told in judged(await plan(sql, name, params), MOST_PAGES[name])
    ]


async def plan(sql: asyncpg.Connection, name: str, params: dict[str, Any]) -> dict[str, Any]:
    """As the store runs it: parameters bound, not written in."""
    compiled, names = listings.SQL[name].driver
    arguments = [params[parameter] for parameter in names]
    async with sql.transaction():
        if name != "list_sources":
            await sql.execute(str(listings.BY_INDEX))
        told = await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {compiled}", *arguments)
    found: dict[str, Any] = json.loads(told)[0]["Plan"]
    return found


def judged(plan: dict[str, Any], most_pages: int) -> Iterator[str]:
    pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    if pages > most_pages:
        yield f"{pages} pages"
    for node in nodes(plan):
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] not in {
            "sources",
            "hosts",
        }:  # those are a page or two
            yield f"all of {node['Relation Name']}"
        if node["Node Type"].endswith("Sort") and (rows := sum(map(rows_of, node["Plans"]))) > 5_000:
            yield f"a sort of {rows} rows"


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def rows_of(node: dict[str, Any]) -> int:
    return int(node["Actual Rows"] * node["Actual Loops"])
