"""`python -m bench.month`: a month in which every tick has news, on a LINE account with 200 messages.

Real ticks on a real database and a stand-in for LINE; what has happened is put back half an hour between two of them. A
proof, not a race: exit status 1 when an item was not told or told twice, or more was spent than there is.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from app import main as service
from app import settings, tick
from app.domain import quota
from app.stores.migrations import migrate
from bench.queues.databases import serving
from tests.fakes.line import TOKEN, Line

if TYPE_CHECKING:
    from app.context import Service

DATABASE = "month"
BUDGET = timedelta(seconds=25)

CONFIGURATION = """
[channels.line]
kind = "line"
token = "{token}"
base_url = "{url}"

[recipients.me]
channel = "line"
to = "U4af4980629"
"""
OWE = """
WITH added AS (INSERT INTO wakebell.items (source, key, title) VALUES ('board', $1, $1) RETURNING id)
INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, 'me', '[]' FROM added
"""
PUT_BACK = """
UPDATE wakebell.owed SET created_at = created_at - CAST($1 AS interval);
UPDATE wakebell.messages SET created_at = created_at - CAST($1 AS interval), sent_at = sent_at - CAST($1 AS interval),
    finished_at = finished_at - CAST($1 AS interval), first_tried_at = first_tried_at - CAST($1 AS interval);
UPDATE wakebell.channels SET quota_tried_at = quota_tried_at - CAST($1 AS interval),
    quota_read_at = quota_read_at - CAST($1 AS interval), low_at = low_at - CAST($1 AS interval),
    low_until = low_until - CAST($1 AS interval), judged_low = judged_low - CAST($1 AS interval);
UPDATE wakebell.jobs SET run_after = run_after - CAST($1 AS interval) WHERE status = 'pending';
"""
LONGEST = """
SELECT max(coalesce(m.created_at, now()) - o.created_at)
FROM wakebell.owed AS o LEFT JOIN wakebell.messages AS m ON m.id = o.message_id
"""


def main() -> None:
    """Print a line for each day, then what the month was."""
    parser = argparse.ArgumentParser(prog="python -m bench.month", description=__doc__)
    parser.add_argument("--allowance", type=int, default=200, help="messages of the month")
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--ticks", type=int, default=48, help="of a day, each with one new item")
    sys.exit(asyncio.run(_run(parser.parse_args())))


async def _run(args: argparse.Namespace) -> int:
    async with serving() as server, Line() as line:
        line.allowance = args.allowance
        await server.create(DATABASE)
        try:
            with tempfile.TemporaryDirectory() as folder:
                ringing = await _service(server.url(DATABASE), Path(folder), line)
                sql = await asyncpg.connect(server.url(DATABASE))
                try:
                    return await _live(ringing, sql, line, args)
                finally:
                    await sql.close()
        finally:
            await server.drop(DATABASE)


async def _service(url: str, folder: Path, line: Line) -> Service:
    await migrate(url)
    (folder / "wakebell.toml").write_text(CONFIGURATION.format(token=TOKEN, url=line.url), encoding="utf-8")
    environ = {
        "DATABASE_URL": url,
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "CRON_SECRET": "nobody-rings-from-outside",
    }
    return service.build(settings.load(environ))


async def _live(ringing: Service, sql: asyncpg.Connection, line: Line, args: argparse.Namespace) -> int:
    month, step = timedelta(days=args.days), timedelta(days=1) / args.ticks
    begins = datetime.now(UTC)
    quota.month_of = lambda now: (begins, begins + month)  # noqa: ARG005 - as the real one is called
    items = [f"item {number}" for number in range(args.days * args.ticks)]
    for number, item in enumerate(items, 1):
        await sql.execute(OWE, item)
        await tick.run(ringing, budget=BUDGET, max_jobs=100, trigger="bench")
        begins -= step
        await _put_back(sql, step)
        if number % args.ticks == 0:
            print(f"day {number // args.ticks}: {line.spent} of {args.allowance} spent")  # noqa: T201
    spent, digests, longest = line.spent, len(line.accepted), await sql.fetchval(LONGEST)
    asked, alerts = line.asked, await sql.fetchval("SELECT count(*) FROM wakebell.alerts")
    line.spent, begins = 0, begins + month  # the first tick of the next month
    await _put_back(sql, timedelta(hours=1))
    await tick.run(ringing, budget=BUDGET, max_jobs=100, trigger="bench")
    return _told(
        line,
        items,
        spent=spent,
        text=f"{digests} digests, {spent} of {args.allowance} messages, longest wait "
        f"{longest}, LINE asked {asked} times, {alerts} alert; the next month's first digest told the rest",
    )


def _told(line: Line, items: list[str], *, spent: int, text: str) -> int:
    times = Counter(line.told.splitlines())
    wrong = [item for item in items if times[item] != 1]
    print(f"{len(items) - len(wrong)} of {len(items)} items told once; {text}")  # noqa: T201
    return 1 if wrong or spent > (line.allowance or 0) else 0


async def _put_back(sql: asyncpg.Connection, step: timedelta) -> None:
    async with sql.transaction():
        for statement in PUT_BACK.split(";")[:-1]:
            await sql.execute(statement, step)


if __name__ == "__main__":
    main()
