"""What reminders read in a database with a hundred thousand bookings: pages, which are the same on every machine."""

from __future__ import annotations

from datetime import timedelta

import asyncpg
import pytest

from app.domain.bookings import Rule
from app.stores import reminders
from app.stores.database import Database
from tests.stores.pages import LOOK, read

MANY = """
INSERT INTO wakebell.bookings (ref, title, starts_at, timezone, recipient, next_at)
SELECT 'b-' || n, 'title', now() + make_interval(mins => n), 'UTC', 'me',
       CASE WHEN n > 1440 THEN now() + make_interval(mins => n - 1440) END
FROM generate_series(1, 100000) AS n;
UPDATE wakebell.bookings SET next_at = now() - interval '1 minute' WHERE id <= 50;
INSERT INTO wakebell.reminders (booking, reminder, starts_at, message_id)
SELECT ref, 'day_before', starts_at, id FROM wakebell.bookings WHERE id > 50;
INSERT INTO wakebell.messages (recipient, channel, kind, status, body, text, expires_at, finished_at)
SELECT 'me', 'line', 'reminder', CASE WHEN n > 20000 THEN 'queued' ELSE 'sent' END, '', '', now() + interval '1 day',
       CASE WHEN n <= 20000 THEN now() END
FROM generate_series(1, 20010) AS n;
"""
RULES = [Rule(name="day_before", before=timedelta(hours=24))]
LOOK_PAGES = 300


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_tick_finds_the_fifty_that_are_due_by_an_index(
    database: Database, sql: asyncpg.Connection, *, analyzed: bool
):
    await sql.execute(MANY)
    if analyzed:
        await sql.execute("ANALYZE")
    due, _ = reminders.SQL["due"].driver

    pages, scans = await read(sql, due, 1000)
    look_pages, look_scans = await read(sql, *LOOK)
    planned = await reminders.Reminders(database).plan(RULES)

    assert (pages < 500, scans) == (True, 0), pages
    assert (look_pages < LOOK_PAGES, look_scans) == (True, 0), look_pages
    assert planned == (50, False)


async def test_moving_on_and_queueing_read_no_whole_table(sql: asyncpg.Connection):
    await sql.execute(MANY)
    moved = "[" + ",".join(f'{{"id": {n}, "next_at": null}}' for n in range(1, 51)) + "]"
    asked = (
        "["
        + ",".join(
            f'{{"origin": "", "booking": "b-{n}", "starts_at": "2036-01-01T00:00:00Z", "reminder": "day_before"}}'
            for n in range(1, 51)
        )
        + "]"
    )

    for name, given in (("move_on", moved), ("queue", asked)):
        statement, _ = reminders.SQL[name].driver
        pages, scans = await read(sql, statement, given)

        assert (pages < 3000, scans) == (True, 0), (name, pages)
