from __future__ import annotations

from datetime import timedelta

import asyncpg
import pytest

from app.domain.jobs import DELAYS
from app.stores.database import Database
from app.stores.hosts import Hosts, Waiting, answered_in, refused_in

GAP = timedelta(seconds=5)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def hosts(database: Database) -> Hosts:
    return Hosts(database)


async def answered(database: Database, host: str = "jobs.example", *, answered: bool = True) -> None:
    async with database.transaction() as db:
        await answered_in(db, host, gap=GAP, answered=answered)


async def refused(database: Database, asked: timedelta | None = None, host: str = "jobs.example") -> Waiting:
    async with database.transaction() as db:
        return await refused_in(db, host, asked=asked, usual=DELAYS, reason="answered\x00 429")


async def row(sql: asyncpg.Connection) -> asyncpg.Record:
    return await sql.fetchrow("SELECT *, next_at - now() AS gap, wait_until - now() AS wait FROM wakebell.hosts")


async def test_a_gap_follows_on_each_answer(database: Database, sql: asyncpg.Connection):
    await answered(database)
    await answered(database)

    host = await row(sql)
    assert timedelta(0) < host["gap"] <= GAP
    assert (host["host"], host["wait"], host["refusals"]) == ("jobs.example", None, 0)


async def test_refusals_in_a_row_are_waited_out_for_longer_and_longer(database: Database):
    found = [await refused(database) for _ in range(4)]

    assert [one.refusals for one in found] == [1, 2, 3, 4]
    assert [round(one.wait / MINUTE) for one in found] == [1, 5, 30, 30]


async def test_what_it_asks_for_is_given_and_a_longer_wait_stays(database: Database, sql: asyncpg.Connection):
    assert round((await refused(database, 10 * MINUTE)).wait / MINUTE) == 10
    assert round((await refused(database, 2 * MINUTE)).wait / MINUTE) == 10
    assert (await row(sql))["reason"] == "answered 429"


@pytest.mark.parametrize(("did_answer", "refusals"), [(True, 0), (False, 1)])
async def test_only_an_answer_ends_it(database: Database, sql: asyncpg.Connection, did_answer: bool, refusals: int):  # noqa: FBT001
    await refused(database)

    await answered(database, answered=did_answer)

    host = await row(sql)
    assert (host["refusals"], host["wait"] is None, host["reason"] is None) == (refusals, did_answer, did_answer)


async def test_hosts_that_are_read_no_more_are_forgotten(database: Database, hosts: Hosts, sql: asyncpg.Connection):
    for host in ("old", "older", "waiting", "new"):
        await answered(database, host)
    await sql.execute("UPDATE wakebell.hosts SET next_at = now() - interval '31 days' WHERE host <> 'new'")
    await sql.execute("UPDATE wakebell.hosts SET wait_until = now() + interval '1 hour' WHERE host = 'waiting'")

    assert [await hosts.prune(most=1), await hosts.prune(most=9), await hosts.prune(most=9)] == [1, 1, 0]
    assert [found["host"] for found in await sql.fetch("SELECT host FROM wakebell.hosts ORDER BY 1")] == [
        "new",
        "waiting",
    ]
