"""The host stops the process, politely or not: what was done is done once, the rest is done by the next one."""

from __future__ import annotations

import asyncio
import signal

from tests.flow.service import until
from tests.flow.stage import Stage

SLOW = """
import asyncio
from datetime import timedelta
from pathlib import Path
from pydantic import BaseModel

TIMEOUT = timedelta(seconds=10)

class Payload(BaseModel):
    number: int

async def handle(payload, ctx):
    await asyncio.sleep({seconds})
    with Path("done").open("a") as done:
        done.write(f"{{payload.number}}\\n")
"""

ENQUEUE = """
SELECT wakebell.enqueue('slow', jsonb_build_object('number', number)) FROM generate_series(1, 30) AS number
"""
COUNTS = "SELECT status, count(*) AS jobs FROM wakebell.jobs WHERE type = 'slow' GROUP BY status"


async def counts(stage: Stage) -> dict[str, int]:
    return {row["status"]: row["jobs"] for row in await stage.sql.fetch(COUNTS)}


async def some_done(stage: Stage) -> bool:
    return (await counts(stage)).get("done", 0) > 0


async def test_told_to_stop_it_answers_and_leaves_the_rest_to_the_next_process(stage: Stage):
    stage.handler("slow", SLOW.format(seconds=1))
    await stage.sql.execute(ENQUEUE)
    service = await stage.serve()
    ringing = asyncio.create_task(service.ring())
    await until(lambda: some_done(stage), told="a job is done")

    service.term()

    answer = await ringing
    assert answer.status_code == 200
    summary = answer.json()
    assert await service.ended() == 0
    after = await counts(stage)
    assert summary["jobs"]["done"] == after["done"]
    assert after == {"done": after["done"], "pending": 30 - after["done"]}
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE run_after > now()") == 0
    assert summary["jobs"]["remaining"] == after["pending"]

    next_one = await stage.serve()
    await next_one.tick()

    assert await counts(stage) == {"done": 30}
    assert sorted(map(int, (stage.folder / "done").read_text().split())) == list(range(1, 31))
    assert await stage.sql.fetchval("SELECT max(attempts) FROM wakebell.jobs") == 1


async def test_killed_it_leaves_leases_and_their_jobs_are_run_once_more(stage: Stage):
    stage.handler("slow", SLOW.format(seconds=1))
    await stage.sql.execute(ENQUEUE)
    service = await stage.serve()
    ringing = asyncio.create_task(service.ring_in_vain())
    await until(lambda: some_done(stage), told="a job is done")

    service.kill()

    await ringing
    assert await service.ended() == -signal.SIGKILL
    await stage.until_disconnected()
    left = await counts(stage)
    assert left["running"] > 0
    next_one = await stage.serve()
    await stage.end_leases()

    await next_one.tick()

    assert await counts(stage) == {"done": 30}
    rows = await stage.sql.fetch("SELECT attempts, crashes, count(*) AS jobs FROM wakebell.jobs GROUP BY 1, 2")
    assert {(row["attempts"], row["crashes"]): row["jobs"] for row in rows} == {
        (1, 0): 30 - left["running"],
        (2, 1): left["running"],
    }


async def test_a_lease_that_has_not_ended_is_left_alone(stage: Stage):
    stage.handler("slow", SLOW.format(seconds=60))
    await stage.enqueue("slow", '{"number": 1}')
    service = await stage.serve()
    ringing = asyncio.create_task(service.ring_in_vain())
    await until(lambda: running(stage), told="the job runs")
    service.kill()
    await ringing
    next_one = await stage.serve()

    summary = await next_one.tick()

    assert summary["jobs"]["claimed"] == 0
    assert await counts(stage) == {"running": 1}


async def running(stage: Stage) -> bool:
    return (await counts(stage)).get("running", 0) > 0


async def test_told_to_stop_while_a_push_is_under_way_it_waits_for_the_answer(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    stage.feeds.feeds["jobs"].add("Driver")
    await stage.make_due()
    stage.line.when_stored = lambda _: service.term()

    answer = await service.ring()

    assert answer.status_code == 200
    assert answer.json()["messages"]["sent"] == 1
    assert await service.ended() == 0
    assert len(stage.line.tries) == 1


async def test_idle_it_stops_at_once_with_status_0(stage: Stage):
    service = await stage.serve()

    service.term()

    assert await service.ended() == 0


async def test_the_commands_as_a_person_starts_them(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    ticking = stage.command("tick", "--json")
    assert await ticking.ended() == 0, ticking.log
    assert '"primed": 1' in ticking.log
    stage.feeds.feeds["jobs"].add("Driver")
    await stage.make_due()
    service = await stage.serve(command=True)

    summary = await service.tick()

    assert summary["messages"]["sent"] == 1
    service.term()
    assert await service.ended() == 0
    assert "Traceback" not in service.log


async def test_a_command_line_tick_told_to_stop_ends_in_order(stage: Stage):
    stage.handler("slow", SLOW.format(seconds=1))
    await stage.sql.execute(ENQUEUE)
    ticking = stage.bear("tick")
    await until(lambda: some_done(stage), told="a job is done")

    ticking.term()

    assert await ticking.ended() == 0, ticking.log
    after = await counts(stage)
    assert after == {"done": after["done"], "pending": 30 - after["done"]}
