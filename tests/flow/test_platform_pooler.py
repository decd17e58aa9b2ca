"""Webhooks and ticks through a transaction pooler: nothing is refused, nothing is left in its connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import httpx
import pytest

from tests.fakes.pooler import NEEDED, PROGRAM, Pooler, pooler
from tests.flow.people import CHAT, ECHO, delivery
from tests.flow.service import Service, until
from tests.flow.stage import Stage
from tests.flow.test_pooler import clean, errors

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)

PEOPLE = 50

REPLIES = "SELECT count(*) = $1 FROM wakebell.said WHERE outcome = 'replied'"


async def deliver(http: httpx.AsyncClient, service: Service, number: int) -> httpx.Response:
    request = delivery(number, f"text {number}", person=number)
    return await http.post(f"http://127.0.0.1:{service.port}/api/webhooks/clinic", **request)


async def test_webhooks_and_ticks_at_once_are_all_taken_and_leave_nothing_behind(pooled: Stage, way: Pooler):
    stage = pooled
    stage.telling = CHAT
    stage.handler("echo", ECHO)
    stage.feeds.add("jobs", "Old")
    one, other = [await stage.serve(), await stage.serve()]
    numbers = count(1)

    async with httpx.AsyncClient(trust_env=False, timeout=60, limits=httpx.Limits(max_connections=PEOPLE)) as http:
        for service in (one, other):
            asked: list[Any] = [deliver(http, service, next(numbers)) for _ in range(PEOPLE)]
            answers = await asyncio.gather(*asked, *(service.ring() for _ in range(5)))
            assert {answer.status_code for answer in answers} == {200}
    await until(lambda: stage.sql.fetchval(REPLIES, 2 * PEOPLE), told="everybody is answered")
    assert clean(await way.left_behind())

    ticks = [asyncio.create_task(service.ring()) for service in (one, other) for _ in range(8)]
    await until(lambda: stage.sql.fetchval("SELECT count(*) > 2 FROM wakebell.ticks WHERE status IS NULL"), told="busy")
    one.kill()
    answers = await asyncio.gather(*ticks, return_exceptions=True)

    assert {answer.status_code for answer in answers if isinstance(answer, httpx.Response)} == {200}
    assert [type(answer) for answer in answers[8:]] == [httpx.Response] * 8
    assert (await other.tick())["status"] == "ok"
    assert clean(await way.left_behind())
    assert len(stage.line.replies) == 2 * PEOPLE
    assert way.complaints == []
    assert errors(one.log) == errors(other.log) == []


OWN_TABLE = """
    from pydantic import BaseModel
    from sqlalchemy import text

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        async with ctx.transaction() as db:
            await db.execute(text("UPDATE stock SET pieces = pieces - 1"))
"""
SLOW_QUERIES = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'
  AND clock_timestamp() - query_start > interval '7 s'
"""


class TestAPoolerThatIgnoresWhatItIsAsked:
    """As many are set up: limits that are asked for at the start are taken, and are none."""

    @pytest.fixture
    async def way(self, database_url: str) -> AsyncIterator[Pooler]:
        async with pooler(database_url, ignore_startup_parameters="statement_timeout,lock_timeout,options") as way:
            yield way

    async def test_somebody_elses_lock_is_waited_for_no_longer_than_it_may_be(self, pooled: Stage):
        stage = pooled
        stage.handler("own_table", OWN_TABLE)
        stage.handler("untouched", OWN_TABLE)
        stage.feeds.add("jobs", "Old")
        await stage.sql.execute("CREATE TABLE stock (pieces integer); INSERT INTO stock VALUES (5)")
        service = await stage.serve()
        await service.tick()
        await stage.make_due()
        waiting, held = await stage.enqueue("own_table"), await stage.enqueue("untouched")

        async with stage.sql.transaction():
            await stage.sql.execute("UPDATE stock SET pieces = 4")
            await stage.sql.execute("SELECT FROM wakebell.jobs WHERE id = $1 FOR UPDATE", held)
            await stage.sql.execute("SELECT FROM wakebell.sources FOR UPDATE")
            summary = await service.tick(budget=20)
            slow = await stage.sql.fetchval(SLOW_QUERIES)

        assert slow == 0
        assert (summary["sources"]["due"], summary["jobs"]["claimed"], summary["jobs"]["retrying"]) == (0, 1, 1)
        assert summary["duration_ms"] < 20_000
        assert [(await stage.job(job))["status"] for job in (waiting, held)] == ["pending", "pending"]
        await stage.make_due()
        assert (await service.tick())["jobs"]["done"] == 2
        assert await stage.sql.fetchval("SELECT pieces FROM stock") == 2
