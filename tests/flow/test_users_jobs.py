"""Users' own job types: what a handler may do, and what becomes of its job."""

from __future__ import annotations

import pytest

from tests.flow.stage import Stage

HANDLER = """
import asyncio
from datetime import timedelta
from pydantic import BaseModel
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.jobs import Discard, Done, Snooze

TIMEOUT = timedelta(seconds=1)

class Payload(BaseModel):
    number: int = 0

async def handle(payload, ctx):
    {body}
"""

FAILING: dict[str, tuple[str, str]] = {
    "raises": ("raise RuntimeError('out of paper')", "RuntimeError: out of paper"),
    "fails for now": ("raise TemporaryFailure('the shop is shut')", "the shop is shut"),
    "returns nonsense": ("return 42", "returned int"),
    "sleeps past its time": ("await asyncio.sleep(60)", "time-out of 1 s"),
    "would end the process": ("raise SystemExit(3)", "SystemExit: 3"),
    "has a time-out of its own": ("raise TimeoutError('of the printer')", "TimeoutError: of the printer"),
}


async def with_job(stage: Stage, body: str, payload: str = "{}") -> int:
    stage.handler("order", HANDLER.format(body=body))
    return await stage.enqueue("order", payload)


@pytest.mark.parametrize("how", FAILING)
async def test_a_failed_attempt_is_repeated_after_a_minute(stage: Stage, how: str):
    body, reason = FAILING[how]
    job_id = await with_job(stage, body)
    service = await stage.serve()

    summary = await service.tick()

    assert summary["status"] == "partial"
    assert summary["jobs"] | {"claimed": 1, "retrying": 1, "failed": 0} == summary["jobs"]
    assert summary["errors"] == ["job type order failed"]
    job = await stage.job(job_id)
    assert job["status"] == "pending"
    assert reason in job["last_error"]
    wait = await stage.sql.fetchval("SELECT extract(epoch FROM run_after - now()) FROM wakebell.jobs")
    assert 40 < wait < 67
    assert (await service.tick())["jobs"]["claimed"] == 0


async def test_a_job_that_failed_four_times_is_given_up(stage: Stage):
    job_id = await with_job(stage, "raise RuntimeError('out of paper')")
    service = await stage.serve()

    waits = []
    for attempt in range(1, 5):
        summary = await service.tick()
        assert summary["jobs"]["failed"] == (attempt == 4)
        waits.append(await stage.sql.fetchval("SELECT extract(epoch FROM run_after - now()) FROM wakebell.jobs"))
        await stage.make_due()

    assert [round(float(wait) / 60) for wait in waits[:2]] == [1, 5]
    assert 26 < waits[2] / 60 < 34
    job = await stage.job(job_id)
    assert (job["status"], job["attempts"]) == ("failed", 4)
    assert job["finished_at"] is not None
    assert (await service.tick())["jobs"]["claimed"] == 0


async def test_a_failure_may_say_when_to_come_again(stage: Stage):
    await with_job(stage, "raise TemporaryFailure('not before noon', retry_after=timedelta(hours=2))")
    service = await stage.serve()

    await service.tick()

    wait = await stage.sql.fetchval("SELECT extract(epoch FROM run_after - now()) FROM wakebell.jobs")
    assert 7000 < wait < 7201


async def test_a_permanent_failure_is_given_up_at_once(stage: Stage):
    job_id = await with_job(stage, "raise PermanentFailure('there is no such order')")
    service = await stage.serve()

    summary = await service.tick()

    assert summary["jobs"]["failed"] == 1
    job = await stage.job(job_id)
    assert (job["status"], job["attempts"], job["last_error"]) == ("failed", 1, "there is no such order")


async def test_a_discarded_job_ends_cancelled_and_alarms_nobody(stage: Stage):
    job_id = await with_job(stage, "return Discard('paid meanwhile')")
    service = await stage.serve()

    summary = await service.tick()

    assert summary["status"] == "ok"
    job = await stage.job(job_id)
    assert (job["status"], job["last_error"]) == ("cancelled", "paid meanwhile")


async def test_a_snooze_costs_no_attempt(stage: Stage):
    job_id = await with_job(stage, "return Snooze(timedelta(minutes=10))")
    service = await stage.serve()

    for _ in range(6):
        summary = await service.tick()
        assert summary["jobs"]["snoozed"] == 1
        await stage.make_due()

    job = await stage.job(job_id)
    assert (job["status"], job["attempts"]) == ("pending", 0)


async def test_what_a_handler_returns_is_kept(stage: Stage):
    job_id = await with_job(stage, "return Done({'printed': payload.number})", '{"number": 7}')
    service = await stage.serve()

    summary = await service.tick()

    assert summary["jobs"]["done"] == 1
    job = await stage.job(job_id)
    assert (job["status"], job["result"]) == ("done", '{"printed": 7}')


async def test_a_payload_that_does_not_fit_is_given_up_with_the_reason(stage: Stage):
    job_id = await with_job(stage, "return None", '{"number": "seven"}')
    service = await stage.serve()

    summary = await service.tick()

    assert summary["jobs"]["failed"] == 1
    job = await stage.job(job_id)
    assert job["status"] == "failed"
    assert "number" in job["last_error"]
    assert "seven" not in job["last_error"]


async def test_a_job_that_fails_keeps_no_other_from_running(stage: Stage):
    stage.handler("order", HANDLER.format(body="return None"))
    stage.handler("poison", HANDLER.format(body="raise RuntimeError"))
    for _ in range(10):
        await stage.enqueue("poison", priority=100)
        await stage.enqueue("order")
    service = await stage.serve()

    summary = await service.tick()

    assert summary["jobs"] | {"claimed": 20, "done": 10, "retrying": 10} == summary["jobs"]


async def test_a_tick_runs_no_more_jobs_than_it_may(stage: Stage):
    stage.handler("order", HANDLER.format(body="return None"))
    for _ in range(12):
        await stage.enqueue("order")
    service = await stage.serve()

    summary = await service.tick(max_jobs=5)

    assert summary["jobs"] | {"claimed": 5, "done": 5, "remaining": 7} == summary["jobs"]
    assert summary["budget_exhausted"] is False
    assert (await service.tick())["jobs"]["done"] == 7


async def test_a_job_of_an_unknown_type_waits_for_a_release_that_knows_it(stage: Stage):
    job_id = await stage.enqueue("from_tomorrow")
    stage.handler("order", HANDLER.format(body="return None"))
    service = await stage.serve()

    summary = await service.tick()

    assert summary["jobs"] | {"claimed": 0, "remaining": 0} == summary["jobs"]
    job = await stage.job(job_id)
    assert (job["status"], job["held"], job["attempts"]) == ("pending", True, 0)

    stage.handler("from_tomorrow", HANDLER.format(body="return None"))
    newer = await stage.serve()
    await newer.tick()

    assert (await stage.job(job_id))["status"] == "done"


async def test_a_job_whose_time_out_does_not_fit_the_budget_is_not_started(stage: Stage):
    stage.handler("order", HANDLER.format(body="return None").replace("seconds=1", "seconds=20"))
    job_id = await stage.enqueue("order")
    service = await stage.serve()

    short = await service.tick(budget=5)
    assert (await stage.job(job_id))["attempts"] == 0
    await service.tick()

    assert short["jobs"]["claimed"] == 0
    assert short["jobs"]["remaining"] == 1
    assert (await stage.job(job_id))["status"] == "done"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def handle(payload, ctx): pass", "needs `class Payload"),
        ("import nothing_of_that_name", "cannot be imported"),
        (HANDLER.format(body="return None").replace("seconds=1", "minutes=5"), "it would never start"),
        (HANDLER.format(body="return None").replace("def handle", "def run"), "needs `async def handle"),
    ],
)
async def test_a_handler_that_cannot_work_keeps_the_service_from_starting(stage: Stage, text: str, told: str):
    stage.handler("order", text)

    process = stage.bear("serve")

    assert await process.ended() == 1
    assert told in process.log
    assert "order.py" in process.log
    assert "Traceback" not in process.log
