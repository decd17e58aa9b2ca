from __future__ import annotations

import json

import asyncpg
import pytest

from app.stores.database import Database
from app.stores.history import History


@pytest.fixture
def history(database: Database) -> History:
    return History(database)


async def test_ticks_are_counted_by_the_hour_they_began_in(history: History, sql: asyncpg.Connection):
    summary = {
        "duration_ms": 1840,
        "sources": {"new_items": 4, "failed": 1},
        "messages": {"sent": 2},
        "jobs": {"failed": 3},
    }
    await sql.execute(
        """
        INSERT INTO wakebell.ticks (trigger, status, started_at, summary)
        SELECT 'http', s.status, date_trunc('hour', now()) - s.ago, s.summary
        FROM (VALUES ('ok', interval '1 h', $1::jsonb), ('failed', interval '30 min', '{}'),
                     (NULL, interval '10 min', NULL),
                     ('ok', interval '90 h', $1::jsonb)) AS s (status, ago, summary)
        """,
        json.dumps(summary),
    )

    [hour] = await history.hours(hours=72)

    assert (hour.ticks, hour.longest_ms, hour.items, hour.sent, hour.failures) == (3, 1840, 4, 2, 5)
    assert hour.began_at.minute == hour.began_at.second == 0


async def test_the_latest_ticks_are_told_whole_also_those_that_never_ended(history: History, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at, summary) VALUES "
        "('cli', 'ok', now() - interval '1 h', now(), '{\"tick\": 1}'), ('http', NULL, now(), NULL, NULL)"
    )

    killed, ended = await history.ticks(most=5)

    assert (killed.status, killed.summary, killed.finished_at) == (None, {}, None)
    assert (ended.trigger, ended.summary) == ("cli", {"tick": 1})
    assert len(await history.ticks(most=1)) == 1


async def test_rounds_are_told_by_source_oldest_first(history: History, sql: asyncpg.Connection):
    await sql.execute(
        """
        INSERT INTO wakebell.jobs (type, queue, status, unique_key, result, finished_at) VALUES
            ('fetch_source', 'wakebell.fetch', 'done', 'gigs', '{"items": 9, "new": 9}', now() - interval '3 h'),
            ('fetch_source', 'wakebell.fetch', 'cancelled', 'gigs', NULL, now() - interval '2 h'),
            ('fetch_source', 'wakebell.fetch', 'done', 'gigs', '{"unchanged": true}', now() - interval '1 h'),
            ('fetch_source', 'wakebell.fetch', 'done', 'board', '{"items": 2, "new": 1}', now());
        INSERT INTO wakebell.jobs (type, queue, unique_key) VALUES ('fetch_source', 'wakebell.fetch', 'gigs');
        INSERT INTO wakebell.jobs (type, queue, status, unique_key, result, finished_at)
            VALUES ('fetch_source', 'default', 'done', 'gigs', '{"new": 7}', now());
        """
    )

    rounds = await history.rounds()

    assert [(past.new, past.failed) for past in rounds["gigs"]] == [(9, False), (0, True), (0, False)]
    assert [past.new for past in rounds["board"]] == [1]


async def test_of_channels_those_that_are_asked_for_are_told(history: History, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.channels "
        "(name, quota_limit, quota_used, quota_read_at, parked_at, parked_until, parked_reason) VALUES "
        "('line', 200, 150, now(), now(), now() + interval '1 h', 'the month is spent'), "
        "('other', 1, 1, now(), NULL, NULL, NULL)"
    )

    [line] = await history.channels(["line", "none"])

    assert (line.name, line.quota_used, line.quota_limit, line.parked, line.low) == ("line", 150, 200, True, False)
