"""What a look says of the ticks before it, and of jobs that have waited for long."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import asyncpg
import pytest

from app.stores.database import Database
from app.stores.looks import Looks
from tests.stores.test_looks import ABOUT


async def test_a_tick_sees_those_before_it_and_not_itself(database: Database, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.ticks (trigger, status, started_at) "
        "SELECT 'http', CASE WHEN n > 1 THEN 'ok' END, now() - make_interval(mins => n) FROM generate_series(1, 9) AS n"
    )

    tick, opening = await Looks(database).open(ABOUT, trigger="test")
    closing = await Looks(database).look(ABOUT)

    assert [past.status for past in opening.last_ticks] == [None, "ok", "ok", "ok", "ok", "ok"]
    assert timedelta(seconds=50) < tick.started_at - opening.last_ticks[0].started_at < timedelta(seconds=90)
    assert closing.last_ticks[0].started_at == tick.started_at


async def test_the_first_tick_of_all_sees_none(database: Database):
    _, look = await Looks(database).open(ABOUT, trigger="test")

    assert look.last_ticks == ()


@pytest.mark.parametrize(("minutes", "behind"), [(46, True), (44, False)])
async def test_a_job_that_is_due_for_long_is_seen_in_passing(
    database: Database, sql: asyncpg.Connection, minutes: int, *, behind: bool
):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, run_after) VALUES ('greet', now() - make_interval(mins => $1))", minutes
    )

    looked = await Looks(database).look(dataclasses.replace(ABOUT, overdue=timedelta(minutes=45)))
    unasked = await Looks(database).look(ABOUT)

    assert (looked.behind, looked.judgeable) == (behind, behind)
    assert not unasked.behind
