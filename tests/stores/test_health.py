from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from app.stores.database import Database
from app.stores.health import SQL, HealthFacts

MINUTE = timedelta(minutes=1)


@pytest.fixture
def health(database: Database) -> HealthFacts:
    return HealthFacts(database)


async def test_an_empty_database_has_nothing_to_tell(health: HealthFacts):
    facts = await health.read([])

    assert (facts.first_tick_at, facts.last_tick_at, facts.last_tick_status, facts.last_success_at) == (None,) * 4
    assert (facts.oldest_due_at, facts.open_alerts, facts.failing_sources, facts.parked) == (None, [], [], None)


async def test_a_killed_tick_counts_as_the_latest_and_not_as_a_success(health: HealthFacts, sql: asyncpg.Connection):
    for minutes, status in ((50, "ok"), (40, "partial"), (30, "failed"), (20, None)):
        await sql.execute(
            "INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at) VALUES "
            "('http', CAST($1 AS text), now() - make_interval(mins => $2), "
            "CASE WHEN CAST($1 AS text) IS NOT NULL THEN now() - make_interval(mins => $2) END)",
            *(status, minutes),
        )

    facts = await health.read([])

    assert facts.first_tick_at is not None
    assert facts.last_tick_at is not None
    assert facts.last_success_at is not None
    assert (facts.now - facts.first_tick_at) // MINUTE == 50
    assert (facts.now - facts.last_success_at) // MINUTE == 40
    assert facts.last_tick_status == "failed"
    assert (facts.now - facts.last_tick_at) // MINUTE == 20


async def test_the_oldest_due_job_is_one_that_may_start_in_whatever_queue(health: HealthFacts, sql: asyncpg.Connection):
    jobs = [  # queue, minutes that it has been due, waiting, held, status
        ("default", 5, False, False, "pending"),
        ("other", 9, False, False, "pending"),
        ("wakebell.send", 7, False, False, "pending"),
        ("other", 90, True, False, "pending"),
        ("other", 91, False, True, "pending"),
        ("other", 92, False, False, "done"),
        ("third", -10, False, False, "pending"),
    ]
    for queue, minutes, waiting, held, status in jobs:
        await sql.execute(
            "INSERT INTO wakebell.jobs (type, queue, run_after, waiting, held, status, serial_key) "
            "VALUES ('mail', $1, now() - make_interval(mins => $2), $3, $4, $5, CASE WHEN $3 THEN 'k' END)",
            *(queue, minutes, waiting, held, status),
        )

    facts = await health.read([])

    assert facts.oldest_due_at is not None
    assert (facts.now - facts.oldest_due_at) // MINUTE == 9


async def test_open_alerts_and_configured_sources_that_fail_are_named(health: HealthFacts, sql: asyncpg.Connection):
    for key, resolved in (("job_failed:b", "NULL"), ("job_failed:a", "NULL"), ("job_failed:c", "now()")):
        await sql.execute(
            "INSERT INTO wakebell.alerts (key, kind, subject, failed_at, resolved_at) "
            f"VALUES ($1, 'job_failed', 'x', now(), {resolved})",
            key,
        )
    for name, failures in (("board", 1), ("well", 0), ("forgotten", 9)):
        await sql.execute(
            "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, grid_from, due_at, failures) "
            "VALUES ($1, '', 60, now(), now(), $2)",
            *(name, failures),
        )

    await sql.execute(
        "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, state) "
        "VALUES ('empty', '', 60, now(), 'blind')"
    )

    facts = await health.read(["board", "well", "empty"])

    assert facts.open_alerts == ["job_failed:b", "job_failed:a"]
    assert facts.failing_sources == ["board", "empty"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("analyzed", [False, True])
async def test_it_reads_few_pages_of_a_database_in_use(sql: asyncpg.Connection, *, analyzed: bool):
    await sql.execute(
        """
        INSERT INTO wakebell.jobs (type, queue, status, attempts, started_at, finished_at)
        SELECT 'greet', 'queue' || n % 5, 'done', 1, now(), now() FROM generate_series(1, 100000) AS n;
        INSERT INTO wakebell.jobs (type, queue, run_after)
        SELECT 'greet', 'queue' || n % 5, now() + make_interval(secs => n - 10) FROM generate_series(1, 20000) AS n;
        INSERT INTO wakebell.messages (recipient, channel, status, body, text, sent_at, finished_at)
        SELECT 'me', 'line', 'sent', '', '', now(), now() FROM generate_series(1, 50000) AS n;
        INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at)
        SELECT 'http', 'ok', now() - make_interval(mins => n), now() FROM generate_series(1, 20000) AS n;
        """
    )
    if analyzed:
        await sql.execute("VACUUM ANALYZE wakebell.jobs, wakebell.messages, wakebell.ticks")

    statement, _ = SQL["read"].driver
    [plan] = json.loads(await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", "{board}"))

    scanned = {node["Relation Name"] for node in nodes(plan["Plan"]) if node["Node Type"] == "Seq Scan"}
    assert scanned <= {"alerts", "sources", "queues"}
    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 150


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]
