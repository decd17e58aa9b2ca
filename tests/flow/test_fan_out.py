"""Replicas that the service wakes by ringing its own address, through a balancer as hosts have one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.replica import Balancer
from tests.flow.service import BEARER, SECRET, Service, free_port
from tests.flow.stage import Stage

HANDLER = """
    import asyncio
    import os
    import signal
    from datetime import timedelta
    from pydantic import BaseModel

    TIMEOUT = timedelta(seconds=5)

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        if os.environ.get("DIES"):
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0.03)
        with open("ran", "a") as ran:
            ran.write(f"{os.getpid()} {ctx.job.id}\\n")
"""
JOBS = 300
PUT_IN = "SELECT wakebell.enqueue('slow') FROM generate_series(1, $1::integer)"


async def with_jobs(stage: Stage, count: int = JOBS, *, fan_out: int = 2) -> None:
    stage.handler("slow", HANDLER)
    stage.more = f"[tick]\nfan_out = {fan_out}\n"
    await stage.sql.execute(PUT_IN, count)


def ran(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """How many jobs each process ran, and how often each job."""
    lines = [line.split() for line in (folder / "ran").read_text().splitlines()]
    return Counter(pid for pid, _ in lines), Counter(job for _, job in lines)


def warnings(service: Service) -> list[str]:
    return [line for line in service.log.splitlines() if '"level": "warning"' in line]


async def test_two_replicas_share_what_one_tick_may_not_run(stage: Stage):
    await with_jobs(stage)
    async with Balancer([]) as balancer:
        replicas = [await stage.serve(PUBLIC_URL=balancer.url) for _ in range(2)]
        balancer.stand_before([replicas[1].port, replicas[0].port])

        summary = await replicas[0].tick(max_jobs=100)

    assert (summary["status"], summary["jobs"]["claimed"], summary["jobs"]["remaining"]) == ("ok", 100, 0)
    by_process, by_job = ran(stage.folder)
    assert (len(by_process), sum(by_process.values())) == (2, JOBS)
    assert set(by_job.values()) == {1}
    rows = await stage.sql.fetch("SELECT DISTINCT status, attempts, crashes FROM wakebell.jobs WHERE type = 'slow'")
    assert [tuple(row) for row in rows] == [("done", 1, 0)]
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks") == 1
    for replica in replicas:
        assert SECRET not in replica.log
        assert "Bearer" not in replica.log
        assert warnings(replica) == []
    await stage.until_disconnected()


async def test_a_tick_without_a_door_wakes_the_service_too(stage: Stage):
    await with_jobs(stage, 150)
    async with Balancer([]) as balancer:
        service = await stage.serve(PUBLIC_URL=balancer.url)
        balancer.stand_before([service.port])

        process = stage.bear("tick", "--max-jobs", "100", PUBLIC_URL=balancer.url)

        assert await process.ended() == 0, process.log
    by_process, by_job = ran(stage.folder)
    assert (len(by_process), sum(by_process.values())) == (2, 150)
    assert set(by_job.values()) == {1}
    assert SECRET not in process.log


async def test_a_replica_that_is_dead_changes_nothing(stage: Stage):
    await with_jobs(stage, 60)
    async with Balancer([free_port()]) as balancer:
        service = await stage.serve(PUBLIC_URL=balancer.url)

        summary = await service.tick(max_jobs=20)

    assert (summary["status"], summary["errors"]) == ("ok", [])
    assert (summary["jobs"]["done"], summary["jobs"]["remaining"]) == (20, 40)
    [warning] = warnings(service)
    assert "replicas not woken" in warning
    assert SECRET not in service.log


async def test_a_replica_that_dies_over_its_drain_leaves_only_leases(stage: Stage):
    await with_jobs(stage, 40, fan_out=1)
    async with Balancer([]) as balancer:
        service = await stage.serve(PUBLIC_URL=balancer.url)
        other = await stage.serve(DIES="1", PUBLIC_URL=balancer.url)
        balancer.stand_before([other.port])

        first = await service.tick(max_jobs=20)
        await other.ended()
        await stage.end_leases()
        second = await service.tick(max_jobs=100)

    assert first["status"] == "ok"
    assert first["jobs"]["done"] + second["jobs"]["done"] == 40
    assert set(ran(stage.folder)[1].values()) == {1}


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer the-wrong-cron-secret"}])
async def test_nobody_else_has_a_queue_drained(stage: Stage, headers: dict[str, str]):
    await with_jobs(stage, 1, fan_out=0)
    service = await stage.serve()

    refused = await service.ask("POST", "/api/cron/drain", headers=headers)
    circling = await service.ask("POST", "/api/cron/drain", headers={**BEARER, "Wakebell-Depth": "2"})

    assert (refused.status_code, circling.status_code) == (401, 422)
    assert not (stage.folder / "ran").exists()
    drained = await service.ask("POST", "/api/cron/drain", params={"queue": "default"}, headers=BEARER)
    assert drained.json()["jobs"]["done"] == 1
