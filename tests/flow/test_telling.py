"""From feeds to a phone: silent at first, then each item once, whoever rings and how often."""

from __future__ import annotations

import asyncio

from tests.flow.service import until
from tests.flow.stage import USER, Stage


async def test_the_first_round_is_silent_and_each_source_leaves_a_note_in_the_inbox(stage: Stage):
    stage.feeds.add("rss_jobs", "Bot for a shop", "Cook")
    stage.feeds.add("atom_jobs", "Gardener", format="atom")
    stage.feeds.add("json_jobs", "Driver", format="json")
    service = await stage.serve()

    summary = await service.tick()

    assert summary["status"] == "ok"
    assert summary["sources"] | {"due": 3, "fetched": 3, "primed": 3, "new_items": 4} == summary["sources"]
    assert summary["messages"]["composed"] == 0
    assert stage.line.tries == []
    notes = sorted(await stage.notes())
    assert [name in note for name, note in zip(("atom_jobs", "json_jobs", "rss_jobs"), notes, strict=True)] == [
        True
    ] * 3
    assert "2" in notes[2]


async def test_ten_ticks_at_once_on_two_processes_send_a_new_item_in_one_push(stage: Stage):
    stage.feeds.add("rss_jobs", "Bot for a shop")
    stage.feeds.add("atom_jobs", "Gardener", format="atom")
    stage.feeds.add("json_jobs", "Driver", format="json")
    one, other = await asyncio.gather(stage.serve(), stage.serve())
    await one.tick()
    stage.feeds.feeds["atom_jobs"].add("Chatbot for a hotel")
    await stage.make_due()

    summaries = await asyncio.gather(*(service.tick() for service in [one, other] * 5))

    [push] = stage.line.tries
    assert push.to == USER
    assert "Chatbot for a hotel" in push.texts[0]
    assert "https://jobs.example/Chatbot-for-a-hotel" in push.texts[0]
    assert sum(summary["messages"]["sent"] for summary in summaries) == 1
    assert sum(summary["sources"]["due"] for summary in summaries) == 3

    await stage.make_due()
    again = await one.tick()

    assert again["sources"]["unchanged"] == 3
    assert len(stage.line.tries) == 1


async def test_what_one_tick_finds_in_several_sources_is_one_message(stage: Stage):
    stage.feeds.add("rss_jobs")
    stage.feeds.add("json_jobs", format="json")
    service = await stage.serve()
    await service.tick()
    stage.feeds.feeds["rss_jobs"].add("Cook")
    stage.feeds.feeds["json_jobs"].add("Driver")
    await stage.make_due()

    summary = await service.tick()

    assert summary["sources"]["matched_items"] == 2
    assert stage.line.count("Cook", "Driver") == {"Cook": 1, "Driver": 1}
    assert len(stage.line.tries) == 1


async def test_six_processes_that_come_up_on_one_new_source_prime_it_once(stage: Stage):
    stage.feeds.add("rss_jobs", "Cook")
    services = await asyncio.gather(*(stage.serve() for _ in range(6)))

    summaries = await asyncio.gather(*(service.tick() for service in services))

    assert sum(summary["sources"]["primed"] for summary in summaries) == 1
    assert len(await stage.notes()) == 1


async def test_a_source_with_another_address_primes_again(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    service.term()
    assert await service.ended() == 0
    stage.feeds.add("moved", "Cook", "Driver")
    stage.feeds.feeds = {"jobs": stage.feeds.feeds["moved"], "moved": stage.feeds.feeds["moved"]}
    service = await stage.serve()

    summary = await service.tick()

    assert summary["sources"]["primed"] == 2
    assert stage.line.tries == []


async def test_no_connection_to_the_database_is_left_after_a_tick(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await asyncio.gather(*(service.tick() for _ in range(4)))
    stage.feeds.feeds["jobs"].add("Driver")
    await stage.make_due()

    summary = await service.tick()

    assert summary["messages"]["sent"] == 1
    await stage.until_disconnected()


async def test_a_scheduler_that_gives_up_and_rings_again_changes_nothing(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")
    await stage.make_due()
    impatient = asyncio.create_task(service.ring())
    await until(lambda: feed.fetches == 2, told="the tick fetches")
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)

    summary = await service.tick()

    await until(lambda: stage.line.count("Driver")["Driver"], told="the tick that nobody waits for goes on")
    await stage.until_disconnected()
    assert summary["status"] == "ok"
    assert stage.line.count("Driver") == {"Driver": 1}
    assert feed.fetches == 2


async def test_a_scheduler_that_comes_seven_hours_late_and_then_in_a_burst_finds_one_round_to_do(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")
    await stage.sql.execute(
        "UPDATE wakebell.sources SET due_at = now() - interval '7 hours', grid_from = grid_from - interval '7 hours'"
    )

    summaries = await asyncio.gather(*(service.tick() for _ in range(5)))

    assert sum(summary["sources"]["due"] for summary in summaries) == 1
    assert feed.fetches == 2
    assert stage.line.count("Driver") == {"Driver": 1}


async def test_letters_that_postgresql_cannot_hold_keep_no_item_back(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook", format="json")
    service = await stage.serve()
    await service.tick()
    feed.add("Nul\0 inside", "Half \ud83d a pair", "Driver")
    await stage.make_due()

    summary = await service.tick()

    assert summary["status"] == "ok"
    assert summary["sources"]["new_items"] == 3
    assert "Nul inside" in stage.line.told
    assert stage.line.count("Driver") == {"Driver": 1}


async def test_once_it_has_answered_all_is_committed_and_nothing_runs(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")
    await stage.make_due()

    summary = await service.tick()

    service.kill()
    statuses = await stage.sql.fetch("SELECT DISTINCT status FROM wakebell.jobs")
    assert [row["status"] for row in statuses] == ["done"]
    assert summary["messages"]["sent"] == 1
    assert await stage.sql.fetchval("SELECT status FROM wakebell.messages WHERE kind = 'items'") == "sent"
