"""A process may be killed at any instant: nothing is lost, nothing is told twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from tests.fakes.line import Push
from tests.flow.killable import POINTS
from tests.flow.service import KEPT, KILLABLE, PATIENCE, ROOT
from tests.flow.stage import Stage

KILLED = -signal.SIGKILL


async def prime(stage: Stage) -> None:
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
    await prime(stage)
    survivor = await stage.serve()
    await survivor.tick()
    titles = publish(stage, "first")
    await stage.make_due()
    mortal = await stage.serve(die_at=point)

    await mortal.ring_in_vain()

    assert await mortal.ended() == KILLED
    for turn in ("second", "third"):
        await stage.end_leases()
        titles += publish(stage, turn)
        await stage.make_due()
        await survivor.tick()
    assert stage.line.count(*titles) == dict.fromkeys(titles, 1)
    stage.line.assert_keys_frozen()
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.owed WHERE message_id IS NULL") == 0
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE status IN ('running', 'failed')") == 0


@pytest.mark.parametrize("answered", [True, False])
async def test_a_process_that_dies_once_line_has_the_push_leaves_it_told_once(stage: Stage, answered: bool):
    await prime(stage)
    survivor = await stage.serve()
    await survivor.tick()
    titles = publish(stage, "first")
    await stage.make_due()
    mortal = await stage.serve()

    def kill(_: Push) -> None:
        stage.line.when_stored = lambda _: None
        mortal.kill()

    stage.line.when_stored = kill
    if not answered:
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


class Nursery:
    """Lives that cost no start: children of one process that has imported the service."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def open(cls, stage: Stage) -> Nursery:
        stage.configure()
        inherited = {name: value for name, value in os.environ.items() if name in KEPT}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(KILLABLE),
            "lives",
            cwd=stage.folder,
            env={**inherited, "PYTHONPATH": str(ROOT), **stage.environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return cls(process)

    async def live(self, die_at: int) -> tuple[int, int]:
        """One tick that dies at its so-manyth step: its exit status, and how many steps it made if it lived."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{die_at} tick --json\n".encode())
        steps = 0
        async with asyncio.timeout(PATIENCE):
            while line := (await self._process.stdout.readline()).decode():
                what, _, told = line.strip().partition(": ")
                if what == "steps":
                    steps = int(told)
                elif what == "ended":
                    return int(told), steps
        raise AssertionError("the nursery has ended")

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def test_thirty_kills_at_random_instants_leave_each_item_told_once(stage: Stage, record_property):
    seed = random.SystemRandom().getrandbits(32)
    record_property("seed", seed)
    print(f"seed: {seed}")
    chance = random.Random(seed)
    await prime(stage)
    nurseries = [await Nursery.open(stage) for _ in range(2)]
    try:
        titles, killed = await _thirty(stage, nurseries, chance)
        for _ in range(2):
            await stage.end_leases()
            await stage.make_due()
            assert (await nurseries[0].live(0))[0] == 0
    finally:
        for nursery in nurseries:
            await nursery.close()

    assert killed >= 20  # those beyond their tick's last step live
    assert stage.line.count(*titles) == dict.fromkeys(titles, 1)
    stage.line.assert_keys_frozen()


async def _thirty(stage: Stage, nurseries: list[Nursery], chance: random.Random) -> tuple[list[str], int]:
    """Two lives at once, fifteen times; each finds news, and what the ones before it have left. Titles and deaths."""
    await nurseries[0].live(0)  # the silent round
    titles = publish(stage, "measured")
    await stage.make_due()
    _, steps = await nurseries[0].live(0)
    assert steps > 20
    killed = 0
    for turn in range(15):
        titles += publish(stage, f"turn {turn}")
        if chance.random() < 0.3:
            stage.line.answers.append("drop")
        await stage.make_due()
        ended = await asyncio.gather(*(nursery.live(chance.randint(1, steps)) for nursery in nurseries))
        killed += sum(status == KILLED for status, _ in ended)
        await stage.end_leases()
    return titles, killed


def test_each_point_is_one_of_the_batch():
    assert len(POINTS) >= 6
    assert Path(KILLABLE).is_file()
