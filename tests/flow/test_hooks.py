"""Other programs' events and calls, through processes that live, die and repeat each other's work."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import httpx
import pytest

from tests.fakes.replica import Replica
from tests.flow.service import Service
from tests.flow.stage import Stage
from tests.hooks.senders import STANDARD, standard

HOOK = """
[hooks.shop]
kind = "standard"
secret = "env:HOOK_SECRET"
job = "sold"
"""

HANDLER = """
    import json
    from pydantic import BaseModel
    from app.domain.jobs import Done

    class Payload(BaseModel):
        id: str
        source: str
        data: dict | None
        omitted: str | None = None

    async def handle(payload, ctx):
        data = payload.data
        if payload.omitted:
            data = json.loads(await ctx.stores.events.body(payload.source, payload.id))
        return Done({"amount": data["amount"]})
"""


@pytest.fixture
def shop(stage: Stage) -> Stage:
    stage.more = HOOK
    stage.handler("sold", HANDLER)
    return stage


async def serve(stage: Stage, **how: Any) -> Service:
    return await stage.serve(HOOK_SECRET=STANDARD, **how)


async def told(service: Service, body: dict[str, Any]) -> httpx.Response:
    raw, headers = standard(body)
    return await service.ask("POST", "/api/hooks/shop", content=raw, headers=headers)


async def test_two_replicas_that_are_told_at_once_queue_one_job(shop: Stage):
    replicas = [await serve(shop), await serve(shop)]

    answers = await asyncio.gather(*(told(replicas[n % 2], {"amount": 7}) for n in range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [202]
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    summary = await replicas[0].tick()
    assert (summary["jobs"]["claimed"], summary["jobs"]["done"]) == (1, 1)
    job = await shop.job(answers[0].json()["job_id"])
    assert json.loads(job["result"]) == {"amount": 7}


@pytest.mark.parametrize(("step", "status"), [(3, 202), (4, 200)], ids=["before it is kept", "before it is answered"])
async def test_a_replica_that_dies_over_an_event_leaves_one_job_once_it_is_told_again(
    shop: Stage, step: int, status: int
):
    mortal = await serve(shop, die_at=step)
    with pytest.raises(httpx.TransportError):
        await told(mortal, {"amount": 7})
    assert await mortal.ended() == -signal.SIGKILL
    await shop.until_at_rest()

    survivor = await serve(shop)
    again = await told(survivor, {"amount": 7})

    assert again.status_code == status
    assert (await survivor.tick())["jobs"]["done"] == 1
    assert await shop.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'sold'") == 1


async def test_a_handler_reads_an_event_that_its_payload_could_not_hold(shop: Stage):
    service = await serve(shop)
    answer = await told(service, {"amount": 8, "text": "x" * 300_000})

    await service.tick()

    job = await shop.job(answer.json()["job_id"])
    assert (job["status"], json.loads(job["result"])) == ("done", {"amount": 8})


async def test_an_event_that_does_not_fit_its_handler_is_kept_and_its_job_fails_loudly(shop: Stage):
    service = await serve(shop)
    answer = await told(service, {"price": 8})

    summary = await service.tick()

    assert answer.status_code == 202
    assert summary["status"] == "partial"
    assert (await shop.job(answer.json()["job_id"]))["last_error"] == "KeyError: 'amount'"


async def test_a_tick_makes_calls_and_counts_them_as_users_jobs(stage: Stage):
    async with Replica(b"thanks") as server:
        stage.more = f'[call_url]\nprivate_hosts = ["{server.url[7:]}"]\nsecret = "env:HOOK_SECRET"\n'
        service = await serve(stage)
        job_id = await stage.enqueue("call_url", json.dumps({"url": server.url, "body": {"a": 1}}))

        summary = await service.tick()

    assert (summary["jobs"]["claimed"], summary["jobs"]["done"]) == (1, 1)
    assert json.loads((await stage.job(job_id))["result"]) == {"status": 200, "body": "thanks"}
    assert [request.body for request in server.rung] == [b'{"a":1}']


async def test_a_call_without_a_section_fails_loudly_and_is_not_parked(stage: Stage):
    service = await stage.serve()
    job_id = await stage.enqueue("call_url", '{"url": "https://api.example.com/"}')

    summary = await service.tick()

    job = await stage.job(job_id)
    assert (summary["jobs"]["failed"], job["status"]) == (1, "failed")
    assert "[call_url] with hosts" in job["last_error"]
