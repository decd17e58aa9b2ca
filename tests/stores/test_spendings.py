from __future__ import annotations

import asyncio

import asyncpg
import pytest

from app.stores.database import Database
from app.stores.spendings import Spendings

YESTERDAY = "UPDATE wakebell.spendings SET spent_on = spent_on - 1"


@pytest.fixture
def spendings(database: Database) -> Spendings:
    return Spendings(database)


async def begin(spendings: Spendings, person: str = "7", *, kind: str = "line", tries: int = 3) -> bool:
    return await spendings.begin(kind, person, most_tries=tries, most_tokens=100)


async def test_a_day_has_so_many_tries_and_each_person_their_own(spendings: Spendings):
    assert [await begin(spendings) for _ in range(5)] == [True, True, True, False, False]
    assert await begin(spendings, "8")
    assert await begin(spendings, kind="telegram")


async def test_tries_at_once_are_no_more(spendings: Spendings):
    begun = await asyncio.gather(*(begin(spendings, tries=7) for _ in range(20)))

    assert begun.count(True) == 7


async def test_a_day_has_so_many_tokens(spendings: Spendings):
    assert await begin(spendings)
    await spendings.charge("line", "7", tokens=99)
    assert await begin(spendings)
    await spendings.charge("line", "7", tokens=1)

    assert not await begin(spendings)


async def test_the_next_day_begins_anew(spendings: Spendings, sql: asyncpg.Connection):
    for _ in range(3):
        await begin(spendings)
    await spendings.charge("line", "7", tokens=1000)
    await sql.execute(YESTERDAY)

    assert [await begin(spendings) for _ in range(4)] == [True, True, True, False]
    assert await sql.fetchval("SELECT tokens FROM wakebell.spendings") == 0


async def test_days_that_are_over_are_forgotten(spendings: Spendings, sql: asyncpg.Connection):
    await begin(spendings)
    await sql.execute(YESTERDAY)
    assert await spendings.prune(most=10) == 0, "it may be today elsewhere still"

    await sql.execute(YESTERDAY)
    assert await spendings.prune(most=10) == 1
    assert await sql.fetchval("SELECT count(*) FROM wakebell.spendings") == 0
