"""Loud: what fails is told once and what heals is told once, by however many replicas."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from tests.fakes.line import Line
from tests.flow.service import Service
from tests.flow.stage import Stage

MAIL = """
import asyncio

from pydantic import BaseModel

from app.domain.errors import PermanentFailure


class Payload(BaseModel):
    fail: bool = False


async def handle(payload, ctx):
    await asyncio.sleep(0.05)
    if payload.fail:
        raise PermanentFailure("the mailbox is full")
"""
MORE = """
[channels.second]
kind = "line"
token = "env:LINE_TOKEN"
base_url = "{url}"

[recipients.boss]
channel = "second"
to = "U0000000002"

[subscriptions.gigs]
sources = ["gigs"]
to = ["boss"]

[alerts]
to = {to}
"""

FAIL, SUCCEED = '{"fail": true}', "{}"

JOBS = re.compile(r"(Job mail failed \(job|\d+ jobs of mail failed, the last is) \d+")  # as many as the first judge saw
SOURCE = "Source board failed 3 times in a row"
MESSAGE = "A message to boss could not be delivered"
OVER = [
    "Jobs of mail go well again; ",
    "Source board answers again",
    "Messages to boss arrive again",
]


@pytest.fixture
async def second() -> AsyncIterator[Line]:
    """LINE as another channel reaches it."""
    async with Line() as line:
        yield line


@pytest.fixture
async def replicas(stage: Stage, second: Line) -> list[Service]:
    """Two, with two primed sources; `me` hears of alerts, `boss` of gigs by another channel."""
    stage.feeds.add("board", "Cook")
    stage.feeds.add("gigs", "Cook")
    stage.handler("mail", MAIL)
    stage.more = MORE.format(url=second.url, to='["me"]')
    services = [await stage.serve(), await stage.serve()]
    await services[0].tick()
    return services


async def ring(*services: Service) -> Counter[str]:
    """The alerts' counters of ticks at the same time, and what they left open; then again, for what they left over."""
    counted: Counter[str] = Counter()
    for _ in range(2):
        for summary in await asyncio.gather(*(service.tick() for service in services)):
            counted.update({name: summary["alerts"][name] for name in ("opened", "resolved")})
    counted["open"] = (await services[0].tick())["alerts"]["open"]
    return counted


def told(line: Line) -> list[str]:
    """What has been told of the service itself, line by line, without the reasons of others."""
    texts = [text for push in line.accepted.values() for text in push.texts if text.startswith("wakebell: ")]
    return [told.partition(": 127.0.0.1")[0] for text in texts for told in text.splitlines()[1:]]


async def test_two_replicas_tell_each_alert_once_and_each_recovery_once(
    stage: Stage, second: Line, replicas: list[Service]
):
    for number in range(1, 7):
        await stage.sql.execute("UPDATE wakebell.sources SET failures = 2 WHERE name = 'board'")
        stage.feeds.feeds["board"].broken = "error"
        stage.feeds.feeds["gigs"].add(f"Driver {number}")
        second.answers.append(400)
        for _ in range(24):  # more than one of them runs at once, so that some fail in each
            await stage.enqueue("mail", FAIL)
        await stage.make_due()
        assert await ring(*replicas) == {"opened": 3, "resolved": 0, "open": 3}

        stage.feeds.feeds["board"].broken = None
        stage.feeds.feeds["gigs"].add(f"Painter {number}")
        await stage.enqueue("mail", SUCCEED)
        await stage.make_due()
        assert await ring(*replicas) == {"opened": 0, "resolved": 3, "open": 0}

    assert sum(bool(JOBS.match(line)) for line in told(stage.line)) == 6
    for each in (SOURCE, MESSAGE, *OVER):
        assert sum(line.startswith(each) for line in told(stage.line)) == 6, each
    assert len(told(stage.line)) == 36
    assert told(second) == []
    stage.line.assert_keys_frozen()


async def test_a_source_is_told_at_its_third_failure_and_no_sooner_nor_later(stage: Stage, replicas: list[Service]):
    stage.feeds.feeds["board"].broken = "error"

    opened = []
    for _ in range(5):
        await stage.make_due()
        opened.append((await replicas[0].tick())["alerts"]["opened"])

    assert opened == [0, 0, 1, 0, 0]
    assert told(stage.line) == [SOURCE]


async def test_a_job_that_fails_is_told_though_the_next_of_its_type_went_well_in_the_same_tick(
    stage: Stage, replicas: list[Service]
):
    failed = await stage.enqueue("mail", FAIL, serial_key="in order")
    await stage.enqueue("mail", SUCCEED, serial_key="in order")

    ticks = [(await replicas[0].tick())["alerts"] for _ in range(3)]

    assert ticks == [
        {"open": 1, "opened": 1, "resolved": 0},
        {"open": 0, "opened": 0, "resolved": 1},
        {"open": 0, "opened": 0, "resolved": 0},
    ]
    assert told(stage.line) == [
        f"Job mail failed (job {failed}): the mailbox is full",
        "Jobs of mail go well again; 1 failed one is kept: GET /api/jobs?type=mail&status=failed",
    ]


async def test_many_failures_in_one_tick_are_one_message(stage: Stage, replicas: list[Service]):
    for number in range(14):
        stage.handler(f"type{number:02}", MAIL)
    service = await stage.serve()
    for _ in range(3):
        for number in range(14):
            await stage.enqueue(f"type{number:02}", FAIL)

    summary = await service.tick()

    assert summary["alerts"] == {"open": 14, "opened": 14, "resolved": 0}
    [push] = [push for push in stage.line.accepted.values() if "wakebell: " in push.texts[0]]
    lines = push.texts[0].splitlines()
    assert re.fullmatch(r"3 jobs of type00 failed, the last is \d+: the mailbox is full", lines[1])
    assert lines[-1] == "and 5 more"
    await service.tick()
    assert len(stage.line.accepted) == 1


async def test_an_alert_that_cannot_be_delivered_opens_no_other(stage: Stage, second: Line, replicas: list[Service]):
    stage.more = MORE.format(url=second.url, to='["boss"]')
    service = await stage.serve()
    second.answers.append(400)
    await stage.enqueue("mail", FAIL)

    ticks = [(await service.tick())["alerts"] for _ in range(3)]

    assert [tick["opened"] for tick in ticks] == [1, 0, 0]
    assert [tick["open"] for tick in ticks] == [1, 1, 1]
    assert len(second.tries) == 1
    rows = await stage.sql.fetch("SELECT recipient, status FROM wakebell.messages WHERE kind = 'alert' ORDER BY id")
    assert [tuple(row) for row in rows] == [("boss", "failed"), ("inbox", "sent")], "it is read in the inbox then"


async def test_a_message_that_fails_is_told_by_other_channels_than_its_own(
    stage: Stage, second: Line, replicas: list[Service]
):
    stage.more = MORE.format(url=second.url, to='["boss", "me", "inbox"]')
    service = await stage.serve()
    stage.feeds.feeds["gigs"].add("Driver")
    second.answers.append(400)
    await stage.make_due()

    summary = await service.tick()

    assert summary["alerts"] == {"open": 1, "opened": 1, "resolved": 0}
    assert told(stage.line) == [MESSAGE]
    assert len(second.tries) == 1, "the channel that fails is not what carries the alert"
    rows = await stage.sql.fetch(
        "SELECT recipient, status FROM wakebell.messages WHERE kind = 'alert' ORDER BY recipient"
    )
    assert [tuple(row) for row in rows] == [("inbox", "sent"), ("me", "sent")]


async def test_who_is_configured_no_more_leaves_no_alert_open(stage: Stage, second: Line, replicas: list[Service]):
    stage.feeds.feeds["gigs"].add("Driver")
    second.answers.append(400)
    await stage.make_due()
    await replicas[0].tick()
    stage.more = ""
    service = await stage.serve()

    ticks = [(await service.tick())["alerts"] for _ in range(2)]

    assert [(tick["open"], tick["resolved"]) for tick in ticks] == [(0, 1), (0, 0)]
    texts = await stage.sql.fetch("SELECT text FROM wakebell.messages WHERE kind = 'alert' AND channel = 'inbox'")
    assert [row["text"] for row in texts] == ["wakebell: alert closed\nRecipient boss is configured no more"]


async def test_check_says_the_slowest_schedule_that_is_enough(stage: Stage):
    stage.feeds.add("board")
    stage.feeds.add("gigs")
    process = stage.bear("check")

    assert await process.ended() == 0

    [line] = [line for line in process.log.splitlines() if line.startswith("schedule: ")]
    assert line == (
        "schedule: ring every 30 minutes, as often as board wants to be read; no source wants it more often; "
        "expected_every_minutes says 15 minutes, and every further ring only costs"
    )
