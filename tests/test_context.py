from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from app import __version__
from app.context import Context, Deadline, Stopping, outbound
from app.domain.limits import GRACE, REPORTING
from tests.fakes.batches import a_batch, a_service

URL = "postgres://db.example/name"
BUDGET = timedelta(seconds=25)


def begun(seconds_ago: float) -> Deadline:
    return Deadline(BUDGET, started=time.monotonic() - seconds_ago)


def test_a_tick_that_begins_has_its_budget_before_it():
    deadline = Deadline(BUDGET)

    assert timedelta(0) <= deadline.elapsed < timedelta(seconds=5)
    assert not deadline.exhausted
    assert BUDGET < deadline.left <= BUDGET + GRACE - REPORTING


def test_a_job_may_run_a_little_over_the_budget_and_none_begins_after_it():
    deadline = begun(25)

    assert deadline.exhausted
    assert timedelta(0) < deadline.left <= GRACE - REPORTING


def test_what_is_left_is_never_negative():
    assert begun(1000).left == timedelta(0)


async def test_an_order_to_stop_is_heard_by_all_who_wait():
    stopping = Stopping()
    waiting = [asyncio.create_task(stopping.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not stopping.requested

    stopping.request()
    stopping.request()

    await asyncio.gather(*waiting)
    assert stopping.requested


@pytest.mark.parametrize(
    ("name", "public_url", "told"),
    [
        ("gigs", None, "(gigs)"),
        ("gigs", "https://gigs.example/", "(gigs; +https://gigs.example)"),
        ("งาน", None, "(wakebell)"),
        ("gigs ที่นี่", "https://งาน.example", "(gigs; +https://.example)"),
    ],
)
async def test_the_service_names_itself_in_a_header_that_can_be_sent(
    tmp_path: Path, name: str, public_url: str | None, told: str
):
    environ = {"PUBLIC_URL": public_url} if public_url else {}
    service = a_service(URL, tmp_path, f'[service]\nname = "{name}"', **environ)

    async with outbound(service.user_agent) as http:
        assert http.headers["User-Agent"] == f"Wakebell/{__version__} {told}"


async def test_only_a_handler_has_a_job(tmp_path: Path):
    async with a_batch(a_service(URL, tmp_path)) as ctx:
        with pytest.raises(LookupError, match="only a handler has a job"):
            _ = ctx.current_job


async def test_a_batch_lets_go_of_the_world_at_its_end(tmp_path: Path):
    service = a_service(URL, tmp_path)

    async with service.batch(budget=BUDGET, max_jobs=7, trigger="http") as ctx:
        assert isinstance(ctx, Context)
        assert (ctx.max_jobs, ctx.trigger, ctx.deadline.budget) == (7, "http", BUDGET)
        assert ctx.settings is service.settings
        http = ctx.http
        during = http.is_closed

    assert (during, http.is_closed) == (False, True)
    assert isinstance(ctx.http, httpx.AsyncClient)


async def test_each_batch_counts_for_itself(tmp_path: Path):
    service = a_service(URL, tmp_path)
    async with (
        service.batch(budget=BUDGET, max_jobs=1, trigger="http") as one,
        service.batch(budget=BUDGET, max_jobs=1, trigger="http") as other,
    ):
        one.tally.add("jobs.done")

        assert other.tally["jobs.done"] == 0


async def test_what_a_server_sets_for_one_job_another_does_not_send():
    request = httpx.Request("GET", "https://shop.example/")
    answer = httpx.Response(200, headers={"Set-Cookie": "session=1"}, request=request)

    async with outbound("x") as http:
        http.cookies.extract_cookies(answer)
        assert list(http.cookies.jar) == []
