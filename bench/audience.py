"""`python -m bench.audience`: one item, a thousand recipients on LINE, one of whom is refused and one never answered.

A proof, not a race: exit status 1 when somebody was told twice, one who can be reached was not, or a tick ended late.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg

from app import main as service
from app import settings, tick
from app.domain.limits import GRACE
from app.stores.migrations import migrate
from bench.queues.databases import serving
from tests.fakes.line import TOKEN, Line

if TYPE_CHECKING:
    from app.context import Service

DATABASE = "audience"
MOST_TICKS = 10

CHANNEL = '[channels.line]\nkind = "line"\ntoken = "{token}"\nbase_url = "{url}"\n'
RECIPIENT = '[recipients.r{number}]\nchannel = "line"\nto = "{to}"\n'
OWE = """
WITH added AS (INSERT INTO wakebell.items (source, key, title) VALUES ('board', 'a', 'Driver') RETURNING id)
INSERT INTO wakebell.owed (item_id, recipient, subscriptions)
SELECT added.id, 'r' || number, '[]' FROM added CROSS JOIN generate_series(1, $1) AS number ORDER BY number
"""


def main() -> None:
    """Print each tick, then who was told."""
    parser = argparse.ArgumentParser(prog="python -m bench.audience", description=__doc__)
    parser.add_argument("--recipients", type=int, default=1000)
    parser.add_argument("--budget", type=float, default=25.0, help="seconds of each tick")
    parser.add_argument("--replicas", type=int, default=1, help="ticks at once")
    sys.exit(asyncio.run(_run(parser.parse_args())))


async def _run(args: argparse.Namespace) -> int:
    async with serving() as server, Line() as line:
        line.always = {_to(1): "nobody", _to(2): "hang"}
        await server.create(DATABASE)
        try:
            with tempfile.TemporaryDirectory() as folder:
                replicas = await _replicas(server.url(DATABASE), Path(folder), line, args)
                return await _ring(replicas, line, args)
        finally:
            await server.drop(DATABASE)


async def _replicas(url: str, folder: Path, line: Line, args: argparse.Namespace) -> list[Service]:
    await migrate(url)
    recipients = "".join(RECIPIENT.format(number=n, to=_to(n)) for n in range(1, args.recipients + 1))
    (folder / "wakebell.toml").write_text(CHANNEL.format(token=TOKEN, url=line.url) + recipients, encoding="utf-8")
    environ = {
        "DATABASE_URL": url,
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "CRON_SECRET": "nobody-rings-from-outside",
    }
    sql = await asyncpg.connect(url)
    try:
        await sql.execute(OWE, args.recipients)
    finally:
        await sql.close()
    return [service.build(settings.load(environ)) for _ in range(args.replicas)]


async def _ring(replicas: list[Service], line: Line, args: argparse.Namespace) -> int:
    late, budget, reachable = 0, timedelta(seconds=args.budget), args.recipients - 2
    for number in range(1, MOST_TICKS + 1):
        begun = time.monotonic()
        summaries: list[dict[str, Any]] = await asyncio.gather(
            *(tick.run(replica, budget=budget, max_jobs=100, trigger="bench") for replica in replicas)
        )
        seconds = time.monotonic() - begun
        late += seconds > (budget + GRACE).total_seconds()
        now = sum(summary["messages"]["sent"] for summary in summaries)
        composed = sum(summary["messages"]["composed"] for summary in summaries)
        print(f"tick {number}: {composed} composed and {now} sent in {seconds:.1f} s")  # noqa: T201
        if len(line.accepted) >= reachable:
            break
    times = Counter(push.to for push in line.accepted.values())
    tries = Counter(push.to for push in line.tries)
    print(  # noqa: T201
        f"{len(times)} of {reachable} told, at most {max(times.values())} times each; "
        f"who is not there was tried {tries[_to(1)]} times, who never answers {tries[_to(2)]} times"
    )
    return 0 if len(times) == reachable and max(times.values()) == 1 and not late else 1


def _to(number: int) -> str:
    return f"U{number:032x}"


if __name__ == "__main__":
    main()
