from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.domain.metrics import MOST_COUNTED, MOST_QUEUES
from app.stores import listings
from app.stores.database import Database
from app.stores.metrics import SQL, Metrics
from app.stores.text import array
from tests.pages.filled import Pages


@pytest.fixture
def metrics(database: Database) -> Metrics:
    return Metrics(database)


async def test_an_empty_database_has_numbers(metrics: Metrics):
    numbers = await metrics.read(sources=[], channels=[])

    assert (numbers.last_tick, numbers.last_success, numbers.last_status) == (None, None, None)
    assert [list(row) for row in numbers.jobs] == [["", "in_line", 0], ["", "unknown_type", 0]]
    assert {name for name, _ in numbers.estimates} >= {"jobs", "items", "messages"}


async def test_what_there_is_is_counted_by_name(metrics: Metrics, sql: asyncpg.Connection):
    await sql.execute(
        """
        INSERT INTO wakebell.jobs (type, queue, run_after) VALUES
            ('mail', 'mails', now() - interval '9 minutes'), ('mail', 'mails', now() - interval '1 minute'),
            ('mail', 'mails', now() + interval '1 hour');
        INSERT INTO wakebell.jobs (type, queue, status, finished_at) VALUES
            ('mail', 'mails', 'failed', now()), ('mail', 'other', 'done', now()),
            ('mail', 'other', 'done', now() - interval '2 hours');
        INSERT INTO wakebell.jobs (type, queue, status, lease_until, lease_token)
            VALUES ('mail', 'mails', 'running', now() + interval '1 minute', 1);
        INSERT INTO wakebell.jobs (type, held) VALUES ('strange', true);
        INSERT INTO wakebell.jobs (type, serial_key, waiting) VALUES ('mail', 'k', true);
        INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at) VALUES
            ('me', 'line', 'sent', '', '', now()), ('me', 'line', 'sent', '', '', now() - interval '2 days'),
            ('me', 'line', 'failed', '', '', now()), ('me', 'line', 'queued', '', '', NULL);
        INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at, summary) VALUES
            ('http', 'failed', now() - interval '1 minute', now(), '{"duration_ms": 5}'),
            ('http', NULL, now(), NULL, NULL),
            ('http', 'ok', now() - interval '9 minutes', now() - interval '9 minutes', '{"duration_ms": 7}');
        INSERT INTO wakebell.alerts (key, kind, subject, failed_at)
            VALUES ('job_failed:mail', 'job_failed', 'mail', now());
        INSERT INTO wakebell.channels (name, quota_used, quota_limit) VALUES ('line', 150, 200), ('gone', 1, 2);
        INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, failures) VALUES
            ('board', 'f', 60, now(), 3), ('gone', 'f', 60, now(), 0);
        INSERT INTO wakebell.items (source, key, title) SELECT 'board', n, '' FROM generate_series(1, 3) AS n;
        """
    )

    numbers = await metrics.read(sources=["board"], channels=["line"])

    counts = {(queue, state): count for queue, state, count in numbers.jobs}
    assert counts == {
        ("mails", "due"): 2,
        ("mails", "later"): 1,
        ("mails", "running"): 1,
        ("mails", "failed"): 1,
        ("", "in_line"): 1,
        ("", "unknown_type"): 1,
    }
    [(queue, age)] = numbers.oldest_due
    assert queue == "mails"
    assert 530 < age < 600
    assert sorted(map(tuple, numbers.ended)) == [("done", 1), ("failed", 1)]
    assert sorted(map(tuple, numbers.messages)) == [("line", "failed", 1), ("line", "queued", 1), ("line", "sent", 1)]
    assert sorted(map(tuple, numbers.ticks)) == [("failed", 1), ("ok", 1), ("running", 1)]
    assert (numbers.last_status, numbers.last_summary) == ("failed", {"duration_ms": 5})
    assert numbers.last_tick is not None
    assert numbers.last_success is not None
    assert 500 < numbers.last_tick - numbers.last_success < 600
    assert [list(row) for row in numbers.alerts] == [["job_failed", 1]]
    assert [list(row) for row in numbers.channels] == [["line", 150, 200, None]]
    assert [list(row) for row in numbers.sources] == [["board", "failing", 3, None, None, 3]]


JOBS = """
INSERT INTO wakebell.jobs (type, queue, status, finished_at, run_after)
SELECT 'mail', 'queue' || n % 80, status, CASE WHEN status IN ('done', 'failed') THEN now() END,
       now() + make_interval(secs => (n % 2000 - 1000) * 60)
FROM generate_series(1, 1000000) AS n
CROSS JOIN LATERAL (SELECT CASE n % 10 WHEN 0 THEN 'failed' WHEN 1 THEN 'done' ELSE 'pending' END) AS s (status)
"""
ITEMS = """
INSERT INTO wakebell.items (source, key, title) SELECT 'source' || n % 20, n, '' FROM generate_series(1, 1000000) AS n
"""
READ = (
    "jobs_due_idx",
    "jobs_running_idx",
    "jobs_held_idx",
    "jobs_line_idx",
    "jobs_failed_idx",
    "jobs_old_idx",
    "jobs_listed_idx",
    "jobs_type_unique_key_key",
)
"""Of jobs, what the numbers and the pages read; of items `items_seen_idx` alone."""


async def fill(sql: asyncpg.Connection, url: str) -> None:
    """A million of each. Indexes are made afterwards, and only those that are read: they are most of the time."""
    found = await sql.fetch(
        "SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made FROM pg_index "
        "WHERE indrelid IN ('wakebell.jobs'::regclass, 'wakebell.items'::regclass) AND NOT indisprimary"
    )
    await sql.execute("ALTER TABLE wakebell.items DROP CONSTRAINT items_source_key_key")
    for row in found:
        await sql.execute(f"DROP INDEX IF EXISTS {row['name']}")
    other = await asyncpg.connect(url)
    await asyncio.gather(sql.execute(JOBS), other.execute(ITEMS))
    await other.close()
    for row in found:
        if row["name"].removeprefix("wakebell.") in {*READ, "items_seen_idx"}:
            await sql.execute(row["made"])


@pytest.mark.timeout(300)
async def test_a_million_jobs_and_items_are_told_by_indexes_alone(
    metrics: Metrics, sql: asyncpg.Connection, database_url: str, tmp_path: Path
):
    """By the metrics, and by the pages, which are looked at here too: to fill the tables takes most of the time."""
    pages = Pages(tmp_path, database_url, sql)
    await pages.visit()
    await fill(sql, database_url)
    compiled, names = SQL["read"].driver
    given: dict[str, Any] = {
        "most": MOST_COUNTED,
        "most_queues": MOST_QUEUES,
        "most_ticks": 100,
        "sources": array([f"source{n}" for n in range(20)]),
        "channels": "{line}",
    }

    async with sql.transaction():
        await sql.execute(str(listings.BY_INDEX))
        params = [given[name] for name in names]
        [plan] = json.loads(await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {compiled}", *params))
    began = time.monotonic()
    numbers = await metrics.read(sources=[f"source{n}" for n in range(20)], channels=["line"])
    took = time.monotonic() - began

    scanned = {node["Relation Name"] for node in nodes(plan["Plan"]) if node["Node Type"] == "Seq Scan"}
    assert scanned <= {"alerts", "sources", "channels", "ticks"}
    assert "jobs" not in scanned
    counts = {(queue, state): count for queue, state, count in numbers.jobs}
    assert len({queue for queue, _ in counts if queue}) >= MOST_QUEUES
    assert sum(count for (_, state), count in counts.items() if state == "failed") <= MOST_COUNTED
    assert all(count <= MOST_COUNTED for count in counts.values())
    assert {row[5] for row in numbers.sources} <= {MOST_COUNTED}
    assert took < 60, "an end, no measure"

    await pages.fill()
    await pages.visit()
    print(pages.times)  # noqa: T201 - for who wants to know
    assert await pages.scanned() == set()
    assert await pages.plans() == {
        "rounds": {"jobs_listed_idx"},
        "hours": {"ticks_started_idx"},
        "ticks": {"ticks_started_idx"},
    }


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]
