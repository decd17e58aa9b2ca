"""Items age by complete rounds alone: what a source still lists is never forgotten, nor is anything by an outage."""

from __future__ import annotations

import pytest

from tests.fakes.feeds import Broken
from tests.flow.stage import Stage

AGE = """
UPDATE wakebell.items SET seen_at = seen_at - interval '60 days', first_seen_at = first_seen_at - interval '60 days'
"""
AGE_SOURCE = "UPDATE wakebell.sources SET last_round_at = last_round_at - interval '60 days'"


async def keys(stage: Stage) -> set[str]:
    return {row["key"] for row in await stage.sql.fetch("SELECT key FROM wakebell.items")}


async def grow_old(stage: Stage) -> None:
    """As if the last complete round had been two months ago."""
    await stage.sql.execute(AGE)
    await stage.sql.execute(AGE_SOURCE)


@pytest.mark.parametrize("answer", [None, "error", "empty", "html"])
async def test_neither_a_304_nor_an_outage_of_two_months_ages_anything(stage: Stage, answer: Broken | None):
    feed = stage.feeds.add("jobs", "Cook", "Driver")
    service = await stage.serve()
    await service.tick()
    await grow_old(stage)
    feed.broken = answer
    await stage.make_due()

    for _ in range(2):
        await service.tick()
        await stage.make_due()

    assert await keys(stage) == {"Cook", "Driver"}


async def test_what_comes_back_after_two_months_of_silence_is_not_told_again(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    await grow_old(stage)
    feed.add("Driver")
    await stage.make_due()

    for _ in range(2):
        await service.tick()
        await stage.make_due()

    assert stage.line.count("Cook", "Driver") == {"Cook": 0, "Driver": 1}
    assert await keys(stage) == {"Cook", "Driver"}


async def test_an_item_gone_for_longer_than_it_is_kept_is_forgotten_and_would_be_told_again(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook", "Driver")
    service = await stage.serve()
    await service.tick()
    await stage.sql.execute(f"{AGE} WHERE key = 'Cook'")
    feed.titles = ["Driver"]
    await stage.make_due()

    pruned = [(await service.tick())["pruned"] for _ in range(2)]

    assert sum(pruned) == 1
    assert await keys(stage) == {"Driver"}
    feed.add("Cook")
    await stage.make_due()
    await service.tick()
    assert stage.line.count("Cook", "Driver") == {"Cook": 1, "Driver": 0}


async def test_an_item_gone_for_less_is_known_when_it_comes_back(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook", "Driver")
    service = await stage.serve()
    await service.tick()
    await stage.sql.execute("UPDATE wakebell.items SET seen_at = seen_at - interval '40 days'")
    for titles in (["Driver"], ["Cook", "Driver"]):
        feed.titles = titles
        await stage.make_due()
        await service.tick()

    assert stage.line.tries == []


async def test_the_configuration_says_how_long_items_are_kept(stage: Stage):
    stage.more = "[retention]\nitems_days = 70\n"
    feed = stage.feeds.add("jobs", "Cook", "Driver")
    service = await stage.serve()
    await service.tick()
    await stage.sql.execute(f"{AGE} WHERE key = 'Cook'")
    feed.titles = ["Driver"]

    for _ in range(2):
        await stage.make_due()
        await service.tick()

    assert await keys(stage) == {"Cook", "Driver"}


async def test_a_source_that_is_no_longer_configured_forgets_nothing(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    other = stage.feeds.add("other", "Painter")
    service = await stage.serve()
    await service.tick()
    await stage.sql.execute(AGE)
    await stage.sql.execute(AGE_SOURCE)
    del stage.feeds.feeds["jobs"]
    other.add("Driver")
    newer = await stage.serve()
    await stage.make_due()

    await newer.tick()
    await newer.tick()

    assert "Cook" in await keys(stage)


async def test_old_jobs_messages_and_ticks_are_pruned(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")
    await stage.make_due()
    await service.tick()
    for table, column in (("jobs", "finished_at"), ("messages", "finished_at"), ("ticks", "started_at")):
        await stage.sql.execute(f"UPDATE wakebell.{table} SET {column} = now() - interval '400 days'")

    summary = await service.tick()

    assert summary["pruned"] > 0
    kinds = await stage.sql.fetch("SELECT kind FROM wakebell.messages")
    assert [row["kind"] for row in kinds] == ["alert"], "that nobody rang for 400 days"
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks") == 1
    assert await keys(stage) == {"Cook", "Driver"}
