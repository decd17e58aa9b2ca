"""The proofs of the whole again, through a transaction pooler that has two connections for everybody.

Afterwards the pooler has logged no complaint, and its connections are as it made them: what one client leaves in one,
the next client finds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.fakes.pooler import NEEDED, PROGRAM, Pooler, pooler
from tests.flow import test_kills as kills
from tests.flow import test_reminders as reminders
from tests.flow import test_telling as telling
from tests.flow.processes import Nursery
from tests.flow.stage import Stage

globals().update(
    (name, test) for proofs in (telling, kills) for name, test in vars(proofs).items() if name.startswith("test_")
)

test_bookings_in_a_table_of_the_users_own_are_told = reminders.test_bookings_in_a_table_of_the_users_own_are_told

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)

SCHEMA = """
SELECT relkind, relname FROM pg_class WHERE relnamespace = CAST('wakebell' AS regnamespace) ORDER BY relkind, relname
"""


@pytest.fixture
async def stage(pooled: Stage, way: Pooler) -> AsyncIterator[Stage]:
    """In place of the one whose processes go straight to the database."""
    yield pooled
    for process in pooled.processes:
        process.clear_away()
    assert clean(await way.left_behind())
    assert way.complaints == []
    assert [line for process in pooled.processes for line in errors(process.log)] == []


async def test_both_connections_are_as_the_pooler_made_them_after_many_ticks_at_once(stage: Stage, way: Pooler):
    stage.feeds.add("rss_jobs", "Old")
    stage.feeds.add("json_jobs", "Older", format="json")
    one, other = await asyncio.gather(stage.serve(), stage.serve())
    before = await way.left_behind()

    for turn in ("Cook", "Driver", "Gardener"):
        stage.feeds.feeds["rss_jobs"].add(turn)
        await stage.make_due()
        await asyncio.gather(*(service.tick() for service in [one, other] * 4))

    after = await way.left_behind()
    # The very connections that the ticks went through, and nothing in them.
    assert {seen["backend"] for seen in after} == {seen["backend"] for seen in before}
    assert clean(after)
    assert stage.line.count("Driver", "Gardener") == {"Driver": 1, "Gardener": 1}


async def test_what_a_client_leaves_in_a_connection_would_be_seen(way: Pooler):
    client = await asyncpg.connect(way.url, statement_cache_size=0)
    await client.execute("SET statement_timeout = '7s'; PREPARE left_behind AS SELECT 1")
    await client.close()

    assert not clean(await way.left_behind())


@pytest.mark.parametrize("through", ["directly", "the pooler"])
@pytest.mark.parametrize("_turn", range(5))
async def test_six_migrations_at_once_make_one_schema(
    tmp_path: Path, empty_database_url: str, database_url: str, nursery: Nursery, through: str, _turn: int
):
    async with pooler(empty_database_url) as way:
        url = empty_database_url if through == "directly" else way.url
        processes = [
            nursery.bear(
                ["migrate", "--json"],
                folder=tmp_path,
                log=tmp_path / f"log-{number}",
                environ={"DATABASE_URL": url},
                die_at=None,
            )
            for number in range(6)
        ]

        assert [await process.ended() for process in processes] == [0] * 6
        assert clean(await way.left_behind())
        assert way.complaints == []

    told = [json.loads(process.log) for process in processes]
    assert sorted(one["before"] is None for one in told) == [False] * 5 + [True]
    assert len({one["after"] for one in told}) == 1
    sql, reference = [await asyncpg.connect(url) for url in (empty_database_url, database_url)]
    try:
        assert await sql.fetch(SCHEMA) == await reference.fetch(SCHEMA)
        assert await sql.fetchval("SELECT count(*) FROM wakebell.alembic_version") == 1
    finally:
        await sql.close()
        await reference.close()


def clean(seen: list[dict[str, object]]) -> bool:
    """Whether both connections were seen, with nothing in either that a client has left."""
    bare = [{"prepared": 0, "advisory_locks": 0, "settings": []}] * 2
    two = len({one["backend"] for one in seen}) == len(bare)
    return two and [{name: value for name, value in one.items() if name != "backend"} for one in seen] == bare


def errors(log: str) -> list[str]:
    return [line for line in log.splitlines() if '"level": "error"' in line.lower() or "Traceback" in line]
