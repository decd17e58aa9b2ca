"""Clocks of a process that are hours off or jump, as after a suspension: the database's clock decides all the same."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import UTC, datetime, timedelta

from tests.flow.clocks import Clocks
from tests.flow.service import until
from tests.flow.stage import TELLING, Stage

HOURS = timedelta(hours=7)

EVERYTHING = """
[schedules.hourly]
cron = "@every 1h"
job = "greet"

[reminders.day_before]
before = "24h"
"""
GREET = """
    from pydantic import BaseModel
    from app.domain.errors import PermanentFailure

    class Payload(BaseModel):
        fail: bool = False

    async def handle(payload, ctx):
        if payload.fail:
            raise PermanentFailure("not this one")
"""
DEADLY = """
    import os
    import signal
    from pydantic import BaseModel

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        if ctx.job.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
"""
BOOK = """
INSERT INTO wakebell.bookings (ref, title, starts_at, timezone, recipient)
SELECT 'in ' || hours, 'Visit in ' || hours, now() + make_interval(hours => hours), 'UTC', 'me'
FROM (VALUES (23), (26)) AS given (hours)
"""
AN_HOUR_PASSES = """
UPDATE wakebell.schedules SET anchor_at = anchor_at - interval '61 minutes', next_at = next_at - interval '61 minutes',
    last_slot = last_slot - interval '61 minutes'
"""


async def test_what_is_due_and_whose_lease_is_over_is_the_databases_to_say(stage: Stage):
    stage.more = EVERYTHING
    stage.handler("greet", GREET)
    stage.handler("deadly", DEADLY)
    stage.telling = TELLING.replace("[subscriptions.all]", "[subscriptions.all]\nmax_age_days = 0.25")
    feed = stage.feeds.add("jobs", "Old", format="json")
    fast = Clocks(stage.folder / "fast", wall=HOURS)
    slow = Clocks(stage.folder / "slow", wall=-HOURS)
    ahead, behind = await stage.serve(clocks=fast), await stage.serve(clocks=slow)

    first = [await ahead.tick(), await behind.tick()]
    assert [summary["sources"]["due"] for summary in first] == [1, 0], "the other finds it planned"
    assert first[0]["next_due_at"] == first[1]["next_due_at"]
    assert logged_at(ahead.log) - logged_at(behind.log) > timedelta(hours=13), "the stage is set"

    later = await stage.enqueue("greet", run_after=await stage.sql.fetchval("SELECT now() + interval '2 hours'"))
    await stage.enqueue("greet")
    await stage.sql.execute(BOOK)
    both = [await behind.tick(), await ahead.tick()]
    assert [summary["jobs"]["done"] for summary in both] == [1, 0]
    assert [summary["reminders"]["queued"] for summary in both] == [1, 0]
    assert (await stage.job(later))["status"] == "pending"
    assert [push.texts[0].split(",")[0] for push in stage.line.accepted.values()] == ["Reminder: Visit in 23"]

    await stage.sql.execute(AN_HOUR_PASSES)
    fired = [summary["schedules"]["fired"] for summary in (await ahead.tick(), await behind.tick(), await ahead.tick())]
    assert fired == [1, 0, 0]

    await stage.enqueue("greet", '{"fail": true}')
    opened = [await behind.tick(), await ahead.tick(), await behind.tick()]
    assert [summary["alerts"]["opened"] for summary in opened] == [1, 0, 0]
    assert len(await stage.alerts()) == 1, "told once: for neither of them a day has passed"

    for turn, (service, hours) in enumerate([(ahead, 5), (behind, 7)]):
        feed.add(title := f"Gig {turn}")
        feed.published[title] = datetime.now(UTC) - timedelta(hours=hours)
        await stage.sql.execute("UPDATE wakebell.sources SET due_at = now()")
        assert (await service.tick())["sources"]["new_items"] == 1
    assert stage.line.count("Gig 0", "Gig 1") == {"Gig 0": 1, "Gig 1": 0}, "younger and older than six hours"

    for mortal, survivor in ((ahead, behind), (behind, await stage.serve(clocks=fast))):
        job_id = await stage.enqueue("deadly")
        await mortal.ring_in_vain()
        assert await mortal.ended() == -signal.SIGKILL
        lease = await stage.sql.fetchval("SELECT lease_until - now() FROM wakebell.jobs WHERE id = $1", job_id)
        assert timedelta(0) < lease < timedelta(minutes=10)
        assert (await survivor.tick())["jobs"]["claimed"] == 0
        await stage.end_leases()
        assert (await survivor.tick())["jobs"]["done"] == 1
        health = await survivor.ask("GET", "/api/health")
        assert (health.status_code, health.json()["status"]) == (200, "warn"), "of the alert alone"


WAITS = """
    import asyncio
    from pathlib import Path
    from pydantic import BaseModel

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        if ctx.job.attempt == 1:
            Path("waits").touch()
            while not Path("go").exists():
                await asyncio.sleep(0.01)
"""


async def test_clocks_that_jump_between_ticks_or_amid_one_lose_nothing(stage: Stage):
    stage.handler("greet", GREET)
    stage.handler("waits", WAITS)
    stage.feeds.add("jobs", "Old")
    clocks = Clocks(stage.folder / "clocks")
    service = await stage.serve(clocks=clocks)
    await service.tick()

    for turn, off in enumerate((HOURS, -HOURS, timedelta(days=400))):
        clocks.set(wall=off, monotonic=timedelta(hours=turn * 10))
        stage.feeds.feeds["jobs"].add(f"Gig {turn}")
        await stage.enqueue("greet")
        await stage.make_due()
        summary = await service.tick()
        assert (summary["status"], summary["messages"]["sent"], summary["jobs"]["done"]) == ("ok", 1, 1)
        assert 0 <= summary["duration_ms"] < 60_000

    job_id = await stage.enqueue("waits")
    ringing = asyncio.create_task(service.ring())
    await until((stage.folder / "waits").exists, told="the job runs")
    clocks.set(wall=-HOURS, monotonic=timedelta(hours=50))
    late = await ringing
    (stage.folder / "go").touch()
    other = await stage.serve()
    await stage.end_leases()
    await stage.make_due()
    await other.tick()

    assert late.status_code in {200, 503}, late.text
    assert ((await stage.job(job_id))["status"], (await service.tick())["status"]) == ("done", "ok")
    assert "Traceback" not in service.log


def logged_at(log: str) -> datetime:
    """What the process took for the time when it wrote its last line."""
    return datetime.fromisoformat(json.loads(log.splitlines()[-1])["at"])
