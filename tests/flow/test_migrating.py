"""The schema is brought up once, whoever begins: several at once, after one that was killed, with the database away."""

from __future__ import annotations

import asyncio

import pytest

from app.stores.schema import HEAD
from tests.fakes.proxy import Proxy
from tests.flow.service import until
from tests.flow.stage import Stage
from tests.flow.test_schedules import HOURLY, REPORT

VERSIONS = "SELECT version_num FROM wakebell.alembic_version"
THERE = "SELECT to_regclass('wakebell.alembic_version') IS NOT NULL"


@pytest.fixture
async def empty(stage: Stage) -> Stage:
    """Nobody has migrated yet."""
    await stage.sql.execute("DROP SCHEMA wakebell CASCADE")
    return stage


async def versions(stage: Stage) -> list[str]:
    return [row["version_num"] for row in await stage.sql.fetch(VERSIONS)]


async def test_six_that_start_at_once_make_one_schema_and_one_seed(empty: Stage):
    stage = empty
    stage.handler("report", REPORT)
    stage.more = HOURLY
    stage.feeds.add("board", "Old")
    stage.feeds.add("other", "Older", format="json")
    services = await asyncio.gather(*(stage.serve(AUTO_MIGRATE="1") for _ in range(6)))

    first = await asyncio.gather(*(service.tick() for service in services))

    assert sum(summary["sources"]["primed"] for summary in first) == 2
    assert await versions(stage) == [HEAD]
    stage.feeds.feeds["board"].add("Cook")
    await stage.make_due()
    await asyncio.gather(*(service.tick() for service in services))

    assert stage.line.count("Cook", "Old", "Older") == {"Cook": 1, "Old": 0, "Older": 0}
    assert await stage.sql.fetchval("SELECT array_agg(name ORDER BY name) FROM wakebell.sources") == ["board", "other"]
    assert await stage.sql.fetchval("SELECT array_agg(name) FROM wakebell.schedules") == ["hourly"]
    brought_up = [service for service in services if '"schema brought up"' in service.log]
    assert len(brought_up) == 1


async def test_a_killed_one_is_in_nobodys_way(empty: Stage):
    killed = empty.bear("migrate", die_at=3)  # all is written, nothing is committed

    assert await killed.ended() == -9
    assert not await empty.sql.fetchval(THERE)
    assert await empty.bear("tick", AUTO_MIGRATE="on").ended() == 0
    assert await versions(empty) == [HEAD]

    await empty.sql.execute("DROP SCHEMA wakebell CASCADE")
    working = empty.bear("work", AUTO_MIGRATE="yes")
    await until(lambda: empty.sql.fetchval(THERE), told="the worker has brought the schema up")
    working.term()
    assert await working.ended() == 0


async def test_a_database_that_sleeps_at_the_start_is_brought_up_once_it_wakes(empty: Stage):
    async with Proxy(empty.database_url) as way:
        way.close()
        service = await empty.serve(DATABASE_URL=way.url, AUTO_MIGRATE="1")

        answer = await service.ring(budget=1)

        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert (await service.ask("GET", "/readyz")).status_code == 503

        tried = way.connections
        waiting = asyncio.create_task(service.tick())
        await until(lambda: way.connections > tried, told="the tick has tried to connect")
        way.state = "open"
        await waiting

        assert (await service.ask("GET", "/readyz")).status_code == 200
        assert await versions(empty) == [HEAD]


async def test_an_older_schema_is_left_as_it_is_and_a_newer_one_serves(stage: Stage):
    await stage.sql.execute("UPDATE wakebell.alembic_version SET version_num = '0001'")
    stage.feeds.add("board", "Old")
    service = await stage.serve()

    answer = await service.ring()

    assert answer.status_code == 503
    assert "the database's schema is behind; run `wakebell migrate`" in answer.json()["detail"]
    assert (await service.ask("GET", "/readyz")).status_code == 503
    written = "SELECT (SELECT count(*) FROM wakebell.ticks) + (SELECT count(*) FROM wakebell.sources)"
    assert await stage.sql.fetchval(written) == 0

    await stage.sql.execute("UPDATE wakebell.alembic_version SET version_num = '9999'")

    assert (await service.tick())["status"] == "ok"
    assert (await service.ask("GET", "/readyz")).status_code == 200
