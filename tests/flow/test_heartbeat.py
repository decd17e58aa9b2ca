"""A dead-man's switch beside whole processes: each tick is heard, and none is changed by it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.fakes.switch import Switch
from tests.fakes.switches import Healthchecks, Sentry, Told, UptimeKuma
from tests.flow.service import free_port, until
from tests.flow.stage import Stage

FAIL = """
from pydantic import BaseModel

from app.domain.errors import PermanentFailure


class Payload(BaseModel):
    pass


async def handle(payload, ctx):
    raise PermanentFailure("the mailbox is full")
"""
HANG = """
import asyncio

from pydantic import BaseModel


class Payload(BaseModel):
    pass


async def handle(payload, ctx):
    await asyncio.sleep(0.5)
"""


async def test_a_tick_that_goes_well_is_told_at_its_start_and_its_end(stage: Stage):
    async with Healthchecks() as switch:
        service = await stage.serve(HEARTBEAT_URL=switch.heartbeat_url)
        await service.tick()
        stage.handler("mail", FAIL)
        service = await stage.serve(HEARTBEAT_URL=switch.heartbeat_url)
        await stage.enqueue("mail")  # what fails in a tick is no failure of the tick
        await service.tick()

    assert [told.what for told in switch.told] == ["start", "success"] * 2
    assert [told.words for told in switch.told] == ["", "", "", "job type mail failed"]
    runs = [told.run for told in switch.told]
    assert runs[0] == runs[1] != runs[2] == runs[3]


async def test_ticks_at_once_are_told_apart(stage: Stage):
    stage.handler("wait", HANG)
    async with Sentry() as switch:
        replicas = [await stage.serve(HEARTBEAT_URL=switch.heartbeat_url) for _ in range(2)]
        for _ in range(20):
            await stage.enqueue("wait")
        await asyncio.gather(*(replica.tick() for replica in replicas))

    runs = {told.run for told in switch.told}
    assert len(runs) == 2
    for run in runs:
        assert [told.what for told in switch.told if told.run == run] == ["start", "success"]


@pytest.mark.parametrize("does", ["hang", 500, "hang up"])
async def test_a_switch_that_does_not_take_it_changes_nothing_of_the_answer(stage: Stage, does: int | str):
    async with Switch(does) as switch:
        plain = await stage.serve()
        pinging = await stage.serve(HEARTBEAT_URL=f"{switch.url}/the-secret", LOG_LEVEL="DEBUG")
        without = await plain.ring()
        began = time.monotonic()
        answer = await pinging.ring()
        took = time.monotonic() - began

    assert took < 15  # an end, no measure: the switch hangs for ever
    assert answer.status_code == without.status_code == 200
    assert settled(answer.json()) == settled(without.json())
    assert len(switch.pinged) == 2
    assert "heartbeat not taken" in pinging.log
    assert "the-secret" not in pinging.log


async def test_a_switch_that_is_not_there_changes_nothing_of_the_answer(stage: Stage):
    service = await stage.serve(HEARTBEAT_URL=f"http://127.0.0.1:{free_port()}/the-secret")

    summary = await service.tick()

    assert summary["status"] == "ok"
    assert "heartbeat not taken" in service.log
    assert "the-secret" not in service.log


async def test_a_tick_without_a_database_is_told_as_failed(stage: Stage):
    async with Healthchecks() as switch:
        service = await stage.serve(
            HEARTBEAT_URL=switch.heartbeat_url, DATABASE_URL="postgresql://nobody@127.0.0.1:9/none"
        )
        answer = await service.ring()

    assert answer.status_code == 503
    start, end = switch.told
    assert end == Told(what="failure", run=start.run, words="the database cannot be reached now")


async def test_a_tick_on_an_older_schema_is_told_as_failed_with_what_to_do(stage: Stage):
    await stage.sql.execute("UPDATE wakebell.alembic_version SET version_num = '0001'")
    async with Healthchecks() as switch:
        service = await stage.serve(HEARTBEAT_URL=switch.heartbeat_url)
        answer = await service.ring()

    assert answer.status_code == 503
    assert "wakebell migrate" in answer.json()["detail"]
    assert (switch.told[-1].what, switch.told[-1].words) == ("failure", answer.json()["detail"])
    assert "database schema outdated" in service.log


async def test_a_tick_with_a_part_that_crashed_is_told_as_failed_with_its_reason(stage: Stage):
    await stage.sql.execute("SELECT FROM wakebell.enqueue('of_no_handler')")
    await stage.sql.execute("ALTER FUNCTION wakebell.park_jobs RENAME TO parked")
    async with UptimeKuma() as switch:
        service = await stage.serve(HEARTBEAT_URL=switch.heartbeat_url)
        answer = await service.ring()

    assert answer.status_code == 500
    assert answer.json()["status"] == "failed"
    [end] = switch.told
    assert (end.what, end.words) == ("failure", "a part of the tick crashed; the log has its traceback")


async def test_a_tick_by_command_is_told_too(stage: Stage):
    async with Healthchecks() as switch:
        process = stage.bear("tick", "--json", HEARTBEAT_URL=switch.heartbeat_url)
        status = await process.ended()

    assert status == 0
    assert [told.what for told in switch.told] == ["start", "success"]


@pytest.mark.parametrize("command", ["serve", "work", "tick"])
async def test_a_broken_configuration_makes_a_sound_though_nothing_starts(stage: Stage, command: str):
    stage.more = '[alerts]\nto = ["nobody"]\nrepeat = 1\n'
    async with Healthchecks() as switch:
        process = stage.bear(command, HEARTBEAT_URL=switch.heartbeat_url, CRON_SECRET=None)
        status = await process.ended()

    assert status == 1
    [end] = switch.told
    count = "3" if command == "serve" else "2"  # only who serves needs CRON_SECRET
    words = f"the service does not start: its configuration has {count} problems; `wakebell check` tells of all"
    assert (end.what, end.words) == ("failure", words)


async def test_a_worker_that_finds_no_database_says_so_once(stage: Stage):
    async with Healthchecks() as switch:
        process = stage.bear(
            "work", HEARTBEAT_URL=switch.heartbeat_url, DATABASE_URL="postgresql://nobody@127.0.0.1:9/none"
        )
        await until(lambda: switch.told, told="a ping")
        process.term()
        assert await process.ended() == 0

    assert [(told.what, told.words) for told in switch.told] == [("failure", "the database cannot be reached now")]


def settled(summary: dict[str, Any]) -> dict[str, Any]:
    """Without what differs between any two ticks."""
    return {name: value for name, value in summary.items() if name not in {"tick", "started_at", "duration_ms"}}
