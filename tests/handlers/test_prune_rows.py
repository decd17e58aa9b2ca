from __future__ import annotations

import asyncpg

from app.context import Context
from app.handlers import prune_rows
from app.plans import housekeeping as plan
from tests.fakes.batches import seen
from tests.handlers.conftest import Run

OLD_TICKS = (
    "INSERT INTO wakebell.ticks (trigger, started_at) SELECT 'old', now() - interval '31 days' "
    "FROM generate_series(1, $1)"
)


async def test_rows_past_their_time_go(ctx: Context, sql: asyncpg.Connection, run: Run):
    await sql.execute(OLD_TICKS, 3)
    await sql.execute("INSERT INTO wakebell.ticks (trigger) VALUES ('young')")
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, status, finished_at) VALUES ('a', 'done', now() - interval '15 days')"
    )
    await plan.plan(ctx, await seen(ctx))

    row = await run("prune_rows")

    assert (row["status"], row["result"]) == ("done", "4")
    assert ctx.tally["pruned"] == 4
    assert [found[0] for found in await sql.fetch("SELECT trigger FROM wakebell.ticks")] == ["young"]


async def test_more_than_a_portion_is_left_to_a_later_tick(ctx: Context, sql: asyncpg.Connection, run: Run):
    await sql.execute(OLD_TICKS, prune_rows.MOST + 1)
    await plan.plan(ctx, await seen(ctx))

    assert (await run("prune_rows"))["status"] == "pending"
    assert (await run("prune_rows"))["status"] == "done"
    assert ctx.tally["pruned"] == prune_rows.MOST + 1
