"""A host suspends the machine, amid a tick or between two: what wakes late does no harm, and needs nothing it had."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.fakes import pooler as poolers
from tests.fakes import redis_server as servers
from tests.fakes.pooler import Pooler
from tests.fakes.redis_server import RedisServer, redis_server
from tests.flow.clocks import Clocks
from tests.flow.killable import SUSPENDED
from tests.flow.people import CHAT, ECHO, delivery
from tests.flow.service import until
from tests.flow.stage import Stage

HELD_TOO_LONG = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'wakebell' AND state LIKE 'idle in transaction%'
"""
"""What the server does by itself to transactions in which nothing has happened for 30 seconds."""

CUT_OFF = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""

POINTS = (
    ("after the fetch", "clocks that went on"),
    ("amid the round", "clocks that stood still"),
    ("before the send", "clocks that stood still"),
    ("before the send", "clocks that went on"),
    ("before the last commit", "clocks that stood still"),
    ("before the tick is closed", "clocks that went on"),
)
"""Where a process is suspended: in transactions, between them, and on its way to LINE. And what it takes the time for
when it wakes: of a machine that is suspended as a whole, the clocks may stand still as well.
"""


async def test_suspended_at_any_point_for_longer_than_its_leases_a_process_does_no_harm(stage: Stage):
    feed = stage.feeds.add("jobs", "Old")
    awake = await stage.serve()
    await awake.tick()
    for turn, where in enumerate(POINTS):
        feed.add(title := f"Gig {turn}")
        await stage.make_due()
        clocks = Clocks(stage.folder / f"clocks-{turn}")
        sleeper = await stage.serve(die_at=SUSPENDED + where[0], clocks=clocks)
        ringing = asyncio.create_task(sleeper.ring())
        await sleeper.process.stands_still()

        beside = await awake.tick()  # the sleeper's leases hold, and so do its locks: nobody waits for them
        await stage.sql.execute(HELD_TOO_LONG)
        await stage.end_leases()
        await awake.tick()
        told_by_now = stage.line.count(title)
        if where[1] == "clocks that went on":
            clocks.set(wall=timedelta(hours=1), monotonic=timedelta(hours=1))
        sleeper.process.resume()
        late = await ringing
        afterwards = await sleeper.tick()

        assert (beside["status"], afterwards["status"]) == ("ok", "ok"), where
        assert late.status_code in {200, 503}, (where, late.text)
        assert told_by_now == stage.line.count(title) == {title: 1}, where
        assert "Traceback" not in sleeper.log, where
        sleeper.kill()
    stage.line.assert_keys_frozen()
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status <> 'done'") == 0
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.messages WHERE status <> 'sent'") == 0


ALL_ARE_UNDER_WAY = """
    import asyncio
    import os
    import signal

    from pydantic import BaseModel
    from sqlalchemy import text

    INSERT = text("INSERT INTO effects VALUES (:way, :attempt)")
    ARRIVED = []

    class Payload(BaseModel):
        way: str

    async def handle(payload, ctx):
        effect = {"way": payload.way, "attempt": ctx.job.attempt}
        if payload.way != "transaction":
            await ctx.stores.database.fetch(INSERT, effect)
        if ctx.job.attempt == 1:
            ARRIVED.append(payload.way)
            if len(ARRIVED) == 3:
                os.kill(os.getpid(), signal.SIGSTOP)
            while len(ARRIVED) < 3:
                await asyncio.sleep(0.01)
            if payload.way == "fails":
                raise ValueError("too late to fail")
        if payload.way == "transaction":
            async with ctx.transaction() as db:
                await db.execute(INSERT, effect)
"""
ENDS = "SELECT DISTINCT status, attempts, crashes FROM wakebell.jobs"


async def test_what_a_process_that_slept_over_its_leases_ends_is_refused(stage: Stage):
    await stage.sql.execute("CREATE TABLE effects (way text, attempt integer)")
    stage.handler("slept", ALL_ARE_UNDER_WAY)
    for way in ("transaction", "plain", "fails"):
        await stage.enqueue("slept", json.dumps({"way": way}))
    sleeper, awake = await stage.serve(), await stage.serve()
    ringing = asyncio.create_task(sleeper.ring())
    await sleeper.process.stands_still()
    left_alone = await awake.tick()
    await stage.end_leases()
    taken_over = await awake.tick()

    sleeper.process.resume()

    late = (await ringing).json()
    assert (left_alone["jobs"]["claimed"], taken_over["jobs"]["done"]) == (0, 3)
    assert (late["status"], late["jobs"]["done"], late["jobs"]["failed"], late["jobs"]["retrying"]) == ("ok", 0, 0, 0)
    assert sleeper.log.count("job lease lost") == 3
    assert [tuple(row) for row in await stage.sql.fetch(ENDS)] == [("done", 2, 1)]
    effects = await stage.sql.fetch("SELECT way, array_agg(attempt ORDER BY attempt) FROM effects GROUP BY way")
    assert dict(effects) == {"transaction": [2], "plain": [1, 2], "fails": [1, 2]}


@pytest.mark.parametrize(
    "point", ["before the reply is frozen", "after the reply is frozen", "after LINE has the reply"]
)
async def test_a_reply_that_a_suspended_process_was_about_is_made_once(stage: Stage, point: str):
    stage.telling = CHAT
    stage.handler("echo", ECHO)
    sleeper, awake = await stage.serve(die_at=SUSPENDED + point), await stage.serve()
    delivered = asyncio.create_task(sleeper.ask("POST", "/api/webhooks/clinic", **delivery(1, "hello")))
    await sleeper.process.stands_still()
    again = await awake.ask("POST", "/api/webhooks/clinic", **delivery(1, "hello", again=True))
    await stage.end_leases()
    await awake.tick()
    await until(lambda: len(stage.line.replies) == 1, told="somebody has answered")

    sleeper.process.resume()

    assert (again.status_code, (await delivered).status_code) == (200, 200)
    await until(lambda: "job lease lost" in sleeper.log, told="its late end is refused")
    assert [reply.texts for reply in stage.line.replies.values()] == [("You said hello",)]
    assert stage.line.accepted == {}


@pytest.fixture
async def memory() -> AsyncIterator[RedisServer]:
    async with redis_server() as server:
        yield server


STANDS_STILL = """
    import os
    import signal
    from pydantic import BaseModel

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.skipif(poolers.PROGRAM is None, reason=poolers.NEEDED)
@pytest.mark.skipif(servers.PROGRAM is None, reason=servers.NEEDED)
async def test_every_socket_may_be_dead_when_it_wakes_between_requests_or_amid_one(
    pooled: Stage, way: Pooler, memory: RedisServer
):
    stage = pooled
    stage.telling = CHAT
    stage.handler("echo", ECHO)
    stage.handler("stands_still", STANDS_STILL)
    feed = stage.feeds.add("jobs", "Old")
    clocks = Clocks(stage.folder / "clocks")
    service = await stage.serve(clocks=clocks, REDIS_URL=memory.url)
    await service.tick()
    assert (await service.ask("POST", "/api/webhooks/clinic", **delivery(1, "hello"))).status_code == 200

    await until(lambda: len(stage.line.replies) == 1, told="LINE is answered at once, and the person after it")
    await stage.until_at_rest()
    await until(memory.has_no_client, told="connections end with their request")
    later = iter((10, 20))

    async def all_is_new() -> None:
        """Both servers are others by now, PostgreSQL has cut off whoever was connected, and it is later."""
        clocks.set(wall=timedelta(seconds=next(later)))
        way.kill()
        memory.kill()
        await stage.sql.execute(CUT_OFF)
        await way.start()
        await memory.start()

    service.process.suspend()
    await all_is_new()
    service.process.resume()
    feed.add("Cook")
    await stage.make_due()
    between = await service.tick()
    again = await service.ask("POST", "/api/webhooks/clinic", **delivery(2, "me again"))

    await until(lambda: len(stage.line.replies) == 2, told="the second is answered as well")
    await stage.until_at_rest()

    await stage.enqueue("stands_still")
    ringing = asyncio.create_task(service.ring())
    await service.process.stands_still()
    await all_is_new()
    service.process.resume()
    amid = await ringing

    assert (between["status"], between["messages"]["sent"], again.status_code) == ("ok", 1, 200)
    assert (amid.status_code, amid.json()["status"], amid.json()["jobs"]["done"]) == (200, "ok", 1)
    assert [reply.texts for reply in stage.line.replies.values()] == [("You said hello",), ("You said me again",)]
    assert [line for line in service.log.splitlines() if '"level": "error"' in line or "Traceback" in line] == []
