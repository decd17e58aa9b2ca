"""Many sources on few hosts: one at a time for each of them, all of them at once, over all replicas."""

from __future__ import annotations

import asyncio

from tests.fakes.hosts import Hosts
from tests.flow.stage import Stage

GAP = 0.1

BUDGET = 6
"""Seconds, of which the last ones start nothing: not enough for all."""


async def test_every_host_is_asked_one_at_a_time_all_hosts_at_once_and_no_source_twice(stage: Stage):
    async with Hosts(6, answer_seconds=0.4) as hosts:
        stage.host_gap = GAP
        stage.more = hosts.sources(10)
        one, other = await asyncio.gather(stage.serve(), stage.serve())

        first = await asyncio.gather(one.tick(budget=BUDGET), other.tick(budget=BUDGET))

        assert all(summary["status"] == "ok" for summary in first)
        assert all(summary["duration_ms"] < (BUDGET + 5) * 1000 for summary in first)
        assert sum(summary["sources"]["due"] for summary in first) == 60
        fetched = sum(summary["sources"]["fetched"] for summary in first)
        assert hosts.everywhere.most >= len(hosts.hosts), "each waits for its own host alone"

        while fetched < 60:
            summaries = await asyncio.gather(one.tick(budget=BUDGET), other.tick(budget=BUDGET))
            again = sum(summary["sources"]["fetched"] for summary in summaries)
            assert again > 0, "the next tick goes on"
            fetched += again

        assert fetched == 60
        assert hosts.fetched == [1] * 60
        assert hosts.most_at_one == 1
        assert hosts.least_gap >= GAP
        assert (await one.tick())["jobs"]["remaining"] == 0


async def test_a_host_that_is_busy_is_left_alone_by_both_replicas_and_the_others_are_read(stage: Stage):
    async with Hosts(2, answer_seconds=0) as hosts:
        refusing, well = hosts.hosts
        refusing.status, refusing.headers = 429, {"Retry-After": "3600"}
        stage.host_gap = GAP
        stage.more = hosts.sources(5)
        one, other = await asyncio.gather(stage.serve(), stage.serve())

        first = await asyncio.gather(one.tick(), other.tick())
        summaries = [*first, *await asyncio.gather(one.tick(), other.tick())]

        assert sum(summary["sources"]["fetched"] for summary in summaries) == 5
        assert {summary["status"] for summary in summaries} == {"ok"}
        assert refusing.fetches.total() == 1
        assert sorted(well.fetches.values()) == [1] * 5
        waiting = (
            "SELECT round(extract(epoch FROM run_after - now()) / 60) FROM wakebell.jobs "
            "WHERE status = 'pending' AND NOT waiting"
        )
        assert await stage.sql.fetchval(waiting) == 60


async def test_a_process_that_dies_in_its_turn_leaves_it_to_the_next_one(stage: Stage):
    async with Hosts(1, answer_seconds=0) as hosts:
        stage.host_gap = GAP
        stage.more = hosts.sources(3)
        dying = await stage.serve(die_at="after the fetch")
        await dying.ring_in_vain()
        await dying.ended()
        await stage.end_leases()
        service = await stage.serve()

        summary = await service.tick()

        assert summary["sources"]["fetched"] == 3
        assert hosts.most_at_one == 1


async def test_no_private_address_is_read_by_a_source_that_may_not(stage: Stage):
    inside = stage.feeds.add("inside", "Secret")
    stage.more = f"""
[sources.guarded]
kind = "feed"
url = "{inside.url}"
deny_private = true

[sources.by_name]
kind = "feed"
url = "{inside.url.replace("127.0.0.1", "localhost")}"
deny_private = true
"""
    service = await stage.serve()

    summary = await service.tick()

    assert summary["sources"] | {"fetched": 1, "failed": 2} == summary["sources"]
    assert inside.fetches == 1, "by the one that may"
    for name in ("guarded", "by_name"):
        assert "is at a private address" in (await stage.source(name))["last_error"]


async def test_two_replicas_with_different_sources_leave_each_others_alone(stage: Stage):
    shared = stage.feeds.add("shared", "Cook")
    theirs = stage.feeds.add("theirs", "Driver", broken="error")
    one = await stage.serve()
    del stage.feeds.feeds["theirs"]
    other = await stage.serve()
    stage.feeds.feeds["theirs"] = theirs  # the server goes on with it
    for _ in range(3):
        await stage.make_due()
        await one.tick()
        await other.tick()
    await stage.make_due()

    summaries = [await other.tick(), await one.tick(), await other.tick()]

    assert [summary["alerts"]["opened"] + summary["alerts"]["resolved"] for summary in summaries] == [0, 0, 0]
    assert summaries[-1]["alerts"]["open"] == 1
    assert shared.fetches > 3
    assert theirs.fetches >= 3
