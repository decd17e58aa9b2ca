"""A process may be killed at any instant: nothing is lost, nothing is told twice."""

from __future__ import annotations

import asyncio
import random
import signal
import sys

import pytest

from tests.fakes.line import Push
from tests.flow.killable import POINTS
from tests.flow.processes import Process
from tests.flow.stage import Stage

KILLED = -signal.SIGKILL


def prime(stage: Stage) -> None:
    """Three sources, of which two say when they are unchanged."""
    stage.feeds.add("rss_jobs", "Old")
    stage.feeds.add("atom_jobs", "Older", format="atom", validators=False)
    stage.feeds.add("json_jobs", "Oldest", format="json")


def publish(stage: Stage, turn: str) -> list[str]:
    """One item in each source."""
    titles = [f"{turn} {name}" for name in stage.feeds.feeds]
    for feed, title in zip(stage.feeds.feeds.values(), titles, strict=True):
        feed.add(title)
    return titles


@pytest.mark.parametrize("point", POINTS)
async def test_a_process_that_dies_leaves_each_item_told_once(stage: Stage, point: str):
    prime(stage)
    survivor = await stage.serve()
    await survivor.tick()
    titles = publish(stage, "first")
    await stage.make_due()
    mortal = await stage.serve(die_at=point)

    await mortal.ring_in_vain()

    assert await mortal.ended() == KILLED
    await stage.end_leases()
    for _ in range(2):  # nothing else is new: a validator kept too early would hide the items now
        await stage.make_due()
        await survivor.tick()
    assert stage.line.count(*titles) == dict.fromkeys(titles, 1)
    titles += publish(stage, "second")
    await stage.make_due()
    await survivor.tick()
    assert stage.line.count(*titles) == dict.fromkeys(titles, 1)
    stage.line.assert_keys_frozen()
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.owed WHERE message_id IS NULL") == 0
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status IN ('running', 'failed')") == 0


@pytest.mark.parametrize("answer", ["given", "lost"])
async def test_a_process_that_dies_once_line_has_the_push_leaves_it_told_once(stage: Stage, answer: str):
    prime(stage)
    survivor = await stage.serve()
    await survivor.tick()
    titles = publish(stage, "first")
    await stage.make_due()
    mortal = await stage.serve()

    def kill(_: Push) -> None:
        stage.line.when_stored = lambda _: None
        mortal.kill()

    stage.line.when_stored = kill
    if answer == "lost":
        stage.line.answers.append("drop")

    await mortal.ring_in_vain()

    assert await mortal.ended() == KILLED
    await stage.end_leases()
    for _ in range(2):
        await survivor.tick()
    assert stage.line.count(*titles) == dict.fromkeys(titles, 1)
    assert len(stage.line.tries) == 2
    stage.line.assert_keys_frozen()
    assert await stage.sql.fetchval("SELECT repeated FROM wakebell.messages WHERE kind = 'items'") is True


async def test_a_source_whose_first_round_is_killed_is_primed_by_the_next(stage: Stage):
    stage.feeds.add("jobs", "Old")
    mortal = await stage.serve(die_at="before the commit of the round")
    await mortal.ring_in_vain()
    await mortal.ended()
    await stage.end_leases()
    survivor = await stage.serve()

    summary = await survivor.tick()

    assert summary["sources"]["primed"] == 1
    assert stage.line.tries == []


async def test_a_suspended_process_that_wakes_after_its_lease_changes_nothing(stage: Stage):
    prime(stage)
    sleeper = await stage.serve()
    other = await stage.serve()
    await sleeper.tick()
    titles = publish(stage, "first")
    await stage.make_due()
    suspended = asyncio.Event()

    def suspend(_: Push) -> None:
        sleeper.process.send(signal.SIGSTOP)
        suspended.set()

    stage.line.when_stored = suspend
    ringing = asyncio.create_task(sleeper.ring())
    await suspended.wait()
    await stage.end_leases()
    taken_over = await other.tick()

    sleeper.process.send(signal.SIGCONT)

    answer = await ringing
    assert answer.status_code == 200
    assert answer.json()["messages"]["sent"] == 0
    assert taken_over["messages"]["sent"] == 1
    assert stage.line.count(*titles) == dict.fromkeys(titles, 1)
    assert await stage.sql.fetchval("SELECT status FROM wakebell.messages WHERE kind = 'items'") == "sent"
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status <> 'done'") == 0


async def test_thirty_kills_at_random_instants_leave_each_item_told_once(stage: Stage, record_property):
    seed = random.getrandbits(32)  # by the seed that pytest-randomly names
    record_property("seed", seed)
    sys.stdout.write(f"seed: {seed}")
    chance = random.Random(seed)
    prime(stage)
    await live(stage)  # the silent round
    titles = publish(stage, "measured")
    await stage.make_due()
    steps = int((await live(stage)).log.rpartition("steps: ")[2])

    killed = turn = 0
    while killed < 30:
        titles += publish(stage, f"turn {(turn := turn + 1)}")
        if chance.random() < 0.3:
            stage.line.answers.append("drop")
        await stage.make_due()
        lives = [live(stage, die_at=chance.randint(1, steps)) for _ in range(2)]
        killed += sum([await life.ended() == KILLED for life in await asyncio.gather(*lives)])
        await stage.end_leases()
    for _ in range(2):
        await stage.make_due()
        assert await (await live(stage)).ended() == 0
        await stage.end_leases()

    unsent = await stage.sql.fetch("SELECT * FROM wakebell.messages WHERE status <> 'sent'")
    assert [dict(row) for row in unsent] == []
    assert stage.line.count(*titles) == dict.fromkeys(titles, 1)
    stage.line.assert_keys_frozen()


async def live(stage: Stage, *, die_at: int = 0) -> Process:
    """One tick of one process, which has ended. It finds news, and what the ones before it have left."""
    process = stage.bear("tick", die_at=die_at)
    await process.ended()
    return process
