"""Every page on a database that is full: how long each takes beside an empty one, and what is read for it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import asyncpg

from app.stores import listings
from app.stores.history import MOST_ROUNDS, MOST_TICKS, SQL
from tests.pages.visits import logged_in, page_service

SOURCES = "".join(f'\n[sources.source{n}]\nkind = "feed"\nurl = "https://s{n}.example/feed.xml"\n' for n in range(20))

PATHS = (
    *("/", "/sources", "/queues", "/schedules", "/bookings"),
    *("/jobs", "/jobs?status=failed&type=mail", "/jobs?own=true&before=500000", "/jobs?queue=queue7"),
    *("/messages", "/messages?status=failed", "/messages?recipient=me&channel=line&before=20000"),
)

FILLED = """
INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at)
SELECT (ARRAY['me', 'inbox', 'shop'])[1 + n % 3], 'line', CASE n % 50 WHEN 0 THEN 'failed' ELSE 'sent' END,
       '', 'told', now()
FROM generate_series(1, 50000) AS n;
INSERT INTO wakebell.jobs (type, queue, status, unique_key, result, finished_at)
SELECT 'fetch_source', 'wakebell.fetch', CASE n % 9 WHEN 0 THEN 'cancelled' ELSE 'done' END, 'source' || n % 20,
       '{"items": 20, "new": 1}', now()
FROM generate_series(1, 20000) AS n;
INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at, summary)
SELECT 'http', 'ok', now() - make_interval(mins => n), now(), '{"duration_ms": 7, "sources": {"new_items": 1}}'
FROM generate_series(1, 20000) AS n;
INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at)
SELECT 'source' || n, 'f', 60, now() FROM generate_series(0, 19) AS n;
ANALYZE wakebell.ticks;
"""

BIG = ("jobs", "items", "messages")


class Pages:
    """The pages of one database, visited whenever one likes."""

    def __init__(self, folder: Path, url: str, sql: asyncpg.Connection) -> None:
        self.times: dict[str, list[int]] = {}
        """Milliseconds of each visit, by path."""

        self._service = page_service(folder, url, more=SOURCES)
        self._sql = sql
        self._scans: dict[str, int] = {}

    async def fill(self) -> None:
        """What the tests of the numbers do not fill. Whole scans are counted from here on."""
        await self._sql.execute(FILLED)
        await self._sql.execute("SELECT pg_stat_force_next_flush()")
        self._scans = await self._seen()

    async def visit(self) -> None:
        async with logged_in(self._service) as client:
            for path in PATHS:
                began = time.monotonic()
                answer = await client.get(path)
                self.times.setdefault(path, []).append(round(1000 * (time.monotonic() - began)))
                assert answer.status_code == 200, answer.text

    async def scanned(self) -> set[str]:
        """Big tables that a page has read whole: each page's connection is closed, and so its counts are in."""
        seen = await self._seen()
        return {name for name in BIG if seen[name] > self._scans[name]}

    async def _seen(self) -> dict[str, int]:
        await self._sql.execute("SELECT pg_stat_clear_snapshot()")
        rows = await self._sql.fetch("SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'wakebell'")
        return {row["relname"]: row["seq_scan"] for row in rows}

    async def plans(self) -> dict[str, set[str]]:
        """The indexes that each statement of the pages' own reads, where its table is big."""
        given = {"most": MOST_ROUNDS, "hours": 72}
        return {
            name: await self._plan(name, given | ({"most": MOST_TICKS} if name == "hours" else {}))
            for name in ("rounds", "hours", "ticks")
        }

    async def _plan(self, name: str, given: dict[str, Any]) -> set[str]:
        compiled, names = SQL[name].driver
        params = [given[name] for name in names]
        async with self._sql.transaction():
            if name == "rounds":
                await self._sql.execute(str(listings.BY_INDEX))
            found = await self._sql.fetchval(f"EXPLAIN (FORMAT JSON) {compiled}", *params)
        assert "Seq Scan" not in found, found
        return set(re.findall(r'"Index Name": "(\w+)"', json.dumps(json.loads(found))))
