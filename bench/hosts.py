"""`python -m bench.hosts`: 200 sources on 20 hosts that take 2 seconds each are due at once, and two replicas ring.

A proof, not a race: exit status 1 when a host was asked twice at once, a source was read twice, or a tick ended late.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import main as service
from app import settings, tick
from app.domain.limits import GRACE
from app.stores.migrations import migrate
from bench.queues.databases import serving
from tests.fakes.hosts import Hosts

if TYPE_CHECKING:
    from app.context import Service

DATABASE = "hosts"

MOST_TICKS = 20


def main() -> None:
    """Print each tick, then what the hosts have seen."""
    parser = argparse.ArgumentParser(prog="python -m bench.hosts", description=__doc__)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--each", type=int, default=10, help="sources of each host")
    parser.add_argument("--answer", type=float, default=2.0, help="seconds that each answer takes")
    parser.add_argument("--budget", type=float, default=25.0, help="seconds of each tick")
    parser.add_argument("--replicas", type=int, default=1, help="ticks at once")
    sys.exit(asyncio.run(_run(parser.parse_args())))


async def _run(args: argparse.Namespace) -> int:
    async with serving() as server, Hosts(args.hosts, answer_seconds=args.answer) as hosts:
        await server.create(DATABASE)
        try:
            with tempfile.TemporaryDirectory() as folder:
                replicas = await _replicas(server.url(DATABASE), Path(folder), hosts, args)
                return await _ring(replicas, hosts, args)
        finally:
            await server.drop(DATABASE)


async def _replicas(url: str, folder: Path, hosts: Hosts, args: argparse.Namespace) -> list[Service]:
    await migrate(url)
    (folder / "wakebell.toml").write_text(hosts.sources(args.each), encoding="utf-8")
    environ = {
        "DATABASE_URL": url,
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "CRON_SECRET": "nobody-rings-from-outside",
    }
    return [service.build(settings.load(environ)) for _ in range(args.replicas)]


async def _ring(replicas: list[Service], hosts: Hosts, args: argparse.Namespace) -> int:
    late, fetched, budget = 0, 0, timedelta(seconds=args.budget)
    for number in range(1, MOST_TICKS + 1):
        begun = time.monotonic()
        summaries: list[dict[str, Any]] = await asyncio.gather(
            *(tick.run(replica, budget=budget, max_jobs=100, trigger="bench") for replica in replicas)
        )
        seconds = time.monotonic() - begun
        late += seconds > (budget + GRACE).total_seconds()
        now = sum(summary["sources"]["fetched"] for summary in summaries)
        fetched += now
        left = max(summary["jobs"]["remaining"] for summary in summaries)
        print(f"tick {number}: {now} fetched in {seconds:.1f} s, {left} startable after it")  # noqa: T201
        if fetched == args.hosts * args.each:
            break
    print(  # noqa: T201
        f"{fetched} of {args.hosts * args.each} fetched, at most {max(hosts.fetched)} times each; "
        f"at once: {hosts.everywhere.most} in all, {hosts.most_at_one} of one host; least gap {hosts.least_gap:.2f} s"
    )
    once = hosts.fetched == [1] * (args.hosts * args.each)
    return 0 if once and hosts.most_at_one == 1 and not late else 1


if __name__ == "__main__":
    main()
