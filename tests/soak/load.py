"""What a soak puts in, and how one sees afterwards what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import asyncpg

STAGE = """
CREATE TABLE public.effects (
    seq bigint GENERATED ALWAYS AS IDENTITY,    -- the order in which they were written
    job bigint NOT NULL,
    type text NOT NULL
);
CREATE INDEX ON public.effects (job);
CREATE UNIQUE INDEX ON public.effects (job) WHERE type = 'repeated';
"""

PORTION = 200

WRONG = {
    "not done": "SELECT id FROM wakebell.jobs WHERE type IN ('exact', 'repeated') AND status <> 'done'",
    "done without an effect": """
        SELECT id FROM wakebell.jobs AS j
        WHERE j.status = 'done' AND j.type IN ('exact', 'repeated')
          AND NOT EXISTS (SELECT FROM public.effects AS e WHERE e.job = j.id)
    """,
    "with more than one effect": "SELECT job FROM public.effects GROUP BY job HAVING count(*) > 1",
    "an effect of no job": """
        SELECT job FROM public.effects AS e WHERE NOT EXISTS (SELECT FROM wakebell.jobs AS j WHERE j.id = e.job)
    """,
    "before one that was put in earlier with its serial key": """
        SELECT job FROM (
            SELECT e.job, e.job < lag(e.job) OVER (PARTITION BY j.serial_key ORDER BY e.seq) AS early
            FROM public.effects AS e
            JOIN wakebell.jobs AS j ON j.id = e.job
            WHERE j.serial_key IS NOT NULL
        ) AS ordered
        WHERE early
    """,
}
"""Each finds the jobs of which it is true, and should find none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of it."""

    jobs: int

    serial: int
    """Of the jobs: how many have a serial key."""

    keys: int
    processes: int

    kill_every: float
    """Seconds from one SIGKILL to the next."""

    lease: float | None = None
    """Seconds after which leases end, as if they had been given for so long; None: as they were given."""

    overdue: float = 5.0
    """Seconds that a job may stay `running` past its lease: until the next tick begins, and all of them are at work."""


def jobs(size: Size) -> Iterator[dict[str, Any]]:
    """Serial ones spread among the others, their keys in turn. Every fourth ends in a batch, some fail once."""
    serial = 0
    for number in range(size.jobs):
        job: dict[str, Any] = {
            "type": "exact" if number % 4 else "repeated",
            "queue": f"queue{number % 3}",
            "payload": {"fails": number % 97 == 0},
        }
        if (number + 1) * size.serial // size.jobs > serial:
            job["serial_key"] = f"key{serial % size.keys}"
            serial += 1
        yield job


async def put_in(sql: asyncpg.Connection, source: Iterator[dict[str, Any]], count: int) -> None:
    """The next so many, in portions, each a transaction."""
    while count > 0 and (portion := list(islice(source, min(count, PORTION)))):
        await sql.fetch("SELECT wakebell.enqueue_many(CAST($1 AS jsonb))", json.dumps(portion))
        count -= len(portion)


async def wrongs(sql: asyncpg.Connection) -> list[str]:
    """What is not as it must be, one sentence each."""
    found = {told: [row[0] for row in await sql.fetch(statement)] for told, statement in WRONG.items()}
    return [f"{len(ids)} {told}: {ids[:5]}" for told, ids in found.items() if ids]
