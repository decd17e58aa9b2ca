"""`python -m bench.claims`: what a claim costs in a full table beside an empty one, in pages and in time."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any

import asyncpg

from app.settings import Retention
from app.stores import looks
from app.stores.migrations import migrate
from bench.queues.databases import Server, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FULL = """
INSERT INTO wakebell.jobs (type, queue, status, run_after, attempts, started_at, finished_at)
SELECT 'greet', 'queue' || n % 5, 'done', now() - interval '2 days', 1, now(), now() - interval '1 day'
FROM generate_series(1, {rows}) AS n;
INSERT INTO wakebell.jobs (type, queue, run_after, priority)
SELECT 'greet', 'queue' || n % 5, now() + interval '7 days' + make_interval(secs => n), n % 101
FROM generate_series(1, {rows}) AS n;
INSERT INTO wakebell.jobs (type, serial_key, waiting, run_after)
SELECT 'greet', 'key' || n % 500, n >= 500, CASE WHEN n >= 500 THEN now() ELSE now() + interval '1 day' END
FROM generate_series(0, {rows} / 10 - 1) AS n;
"""
DUE = """
INSERT INTO wakebell.jobs (type, queue, run_after)
SELECT 'greet', 'queue' || n % 5, now() - interval '1 hour' + make_interval(secs => n * 0.001)
FROM generate_series(1, {count}) AS n
"""
NOT_DUE = "DELETE FROM wakebell.jobs WHERE run_after < now() AND status = 'pending' AND NOT waiting"
OLD = """
INSERT INTO wakebell.jobs (type, status, finished_at)
SELECT 'greet', 'done', now() - interval '15 days' + make_interval(secs => n * 0.01)
FROM generate_series(1, {count}) AS n
"""
CLAIM = "SELECT * FROM wakebell.claim_jobs(false, {count}, '{{\"greet\": 60}}', 1, NULL)"
TURN = """
SELECT wakebell.turn_jobs(
    coalesce(CAST(array_agg(j.id) AS text), '{{}}'), coalesce(CAST(array_agg(j.lease_token) AS text), '{{}}'), NULL,
    false, 1000, '{{"greet": 60}}', {token}, NULL
)
FROM wakebell.jobs AS j
WHERE j.status = 'running'
"""
PRUNE = "SELECT wakebell.prune_jobs(14 * 86400, 500)"

ROUNDS = 9

ABOUT = looks.About(
    users=["greet"],
    own=["fetch_source"],
    sources=[],
    recipients=[],
    kept=Retention(),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one statement."""

    pages: int
    ms: float

    def __str__(self) -> str:
        """As it stands in the table."""
        return f"{self.pages:,} pages, {self.ms:.1f} ms"

    def times(self, other: Cost) -> str:
        """How much dearer than another."""
        return f"{self.pages / other.pages:.2f} x, {self.ms / other.ms:.2f} x"


def main() -> None:
    """Exit status 0 also when a goal is missed: what is slow is told, not failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="finished, and as many that are due next week")
    parser.add_argument("--drained", type=int, default=100_000, help="while a snapshot is held, and as many pruned")
    args = parser.parse_args()
    print(asyncio.run(_run(args.rows, args.drained)))  # noqa: T201 - a command prints


async def _run(rows: int, drained: int) -> str:
    async with serving() as server:
        version = await server.connection.fetchval("SHOW server_version")
        told = [
            f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, PostgreSQL {version} with its defaults.",
            await _side_by_side(server, rows),
            await _snapshot(server, drained),
            await _pruning(server, drained),
        ]
        for name in ("claims_empty", "claims_full"):
            await server.drop(name)
    return "\n\n".join(told)


async def _side_by_side(server: Server, rows: int) -> str:
    async with _made(server, "claims_empty") as empty, _made(server, "claims_full") as full:
        await full.execute(FULL.format(rows=rows))
        lines = [f"| | empty | {rows:,} done, {rows:,} next week, {rows // 10:,} in line | |", "|---|---|---|---|"]
        look, names = looks.LOOK.driver
        asked = (look, *(looks._params(ABOUT)[name] for name in names))  # noqa: SLF001

        async def compare(told: str, *statement: Any) -> None:
            there, here = await _costs([empty, full], *statement)
            lines.append(f"| {told} | {there} | {here} | {here.times(there)} |")

        async def each(statement: str) -> None:
            for sql in (empty, full):
                await sql.execute(statement)

        await compare("idle claim, never vacuumed", CLAIM.format(count=100))
        await compare("idle tick's look, never vacuumed", *asked)
        await each(DUE.format(count=2000))
        await compare("claim 100, never vacuumed", CLAIM.format(count=100))
        await compare("claim 1,000, never vacuumed", CLAIM.format(count=1000))
        await each("VACUUM ANALYZE wakebell.jobs")
        await compare("claim 100, vacuumed", CLAIM.format(count=100))
        await compare("claim 1,000, vacuumed", CLAIM.format(count=1000))
        await each(NOT_DUE)
        await each("VACUUM ANALYZE wakebell.jobs")
        await compare("idle claim, vacuumed", CLAIM.format(count=100))
        await compare("idle tick's look, vacuumed", *asked)
        return "\n".join(lines)


async def _snapshot(server: Server, count: int) -> str:
    """The first and the last claim of a drain during which nothing dead may be removed."""
    async with _made(server, "claims_empty") as sql:
        await sql.execute(DUE.format(count=count + 2000))
        await sql.execute("VACUUM ANALYZE wakebell.jobs")
        holding = await asyncpg.connect(server.url("claims_empty"))
        await holding.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM wakebell.queues")
        first = [await _once(sql, CLAIM.format(count=claim)) for claim in (1000, 100)]
        for token in range(1, count // 1000 + 1):
            await sql.fetch(TURN.format(token=token))
        last = [await _once(sql, CLAIM.format(count=claim)) for claim in (1000, 100)]
        await holding.close()
    lines = [f"| {count:,} jobs drained under a held snapshot | first | last | |", "|---|---|---|---|"]
    for claim, one, other in zip(("1,000", "100"), first, last, strict=True):
        lines.append(f"| claim {claim} | {one} | {other} | {other.times(one)} |")
    return "\n".join(lines)


async def _pruning(server: Server, count: int) -> str:
    """Portion by portion, each within a second or refused by the server."""
    async with _made(server, "claims_empty") as sql:
        await sql.execute(OLD.format(count=count))
        await sql.execute("SET statement_timeout = '1s'")
        times, pruned = [], 0
        while pruned < count:
            begun = asyncio.get_running_loop().time()
            portion = await sql.fetchval(PRUNE)
            times.append((asyncio.get_running_loop().time() - begun) * 1000)
            if not portion:
                break
            pruned += portion
    return (
        f"{pruned:,} of {count:,} old rows pruned under a statement time-out of 1 s, in {len(times)} portions: "
        f"{median(times):.1f} ms each, at most {max(times):.1f} ms."
    )


@asynccontextmanager
async def _made(server: Server, name: str) -> AsyncIterator[Any]:
    await server.create(name)
    await migrate(server.url(name))
    connection = await asyncpg.connect(server.url(name))
    try:
        yield connection
    finally:
        await connection.close()


async def _costs(sides: list[Any], statement: str, *arguments: Any) -> list[Cost]:
    """Of each side the median of several, in turn, after one that does not count; what was done is taken back."""
    rounds = [[await _once(sql, statement, *arguments) for sql in sides] for _ in range(ROUNDS + 1)][1:]
    return [
        Cost(int(median(cost.pages for cost in side)), median(cost.ms for cost in side))
        for side in zip(*rounds, strict=True)
    ]


async def _once(sql: Any, statement: str, *arguments: Any) -> Cost:
    transaction = sql.transaction()
    await transaction.start()
    try:
        asked = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}"
        [told] = json.loads(await sql.fetchval(asked, *arguments))
    finally:
        await transaction.rollback()
    plan = told["Plan"]
    return Cost(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], told["Execution Time"])


if __name__ == "__main__":
    main()
