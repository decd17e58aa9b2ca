"""Held while somebody sleeps or has been told enough, then told as one digest; floods as one message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.flow.service import Service
from tests.flow.stage import TELLING, Stage

HOUR = timedelta(hours=1)


def telling(limits: str) -> str:
    return TELLING.replace('to = "env:LINE_USER"\n', f'to = "env:LINE_USER"\n{limits}\n')


def hours(begin: timedelta, end: timedelta) -> str:
    """Quiet hours around or beside this instant, in UTC."""
    now = datetime.now(UTC)
    return f'quiet_hours = "{now + begin:%H:%M}-{now + end:%H:%M}"'


async def restarted(stage: Stage, service: Service, limits: str) -> Service:
    service.term()
    assert await service.ended() == 0
    stage.telling = telling(limits)
    return await stage.serve()


async def due(stage: Stage, service: Service) -> dict[str, Any]:
    await stage.make_due()
    return await service.tick()


async def test_what_comes_at_night_is_told_in_the_morning_as_one_digest(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    stage.telling = telling(hours(-HOUR, 2 * HOUR))
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")

    first = await due(stage, service)
    feed.add("Gardener", "Tailor")
    second = await due(stage, service)
    third = await service.tick()

    assert [summary["messages"]["held"] for summary in (first, second, third)] == [1, 3, 3]
    assert [summary["messages"]["composed"] for summary in (first, second, third)] == [0, 0, 0]
    assert {summary["status"] for summary in (first, second, third)} == {"ok"}
    assert stage.line.tries == []
    assert third["next_due_at"] is not None

    morning = await restarted(stage, service, hours(2 * HOUR, 3 * HOUR))
    told = await morning.tick()

    [push] = stage.line.tries
    assert stage.line.count("Driver", "Gardener", "Tailor") == {"Driver": 1, "Gardener": 1, "Tailor": 1}
    assert "3 new items" in push.texts[0]
    assert (told["messages"]["composed"], told["messages"]["sent"], told["messages"]["held"]) == (1, 1, 0)


async def test_the_end_of_the_quiet_hours_is_what_is_due_next(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    stage.telling = telling(hours(-HOUR, timedelta(minutes=10)))
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")

    summary = await due(stage, service)

    left = datetime.fromisoformat(summary["next_due_at"]) - datetime.fromisoformat(summary["started_at"])
    assert timedelta(minutes=8) < left <= timedelta(minutes=10)  # sources are due in half an hour


async def test_a_flood_is_one_message_with_the_number_of_what_it_leaves_out(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    stage.telling = telling("max_items_per_tick = 10")
    service = await stage.serve()
    await service.tick()
    feed.add(*(f"Gig {number:03}" for number in range(500)))

    summary = await due(stage, service)
    again = await service.tick()

    [push] = stage.line.tries
    [text] = push.texts
    assert text.startswith("500 new items\n\n")
    assert text.count("Gig ") == 10
    assert text.endswith("and 490 more")
    assert (summary["messages"]["composed"], again["messages"]["composed"]) == (1, 0)
    assert summary["sources"]["matched_items"] == 500
    counts = await stage.sql.fetch("SELECT message_id, count(*) FROM wakebell.owed GROUP BY message_id")
    assert [row["count"] for row in counts] == [500]


async def test_what_is_over_the_messages_of_a_day_is_told_the_next_day_as_one_digest(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    stage.telling = telling('timezone = "Asia/Bangkok"\nmax_messages_per_day = 1')
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")
    await due(stage, service)
    for title in ("Gardener", "Tailor"):
        feed.add(title)
        await due(stage, service)
    held = await service.tick()
    await stage.sql.execute("UPDATE wakebell.messages SET created_at = created_at - interval '1 day'")

    told = await service.tick()

    assert (held["messages"]["held"], told["messages"]["composed"]) == (2, 1)
    assert len(stage.line.tries) == 2
    assert stage.line.count("Driver", "Gardener", "Tailor") == {"Driver": 1, "Gardener": 1, "Tailor": 1}


async def test_what_a_killed_tick_was_composing_is_told_once(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    stage.telling = telling(hours(-HOUR, 2 * HOUR))
    service = await stage.serve()
    await service.tick()
    feed.add("Driver")
    await due(stage, service)
    service.kill()

    stage.telling = telling("")
    other = await stage.serve()
    await stage.end_leases()
    await other.tick()
    await other.tick()

    assert stage.line.count("Driver") == {"Driver": 1}


TEMPLATE = """
[subscriptions.bots]
any = ["bot"]
to = ["me"]
template = '''
> {{{{ item.title|upper }}}}
> {{{{ item.link }}}}
'''
"""


async def test_a_subscription_tells_its_items_in_its_own_words(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    stage.telling = telling("") + TEMPLATE
    service = await stage.serve()
    await service.tick()
    feed.add("Bot for a shop", "Driver")

    await due(stage, service)

    [push] = stage.line.tries
    assert "> BOT FOR A SHOP\n> https://jobs.example/Bot-for-a-shop\n\n" in push.texts[0] + "\n\n"
    assert "Driver\nhttps://jobs.example/Driver\njobs · all" in push.texts[0]
