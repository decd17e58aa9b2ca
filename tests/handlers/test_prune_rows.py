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
OLD_JOBS = (
    "INSERT INTO wakebell.jobs (type, status, finished_at) SELECT 'a', 'done', now() - interval '15 days' "
    "FROM generate_series(1, $1)"
)
SHORT_TIME_OUT = """
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 1000', current_database()); END $$
"""


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


async def test_events_go_when_no_provider_repeats_them_any_more(ctx: Context, sql: asyncpg.Connection, run: Run):
    await sql.execute(
        "INSERT INTO wakebell.events (door, event_id, aged_from) VALUES "
        "('hooks.shop', 'old', now() - interval '15 days'), ('hooks.shop', 'young', now() - interval '13 days')"
    )
    await plan.plan(ctx, await seen(ctx))

    await run("prune_rows")

    assert [found[0] for found in await sql.fetch("SELECT event_id FROM wakebell.events")] == ["young"]
    assert not (await seen(ctx)).prunable


async def test_more_than_a_portion_is_left_to_a_later_tick(ctx: Context, sql: asyncpg.Connection, run: Run):
    await sql.execute(OLD_TICKS, prune_rows.MOST + 1)
    await plan.plan(ctx, await seen(ctx))

    assert (await run("prune_rows"))["status"] == "pending"
    assert (await run("prune_rows"))["status"] == "done"
    assert ctx.tally["pruned"] == prune_rows.MOST + 1


async def test_every_portion_of_a_long_history_goes_within_a_short_time_out(
    ctx: Context, sql: asyncpg.Connection, run: Run
):
    await sql.execute(OLD_JOBS, 5 * prune_rows.MOST)
    await sql.execute(SHORT_TIME_OUT)
    await plan.plan(ctx, await seen(ctx))

    left = []
    for _ in range(6):
        row = await run("prune_rows")
        left.append((row["status"], await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'a'")))

    assert left == [*(("pending", portions * prune_rows.MOST) for portions in range(4, -1, -1)), ("done", 0)]
