"""Alerts of whole processes: a file that was changed for the worse, an alert that somebody takes on or mutes."""

from __future__ import annotations

import json

import pytest

from tests.fakes.switches import Healthchecks
from tests.flow.service import until
from tests.flow.stage import Stage

FAIL = """
from pydantic import BaseModel

from app.domain.errors import PermanentFailure


class Payload(BaseModel):
    pass


async def handle(payload, ctx):
    raise PermanentFailure("the mailbox of U4af4980629 is full")
"""


async def told(stage: Stage) -> list[str]:
    """What the inbox was told, line by line, without headings."""
    return [line for alert in await stage.alerts() for line in alert["text"].splitlines()[1:]]


async def test_a_file_that_was_changed_for_the_worse_is_heard_of_and_what_was_read_goes_on(stage: Stage):
    stage.feeds.add("board", "Cook")
    first, second = await stage.serve(), await stage.serve()
    stage.more = '[alerts]\nto = ["nobody"]\n'
    stage.configure()

    summaries = [await each.tick() for each in (first, second, first)]
    stage.more = ""
    stage.configure()
    mended = [await each.tick() for each in (second, first)]

    assert [summary["alerts"]["opened"] for summary in summaries] == [1, 0, 0]
    assert {summary["status"] for summary in summaries} == {"ok"}
    assert "wakebell.toml was changed and cannot be used; `wakebell check` tells why" in summaries[0]["errors"]
    assert sum(summary["alerts"]["resolved"] for summary in mended) == 1
    [opened, over] = await told(stage)
    assert "nobody" in opened
    assert opened.startswith("wakebell.toml was changed and cannot be used")
    assert over == "wakebell.toml can be used again"


async def test_a_worker_hears_of_it_too(stage: Stage):
    process = stage.bear("work", "--every", "1", "--poll", "0.2")
    await until(lambda: stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks WHERE status = 'ok'"), told="a tick")
    (stage.folder / "wakebell.toml").write_text("[servce]\n", encoding="utf-8")

    alert = await until(lambda: stage.sql.fetchrow("SELECT * FROM wakebell.alerts"), told="an alert")
    process.term()

    assert await process.ended() == 0
    assert alert["key"] == "config_broken:wakebell.toml"


async def test_what_is_muted_by_command_is_recorded_and_told_when_it_is_not_any_more(stage: Stage):
    stage.handler("mail", FAIL)
    service = await stage.serve()
    assert await stage.bear("mute", "job_failed:mail", "--for", "8h").ended() == 0
    await stage.enqueue("mail")

    muted = await service.tick()
    assert (muted["alerts"]["open"], await told(stage)) == (1, [])

    assert await stage.bear("unmute", "job_failed:mail").ended() == 0
    await service.tick()
    [line] = await told(stage)
    assert line == "Job mail failed (job 1): the mailbox of [secret] is full", (
        "LINE_USER is a secret of the environment"
    )

    listing = stage.bear("alerts", "--json")
    assert await listing.ended() == 0
    [alert] = json.loads(listing.log.splitlines()[-1])["alerts"]
    assert (alert["key"], alert["muted_until"]) == ("job_failed:mail", None)


@pytest.mark.parametrize("style", ["json", "console"])
async def test_no_secret_is_in_the_log_of_a_whole_process(stage: Stage, style: str):
    stage.handler("mail", FAIL)
    async with Healthchecks() as switch:
        service = await stage.serve(LOG_FORMAT=style, LOG_LEVEL="DEBUG", HEARTBEAT_URL=switch.heartbeat_url)
        await stage.enqueue("mail")
        summary = await service.tick()

    assert summary["jobs"]["failed"] == 1
    assert "the mailbox of [secret] is full" in service.log
    for secret in (stage.environ["LINE_USER"], stage.environ["LINE_TOKEN"], switch.address):
        assert secret not in service.log
    if style == "json":
        [line] = [json.loads(line) for line in service.log.splitlines() if "job attempt failed" in line]
        assert (line["tick"], line["job"], line["type"]) == (summary["tick"], 1, "mail")
