"""Kinds of faults that queues have had elsewhere, each ruled out on real processes."""

from __future__ import annotations

import json
import os
import signal
from datetime import datetime, timedelta

import pytest

from tests.flow.processes import ROOT
from tests.flow.stage import Stage

DEADLY = """
import os
import signal

from pydantic import BaseModel

class Payload(BaseModel):
    always: bool = False

async def handle(payload, ctx):
    if payload.always or ctx.job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""
HARMLESS = """
from pydantic import BaseModel

class Payload(BaseModel):
    pass

async def handle(payload, ctx):
    pass
"""

SHIFTED = """
import datetime as module
import os
import time

BY = float(os.environ["CLOCK_IS_OFF_BY"])
real, real_time = module.datetime, time.time


class Kind(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, real)


class Shifted(real, metaclass=Kind):
    @classmethod
    def now(cls, tz=None):
        return real.now(tz) + module.timedelta(seconds=BY)


module.datetime = Shifted
time.time = lambda: real_time() + BY
"""
"""As `sitecustomize`: the wall clock of a process, as everything in it is told it."""


async def killed_amid_a_tick(stage: Stage) -> None:
    service = await stage.serve()
    await service.ring_in_vain()
    assert await service.ended() == -signal.SIGKILL
    await stage.until_disconnected()


async def test_a_job_that_was_killed_once_ends_well_and_not_as_failed(stage: Stage):
    stage.handler("deadly", DEADLY)
    job_id = await stage.enqueue("deadly", max_attempts=1)
    await killed_amid_a_tick(stage)
    left = await stage.job(job_id)
    service = await stage.serve()

    before = await service.tick()
    await stage.end_leases()
    after = await service.tick()

    assert (left["status"], left["attempts"]) == ("running", 1), "counted when it was claimed"
    assert (before["jobs"]["claimed"], after["jobs"]["done"]) == (0, 1)
    job = await stage.job(job_id)
    assert (job["status"], job["attempts"], job["crashes"]) == ("done", 2, 1)


async def test_a_job_that_always_kills_its_process_is_given_up_and_holds_up_nothing(stage: Stage):
    stage.handler("deadly", DEADLY)
    stage.handler("harmless", HARMLESS)
    job_id = await stage.enqueue("deadly", '{"always": true}')
    await stage.sql.execute("UPDATE wakebell.jobs SET attempts = 18, crashes = 18")
    for _ in range(2):
        await killed_amid_a_tick(stage)
        await stage.end_leases()
    other = await stage.enqueue("harmless")
    service = await stage.serve()

    summary = await service.tick()

    assert summary["jobs"]["done"] == 1
    job = await stage.job(job_id)
    assert (job["status"], job["attempts"], job["crashes"]) == ("failed", 20, 20)
    assert (await stage.job(other))["status"] == "done"


@pytest.mark.parametrize("minutes", [45, -45])
async def test_a_process_whose_clock_is_wrong_does_what_the_others_would_do(stage: Stage, minutes: int):
    stage.handler("harmless", HARMLESS)
    stage.feeds.add("rss_jobs", "Old")
    (stage.folder / "clock").mkdir()
    (stage.folder / "clock" / "sitecustomize.py").write_text(SHIFTED)
    await (await stage.serve()).tick()  # primes the source: due again in 30 minutes
    now = await stage.enqueue("harmless")
    later = await stage.enqueue("harmless", run_after=await stage.sql.fetchval("SELECT now() + interval '20 minutes'"))
    path = os.pathsep.join([str(stage.folder / "clock"), str(ROOT)])
    wrong = {"PYTHONPATH": path, "CLOCK_IS_OFF_BY": str(minutes * 60)}

    process = stage.command("tick", "--json", **wrong)

    assert await process.ended() == 0, process.log
    [told] = [line for line in process.log.splitlines() if line.startswith('{"tick"')]
    summary = json.loads(told)
    [logged] = [json.loads(line) for line in process.log.splitlines() if '"tick ended"' in line]
    off = datetime.fromisoformat(logged["at"]) - datetime.fromisoformat(summary["started_at"])
    assert abs(off - timedelta(minutes=minutes)) < timedelta(minutes=5), "the stage is set: its clock is wrong"
    assert (summary["sources"]["due"], summary["jobs"]["done"], summary["jobs"]["remaining"]) == (0, 1, 0)
    assert ((await stage.job(now))["status"], (await stage.job(later))["status"]) == ("done", "pending")
