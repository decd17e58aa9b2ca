"""Each slot of a schedule queues its job once, whoever ticks, however late, and whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta

import pytest

from tests.flow.processes import ROOT, Process
from tests.flow.stage import Stage
from tests.flow.test_queue_cases import SHIFTED

REPORT = """
from pydantic import BaseModel

class Payload(BaseModel):
    slot: str

async def handle(payload, ctx):
    pass
"""
HOURLY = '\n[schedules.hourly]\ncron = "@every 1h"\njob = "report"\ncatch_up = "all"\n'
WEEKLY = '\n[schedules.weekly]\ncron = "@every 7d"\njob = "report"\n'
SLOTS = "SELECT payload->>'slot' FROM wakebell.jobs ORDER BY 1"


@pytest.fixture
def scheduled(stage: Stage) -> Stage:
    stage.handler("report", REPORT)
    stage.more = HOURLY
    return stage


async def passed(stage: Stage, **time: float) -> None:
    """So much time has gone by since the last tick."""
    await stage.until_at_rest()
    await stage.sql.execute(
        "UPDATE wakebell.schedules SET anchor_at = anchor_at - $1::interval, next_at = next_at - $1::interval, "
        "last_slot = last_slot - $1::interval, configured_at = configured_at - $1::interval",
        timedelta(**time),
    )


async def slots(stage: Stage) -> list[str]:
    return [row[0] for row in await stage.sql.fetch(SLOTS)]


async def tick(stage: Stage, die_at: int = 0) -> Process:
    """A process of its own, which has ended."""
    process = stage.bear("tick", "--json", die_at=die_at)
    await process.ended()
    return process


def summary(process: Process) -> dict[str, dict[str, int]]:
    [line] = [line for line in process.log.splitlines() if line.startswith('{"tick"')]
    told: dict[str, dict[str, int]] = json.loads(line)
    return told


async def test_a_tick_that_is_killed_at_any_step_loses_no_slot_and_doubles_none(scheduled: Stage):
    await tick(scheduled)
    expected = 0
    died = step = 0
    while True:
        await passed(scheduled, minutes=61)  # so that no two slots are the same instant
        expected += 1
        process = await tick(scheduled, die_at=(step := step + 1))
        if "steps: " in process.log:
            break
        died += 1
        await scheduled.end_leases()

    await tick(scheduled)

    assert died > 8
    found = await scheduled.sql.fetch("SELECT status, count(*) FROM wakebell.jobs GROUP BY 1")
    assert [tuple(row) for row in found] == [("done", expected)]


async def test_ten_ticks_at_once_queue_each_slot_once_and_run_its_job(scheduled: Stage):
    services = await asyncio.gather(scheduled.serve(), scheduled.serve())
    first = await services[0].tick()
    await passed(scheduled, hours=30.5)

    told = await asyncio.gather(*(service.tick() for service in services * 5))
    told += [await services[0].tick()]

    assert first["next_due_at"] is not None, "the first slot, though nothing was queued"
    found = await slots(scheduled)
    assert len(found) == len(set(found)) == 30
    assert sum(one["schedules"]["fired"] for one in told) == 30
    assert sum(one["jobs"]["done"] for one in told) == 30
    assert told[-1]["next_due_at"] is not None


async def test_a_weekly_one_comes_once_a_week_though_each_tick_is_a_new_process(scheduled: Stage):
    scheduled.more = WEEKLY
    told = [summary(await tick(scheduled))]
    for _ in range(15):
        await passed(scheduled, days=1)
        told.append(summary(await tick(scheduled)))

    assert [one["schedules"]["fired"] for one in told] == [0, *[0, 0, 0, 0, 0, 0, 1] * 2, 0]


async def test_a_process_whose_clock_is_wrong_finds_the_slots_that_the_others_would_find(scheduled: Stage):
    (scheduled.folder / "clock").mkdir()
    (scheduled.folder / "clock" / "sitecustomize.py").write_text(SHIFTED)
    path = os.pathsep.join([str(scheduled.folder / "clock"), str(ROOT)])
    wrong = {"PYTHONPATH": path, "CLOCK_IS_OFF_BY": "2700"}

    told = []
    for minutes in (0, 30):  # seen first, and not yet due
        await passed(scheduled, minutes=minutes)
        process = scheduled.command("tick", "--json", **wrong)
        assert await process.ended() == 0, process.log
        told.append(summary(process))
    await passed(scheduled, minutes=31)
    told.append(summary(await tick(scheduled)))

    assert [one["schedules"]["fired"] for one in told] == [0, 0, 1]
    row = await scheduled.sql.fetchrow("SELECT next_at - last_slot, next_at - now() FROM wakebell.schedules")
    assert row[0] == timedelta(hours=1)
    assert timedelta(minutes=57) < row[1] < timedelta(minutes=60)


async def test_a_file_that_is_changed_starts_from_now_and_what_it_no_longer_has_is_silent(scheduled: Stage):
    await tick(scheduled)
    await passed(scheduled, hours=3)
    scheduled.more = HOURLY.replace("1h", "50m")
    changed = summary(await tick(scheduled))
    await passed(scheduled, hours=1)
    due = summary(await tick(scheduled))
    scheduled.more = ""
    await tick(scheduled)
    await passed(scheduled, hours=3)
    gone = summary(await tick(scheduled))
    scheduled.more = HOURLY.replace("1h", "50m")
    back = summary(await tick(scheduled))

    assert [one["schedules"]["fired"] for one in (changed, due, gone, back)] == [0, 1, 0, 0]
