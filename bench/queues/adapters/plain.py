"""What both hand-written loops share: the least that a queue can be. No retries, no rescue, no hooks, no logs."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from bench.queues import counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

BATCH = 1_000

SCHEMA = """
CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type text NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'pending',
    run_after timestamptz NOT NULL DEFAULT now(),
    rank timestamptz NOT NULL DEFAULT now(),
    attempts int NOT NULL DEFAULT 0,
    lease_until timestamptz,
    lease_token bigint,
    finished_at timestamptz
) WITH (fillfactor = 85);
CREATE INDEX jobs_due ON jobs (rank, id) WHERE status = 'pending';
"""

PUT = "INSERT INTO jobs (type, payload) SELECT 'noop', p::jsonb FROM unnest($1::text[]) AS p"

CLAIM = """
UPDATE jobs SET status = 'running', attempts = attempts + 1, lease_token = 1,
    lease_until = now() + interval '60 seconds'
WHERE id = ANY (ARRAY(
    SELECT id FROM jobs
    WHERE status = 'pending' AND rank <= now() AND run_after <= now()
    ORDER BY rank, id LIMIT 1000
    FOR UPDATE SKIP LOCKED
))
RETURNING id, CAST(payload AS text) AS payload
"""

FINISH = """
UPDATE jobs SET status = 'done', finished_at = now(), lease_until = NULL, lease_token = NULL
WHERE id = ANY (CAST(CAST({ids} AS text) AS bigint[])) AND status = 'running' AND lease_token = 1
"""


async def prepare(url: str) -> None:
    """One table, one index."""
    async with connected(url) as connection:
        await connection.execute(SCHEMA)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """One connection."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def put_over(connection: Any, count: int) -> None:
    """One statement for each thousand."""
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        await connection.execute(PUT, [json.dumps({"n": n}) for n in numbers])


async def handled(claimed: Iterable[Any]) -> str:
    """Run them; their ids as the text of an array."""
    ids = []
    for row in claimed:
        await _handle(json.loads(row.payload if hasattr(row, "payload") else row["payload"]))
        ids.append(str(row.id if hasattr(row, "id") else row["id"]))
    return "{" + ",".join(ids) + "}"


async def _handle(payload: dict[str, int]) -> None:  # noqa: ARG001 - a no-op
    counter.count()
