"""Schedules beside their handlers: what `check` and a start say of them, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from app import check, main, scheduled, settings
from app.domain.errors import ConfigError
from app.domain.schedules import Known

REPORT = """
from datetime import datetime

from pydantic import BaseModel, ConfigDict

class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid")

    days: int
    slot: datetime | None = None

async def handle(payload, ctx):
    pass
"""
DAILY = '[schedules.daily]\ncron = "0 9 * * *"\ntimezone = "Asia/Yangon"\njob = "report"\npayload = { days = 1 }\n'
CALL = '[schedules.call]\ncron = "@daily"\njob = "call_url"\npayload = { url = "https://api.example.com/x" }\n'

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def configured(tmp_path: Path, database_url: str) -> Callable[[str], dict[str, str]]:
    """The environment of a service with this configuration and a handler `report`."""

    def write(text: str) -> dict[str, str]:
        (tmp_path / "handlers").mkdir()
        (tmp_path / "handlers" / "report.py").write_text(REPORT)
        (tmp_path / "wakebell.toml").write_text(text)
        return {
            "DATABASE_URL": database_url,
            "CRON_SECRET": "a-cron-secret-of-thirty-characters",
            "WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml"),
            "CALL_URL_SECRET": "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        }

    return write


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            DAILY.replace('"report"', '"raport"'),
            'job: there is no handler "raport"; the types are: report',
        ),
        (
            DAILY.replace('"report"', '"fetch_source"'),
            'job: "fetch_source" is one of the service\'s own, which it queues itself',
        ),
        (DAILY.replace("days = 1", 'days = "s3cr3t of ours"'), "payload.days: Input should be a valid integer"),
        (DAILY.replace("days = 1", "days = 1, more = 2"), "payload.more: there is no such field; remove it"),
        (DAILY.replace("days = 1", ""), "payload.days: Field required"),
        (CALL, 'job: "call_url" needs a section in wakebell.toml'),
        (
            CALL + '[call_url]\nhosts = ["other.example.com"]\nsecret = "env:CALL_URL_SECRET"\n',
            "payload.url: api.example.com is none of the hosts",
        ),
    ],
)
async def test_a_job_that_no_handler_takes_is_told_by_check_and_refuses_the_start(
    configured: Callable[[str], dict[str, str]], text: str, told: str
):
    environ = configured(text)
    name = "call" if text.startswith(CALL) else "daily"

    found = await check.run(environ)
    with pytest.raises(ConfigError) as refused:
        main.build(settings.load(environ))

    [problem] = found.problems
    assert problem.startswith(f"{environ['WAKEBELL_CONFIG']}: schedules.{name}.{told}")
    assert "s3cr3t" not in problem
    assert refused.value.problems == [problem]


async def test_handlers_that_cannot_be_read_are_told_alone(configured: Callable[[str], dict[str, str]], tmp_path: Path):
    environ = configured(DAILY)
    (tmp_path / "handlers" / "report.py").write_text("import nothing_of_the_kind")

    [problem] = (await check.run(environ)).problems

    assert problem.startswith("handlers/report.py: cannot be imported")


async def test_a_call_is_a_job_too(configured: Callable[[str], dict[str, str]]):
    environ = configured(CALL + '[call_url]\nhosts = ["api.example.com"]\nsecret = "env:CALL_URL_SECRET"\n')

    assert (await check.run(environ)).problems == []


async def test_check_tells_each_in_words_with_its_next_three_slots(configured: Callable[[str], dict[str, str]]):
    every = '[schedules.often]\ncron = "@every 6h"\njob = "report"\npayload = { days = 1 }\n'

    found = await check.run(configured(DAILY + every))

    daily, often = [line for line in found.lines if line.startswith(("schedule daily", "schedule often"))]
    assert daily.startswith("schedule daily: every day at 09:00 Asia/Yangon, job report; next ")
    assert daily.count(" 09:00") == 4
    assert daily.endswith(" (Asia/Yangon)")
    assert often == "schedule often: every 6 hours, job report; counted from the next tick on"
    assert "; a slot of a schedule is fired by the first ring after it" in str(found.lines)
    assert found.lines[-1] == "everything is in order"


async def test_check_knows_what_an_interval_is_counted_from(
    configured: Callable[[str], dict[str, str]], database_url: str
):
    environ = configured('[schedules.often]\ncron = "@every 6h"\njob = "report"\npayload = { days = 1 }\n')
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO wakebell.schedules (name, fingerprint, anchor_at) "
        "VALUES ('often', '@every 21600s', date_trunc('day', now() - interval '3 days') + interval '17 minutes')"
    )
    await connection.close()

    [often] = [line for line in (await check.run(environ)).lines if line.startswith("schedule often")]

    assert often.count(":17") == 3
    assert often.endswith("(UTC)")


def known(**more: object) -> Known:
    given = {"name": "daily", "fingerprint": "0 9 * * * Asia/Yangon", "revision": 1, "anchor_at": NOW, "next_at": NOW}
    given["configured_at"] = NOW
    return Known(**(given | more))  # type: ignore[arg-type]


def test_a_line_says_the_day_by_its_own_clock(configured: Callable[[str], dict[str, str]]):
    daily = settings.load(configured(DAILY)).schedules["daily"]

    line = scheduled.line(daily, None, now=NOW, rings=timedelta(minutes=15))
    rarely = scheduled.line(daily, None, now=NOW, rings=timedelta(days=2))

    assert line == (
        "schedule daily: every day at 09:00 Asia/Yangon, job report; "
        "next tomorrow 09:00, Wed 2 Dec 09:00, Thu 3 Dec 09:00 (Asia/Yangon)"
    )
    assert rarely == f"{line}; of the slots between two rings (every 2880 minutes) the newest is fired"


def test_programs_are_told_how_it_stands(configured: Callable[[str], dict[str, str]]):
    daily = settings.load(configured(DAILY)).schedules["daily"]
    slot = NOW - timedelta(hours=9.5)
    there = known(fired_slot=slot, fired_at=slot, missed_count=2, missed_slot=slot)

    assert scheduled.told(daily, there, now=NOW) == {
        "name": "daily",
        "cron": "0 9 * * *",
        "timezone": "Asia/Yangon",
        "words": "every day at 09:00 Asia/Yangon",
        "job": "report",
        "catch_up": "latest",
        "last_slot": "2026-11-30T02:30:00Z",
        "fired_at": "2026-11-30T02:30:00Z",
        "due": True,
        "next": ["2026-12-01T02:30:00Z", "2026-12-02T02:30:00Z", "2026-12-03T02:30:00Z"],
        "missed": 2,
        "last_missed_slot": "2026-11-30T02:30:00Z",
    }
    unseen = scheduled.told(daily, known(fingerprint="another"), now=NOW)
    assert (unseen["due"], len(unseen["next"])) == (False, 3)
