"""The queue's plans on Debian's PostgreSQL: older than the embedded one, and it compiles what it thinks is dear."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.stores.migrations import migrate
from tests.fakes.debian import PROGRAMS, debian
from tests.stores import test_claim_plan as claims
from tests.stores import test_jobs_plan as keeping
from tests.stores.pages import JIT, LOOK, plans, read

pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="needs Debian's PostgreSQL, of its package postgresql")

COMPILED = ("jit = on", "jit_above_cost = 0", "jit_inline_above_cost = 0", "jit_optimize_above_cost = 0")
"""Everything that may be compiled is."""

ALL = "SELECT sum(priority * 2 + attempts) FROM wakebell.jobs"
EXPIRED = """
UPDATE wakebell.jobs SET status = 'running', started_at = now(), lease_token = 1, lease_until = now() - interval '1 s'
WHERE id IN (SELECT id FROM wakebell.jobs WHERE status = 'pending' AND run_after <= now() ORDER BY id DESC LIMIT 300)
"""
FINISH = "SELECT wakebell.end_job((SELECT min(id) FROM wakebell.jobs WHERE status = 'running'), 1, 'retry', 60, 'no')"
LOOK_PAGES = 1_000

CLAIMING = {"jobs_due_idx", "jobs_running_idx", "jobs_pkey"}
INDEXES = {
    claims.CLAIM_100: CLAIMING,
    claims.CLAIM_1000: CLAIMING,
    claims.CLAIM_ONE: CLAIMING,
    claims.RESCUE: {"jobs_running_idx", "jobs_line_idx", "jobs_head_key", "jobs_pkey"},
    keeping.TURN: CLAIMING,
    FINISH: {"jobs_running_idx", "jobs_pkey"},
}
"""What each statement may use, on any PostgreSQL."""


@pytest.fixture
async def old() -> AsyncIterator[asyncpg.Connection]:
    with debian(jit="on") as url:
        await migrate(url)
        connection = await asyncpg.connect(url)
        yield connection
        await connection.close()


@pytest.mark.timeout(300)
async def test_the_queues_statements_use_their_indexes_and_are_never_compiled(old: asyncpg.Connection):
    assert await claims.faults(old) == []
    assert await look_faults(old) == []

    await old.execute(EXPIRED)
    there = {statement: await plans(old, statement, settings=COMPILED) for statement in INDEXES}

    assert JIT in (await plans(old, ALL, settings=COMPILED)).outside, "this server compiles nothing at all"
    assert {statement: told.compiled for statement, told in there.items() if told.compiled} == {}
    assert {name for statement, told in there.items() for name in told.indexes - INDEXES[statement]} == set()
    assert {statement for statement, told in there.items() if "Seq Scan on jobs" in "".join(told.inside)} == set()


async def look_faults(sql: asyncpg.Connection) -> list[str]:
    """Of the statement that each tick begins with, which is no function: as the server comes, with `jit` on."""
    told = await plans(sql, *LOOK)
    count, scans = await read(sql, *LOOK)
    faults = [plan for plan in (*told.inside, told.outside) if JIT in plan]
    return faults + ([f"{count} pages, {scans} times all"] if count > LOOK_PAGES or scans else [])
