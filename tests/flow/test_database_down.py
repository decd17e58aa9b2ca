"""A database that sleeps, dies or says nothing: the scheduler is asked to ring again, and nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.proxy import Proxy
from tests.flow.stage import Stage


@pytest.fixture
async def way(stage: Stage) -> AsyncIterator[Proxy]:
    """The service's way to the database."""
    async with Proxy(stage.database_url) as proxy:
        yield proxy


async def test_a_database_that_is_down_is_answered_503_and_the_next_tick_goes_on(stage: Stage, way: Proxy):
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve(DATABASE_URL=way.url)
    await service.tick()
    stage.feeds.feeds["jobs"].add("Driver")
    await stage.make_due()
    way.close()

    answer = await service.ring(budget=3)

    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["content-type"] == "application/problem+json"
    assert stage.line.tries == []

    way.state = "open"
    await service.tick()

    assert stage.line.count("Driver") == {"Driver": 1}


async def test_a_database_that_says_nothing_is_answered_503_within_the_budget(stage: Stage, way: Proxy):
    service = await stage.serve(DATABASE_URL=way.url)
    way.state = "silent"

    answer = await service.ring(budget=1)

    assert answer.status_code == 503
    assert answer.elapsed.total_seconds() < 6  # the budget and five seconds more
    assert int(answer.headers["retry-after"]) > 0


async def test_a_database_that_dies_in_the_middle_of_a_tick_loses_nothing(stage: Stage, way: Proxy):
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve(DATABASE_URL=way.url)
    await service.tick()
    stage.feeds.feeds["jobs"].add("Driver")
    await stage.make_due()
    stage.line.when_stored = lambda _: way.close()

    answer = await service.ring(budget=3)

    assert answer.status_code == 503
    assert stage.line.count("Driver") == {"Driver": 1}

    way.state = "open"
    stage.line.when_stored = lambda _: None
    await stage.end_leases()
    await stage.make_due()
    summary = await service.tick()

    assert summary["messages"]["sent"] == 1
    assert stage.line.count("Driver") == {"Driver": 1}
    stage.line.assert_keys_frozen()


async def test_killed_backends_between_two_ticks_are_not_noticed(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve()

    for _ in range(2):
        await service.tick()
        await stage.sql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'wakebell' AND datname = current_database()"
        )

    assert (await service.tick())["status"] == "ok"


async def test_backends_killed_amid_a_tick_lose_nothing(stage: Stage):
    stage.handler(
        "cut_off",
        """
        from datetime import timedelta
        from pydantic import BaseModel
        from sqlalchemy import text

        TIMEOUT = timedelta(seconds=2)
        KILL = text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'wakebell' "
            "AND datname = current_database() AND pid <> pg_backend_pid()"
        )

        class Payload(BaseModel):
            pass

        async def handle(payload, ctx):
            await ctx.stores.database.fetch(KILL)
        """,
    )
    service = await stage.serve()
    job_id = await stage.enqueue("cut_off")

    answer = await service.ring()

    assert answer.status_code in {200, 503}
    await stage.end_leases()
    await service.ring()
    assert (await stage.job(job_id))["attempts"] >= 1
    assert (await service.ring()).status_code == 200


async def test_the_probe_of_life_touches_no_database_and_the_one_of_readiness_does(stage: Stage, way: Proxy):
    service = await stage.serve(DATABASE_URL=way.url)
    assert (await service.ask("GET", "/readyz")).status_code == 200
    connections = way.connections

    answers = [await service.ask("GET", "/healthz") for _ in range(5)]

    assert [answer.status_code for answer in answers] == [200] * 5
    assert way.connections == connections

    way.close()

    assert (await service.ask("GET", "/healthz")).status_code == 200
    assert (await service.ask("GET", "/readyz")).status_code == 503


async def test_the_service_starts_without_its_database(stage: Stage, way: Proxy):
    way.close()

    service = await stage.serve(DATABASE_URL=way.url)

    assert way.connections == 0
    way.state = "open"
    await service.tick()


async def test_a_database_without_the_schema_is_told_to_migrate(stage: Stage):
    await stage.sql.execute("DROP SCHEMA wakebell CASCADE")
    service = await stage.serve()

    answer = await service.ring()

    assert answer.status_code == 503
    assert "wakebell migrate" in answer.json()["detail"]
    assert (await service.ask("GET", "/readyz")).status_code == 503
    assert await stage.sql.fetchval("SELECT to_regnamespace('wakebell')") is None
