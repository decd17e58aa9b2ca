"""The databases that tests are given."""

from __future__ import annotations

import asyncpg
import pytest

TABLES = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'wakebell'"


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_has_a_migrated_database_of_its_own(turn: int, database_url: str):
    connection = await asyncpg.connect(database_url)
    try:
        assert await connection.fetchval(TABLES) > 1
        await connection.execute("CREATE TABLE public.mine ()")  # fails where another test has been
    finally:
        await connection.close()


async def test_an_empty_database_has_nothing_of_ours(empty_database_url: str):
    connection = await asyncpg.connect(empty_database_url)
    try:
        assert await connection.fetchval(TABLES) == 0
    finally:
        await connection.close()


async def test_a_test_may_have_both(database_url: str, empty_database_url: str):
    assert database_url != empty_database_url
