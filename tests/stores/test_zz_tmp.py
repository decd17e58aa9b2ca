"""What a tick's look reads in a database that has been in use: it is no function, and plans as the server likes."""

from __future__ import annotations

import asyncpg
import pytest

from tests.stores.pages import LOOK, read

YOUNG = """
INSERT INTO wakebell.jobs (type, queue, status, attempts, started_at, finished_at)
SELECT 'greet', 'queue' || n % 5, 'done', 1, now(), now() - interval '1 day' FROM generate_series(1, 20000) AS n;
INSERT INTO wakebell.jobs (type, queue, run_after)
SELECT 'greet', 'queue' || n % 5, now() + make_interval(days => 7, secs => n) FROM generate_series(1, 20000) AS n;
INSERT INTO wakebell.messages (recipient, channel, status, body, text, sent_at, finished_at)
SELECT 'me', 'line', 'sent', '', '', now(), now() FROM generate_series(1, 20000) AS n;
INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at)
SELECT 'http', 'ok', now() - make_interval(mins => n), now() FROM generate_series(1, 20000) AS n;
INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, last_round_at)
VALUES ('board', 'f', 60, now() + interval '1 hour', now());
INSERT INTO wakebell.items (source, key, title) SELECT 'board', n, '' FROM generate_series(1, 20000) AS n;
INSERT INTO wakebell.owed (item_id, recipient, subscriptions, message_id)
SELECT id, 'me', '[]', (SELECT min(id) FROM wakebell.messages) FROM wakebell.items;
"""
OLD = """
UPDATE wakebell.jobs SET finished_at = now() - interval '99 days' WHERE finished_at IS NOT NULL;
UPDATE wakebell.messages SET finished_at = now() - interval '99 days';
UPDATE wakebell.ticks SET started_at = now() - interval '99 days';
"""
MOST = 1_000
"""Pages, of which the next hundred jobs of each of five queues are nearly all."""


@pytest.mark.parametrize("known", ["never analyzed", "analyzed", "analyzed when all of it was old"])
async def test_it_reads_few_pages_and_never_a_whole_table(known: str, sql: asyncpg.Connection):
    if known == "analyzed when all of it was old":
        await sql.execute(YOUNG)
        await sql.execute(OLD)
        await sql.execute("ANALYZE")
        await sql.execute("TRUNCATE wakebell.jobs, wakebell.messages, wakebell.ticks, wakebell.items CASCADE")
        await sql.execute("DELETE FROM wakebell.sources")
    await sql.execute(YOUNG)
    if known == "analyzed":
        await sql.execute("VACUUM ANALYZE")

    count, scans = await read(sql, *LOOK)
    for r in await sql.fetch('EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, COSTS OFF) '+LOOK[0], *LOOK[1:]):
        print('PLAN', r[0]) if True else None
    print('SC', known, [tuple(r) for r in await sql.fetch("select relname, seq_scan from pg_stat_user_tables where seq_scan>0 and schemaname='wakebell'")])

    assert (count < MOST, scans) == (True, 0), count
