"""What the scheduler is answered: counts and names, and nothing that must not be public."""

from __future__ import annotations

import json
from typing import Any

from tests.flow.stage import USER, Stage

SHAPE: dict[str, Any] = {
    "tick": int,
    "status": str,
    "started_at": str,
    "duration_ms": int,
    "budget_exhausted": bool,
    "sources": ("due", "fetched", "unchanged", "failed", "primed", "new_items", "matched_items"),
    "messages": ("composed", "sent", "held", "retrying", "failed"),
    "schedules": ("fired",),
    "reminders": ("queued",),
    "jobs": ("claimed", "done", "retrying", "snoozed", "failed", "remaining"),
    "pruned": int,
    "next_due_at": str,
    "alerts": ("open", "opened", "resolved"),
    "errors": list,
}


async def test_a_summary_has_the_promised_members_in_their_order(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve()

    summary = await service.tick()

    assert list(summary) == list(SHAPE)
    for name, shape in SHAPE.items():
        if isinstance(shape, tuple):
            assert tuple(summary[name]) == shape
            assert all(type(count) is int for count in summary[name].values())
        else:
            assert isinstance(summary[name], shape), name
    assert summary["started_at"].endswith("Z")
    assert summary["next_due_at"].endswith("Z")


async def test_an_idle_service_has_nothing_due(stage: Stage):
    service = await stage.serve()

    summary = await service.tick()

    assert summary["status"] == "ok"
    assert summary["next_due_at"] is None
    assert summary["errors"] == []


async def test_two_hundred_failing_sources_fit_into_the_answer(stage: Stage):
    for number in range(200):
        stage.feeds.add(f"{'a-source-with-a-long-name-' * 2}{number:03}", broken="error")
    service = await stage.serve()

    answer = await service.ring(budget=120)

    assert answer.status_code == 200
    assert len(answer.content) < 8192
    summary = answer.json()
    assert summary["status"] == "partial"
    assert summary["sources"]["failed"] == 200
    assert len(summary["errors"]) == 20
    assert summary["errors"][-1] == "and 181 more"


async def test_no_title_address_user_or_secret_is_in_an_answer_or_in_the_log(stage: Stage):
    good = stage.feeds.add("good", "Cook")
    bad = stage.feeds.add("bad", "Gardener")
    service = await stage.serve()
    answers = [await service.ring()]
    good.add("Driver")
    bad.broken = "html"
    stage.line.answers.append(500)
    await stage.make_due()
    answers.append(await service.ring())
    await stage.make_due()
    answers.append(await service.ring())

    told = "\n".join([answer.text for answer in answers] + [service.log])

    assert stage.line.count("Driver") == {"Driver": 1}
    for private in ("Driver", "Cook", USER, stage.environ["LINE_TOKEN"], stage.environ["CRON_SECRET"], "http://"):
        assert private not in told, private


async def test_a_tick_that_ran_out_of_time_says_so_and_what_is_left(stage: Stage):
    stage.handler(
        "slow",
        """
        import asyncio
        from datetime import timedelta
        from pydantic import BaseModel

        TIMEOUT = timedelta(seconds=2)

        class Payload(BaseModel):
            pass

        async def handle(payload, ctx):
            await asyncio.sleep(1.5)
        """,
    )
    for _ in range(40):
        await stage.enqueue("slow")
    service = await stage.serve()

    summary = await service.tick(budget=2)

    assert summary["budget_exhausted"] is True
    assert summary["status"] == "ok"
    assert 0 < summary["jobs"]["done"] < 40
    assert summary["jobs"]["remaining"] == 40 - summary["jobs"]["done"]


async def test_each_tick_is_kept_with_its_summary(stage: Stage):
    service = await stage.serve()

    summary = await service.tick()

    row = await stage.sql.fetchrow("SELECT * FROM wakebell.ticks")
    assert (row["id"], row["status"], row["trigger"]) == (summary["tick"], "ok", "http")
    assert json.loads(row["summary"]) == summary
