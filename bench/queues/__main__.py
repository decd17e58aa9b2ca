"""`python -m bench.queues`: all contenders in rounds, a table, and which goals are met. `--quick` to try it out."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import time
from datetime import UTC, datetime
from statistics import median

import asyncpg

from bench.queues.databases import Server, serving
from bench.queues.delay import delayed
from bench.queues.environments import ROOT, interpreters
from bench.queues.report import Report
from bench.queues.trials import ADDED, Bench

LAST = ROOT / "bench" / "last.md"


def main() -> None:
    """Exit status 0 also when a goal is missed: what is slow is told, not failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.queues", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 jobs and 2 rounds; bench/last.md is left as it is")
    parser.add_argument("--jobs", type=int, help="instead of 20,000")
    parser.add_argument("--rounds", type=int, help="instead of 5")
    parser.add_argument("--only", default="", help="contenders whose names hold one of these, parted by commas")
    parser.add_argument("--profile", action="store_true", help="also where the time of our drain goes")
    args = parser.parse_args()
    jobs = args.jobs or (2_000 if args.quick else 20_000)
    rounds = args.rounds or (2 if args.quick else 5)
    told = asyncio.run(_run(jobs, rounds, only=args.only, profile=args.profile))
    print(f"\n{told}")  # noqa: T201 - a command prints
    if not args.quick and not args.only:
        LAST.write_text(told, encoding="utf-8")


async def _run(jobs: int, rounds: int, *, only: str, profile: bool) -> str:
    commands = interpreters()
    async with serving() as server:
        bench = Bench(server=server, commands=commands, count=jobs)
        near, far = await _round_trips(server)
        report = Report(await bench.run(rounds, only=only))
        where = profile or (not only and report.missed_drain())
        about = await _about(server, jobs, rounds, commands["service"][0])
        about += f" A round trip takes {near:.1f} ms by socket, and {far:.1f} ms to the far server."
        return report.text(about, await bench.profile() if where else "")


async def _about(server: Server, jobs: int, rounds: int, python: str) -> str:
    asking = await asyncio.create_subprocess_exec(python, "--version", stdout=asyncio.subprocess.PIPE)
    version = (await asking.communicate())[0].decode().strip()
    postgres = await server.connection.fetchval("SHOW server_version")
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {jobs:,} no-op jobs, {rounds} interleaved rounds, medians (least-most); "
        f"PostgreSQL {postgres} with its defaults, {version}, {os.cpu_count()} cores ({platform.machine()}). "
        "x is the ratio to Wakebell's one tick."
    )


async def _round_trips(server: Server) -> tuple[float, float]:
    """Milliseconds of one, right there and through the delay: what was added in truth."""
    async with delayed(server.socket, each_way=ADDED / 2) as far:
        return await _round_trip(server.url("postgres")), await _round_trip(server.url("postgres", port=far))


async def _round_trip(url: str) -> float:
    connection = await asyncpg.connect(url)
    taken = []
    for _ in range(50):
        started = time.perf_counter()
        await connection.fetchval("SELECT 1")
        taken.append((time.perf_counter() - started) * 1000)
    await connection.close()
    return median(taken)


if __name__ == "__main__":
    main()
