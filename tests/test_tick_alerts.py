"""Each thing that goes wrong, provoked on two whole replicas: told once, and once when it is over."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app import tick
from app.context import Context, Service
from app.domain.errors import PermanentFailure
from app.settings import address_of
from tests.fakes.batches import API_TOKEN, CRON_SECRET, a_service, runnable

CONFIGURATION = """
[channels.line]
kind = "line"
token = "a-token-of-line"
base_url = "http://127.0.0.1:9"

[recipients.me]
channel = "line"
to = "U00000000000000000000000000000001"

[sources.board]
kind = "feed"
url = "http://127.0.0.1:9/feed.xml"
every_minutes = 30

[schedules.daily]
cron = "0 9 1 1 *"
job = "mail"

[reminders.day_before]
before = "24h"
"""
BROKEN = f'{CONFIGURATION}\n[alerts]\nto = ["nobody-of-that-name"]\n'

HANDLER = """
from pydantic import BaseModel


class Payload(BaseModel):
    pass


async def handle(payload, ctx):
    pass
"""
"""Named by the schedule; another one takes its place."""

State = Callable[["Stage"], Awaitable[Any]]


class Stage:
    """Two replicas over one database."""

    def __init__(self, sql: asyncpg.Connection, folder: Path, replicas: list[Service]) -> None:
        self.sql = sql
        self.folder = folder
        self.replicas = replicas
        self.fails = True

    async def handle(self, payload: Any, ctx: Context) -> None:
        if self.fails:
            raise PermanentFailure("the mailbox is full")

    async def ring(self) -> dict[str, int]:
        """Both at once, twice: what one leaves to the other is done then."""
        counted = {"opened": 0, "resolved": 0}
        for _ in range(2):
            rings = (
                tick.run(each, budget=timedelta(seconds=25), max_jobs=100, trigger="test") for each in self.replicas
            )
            for summary in await asyncio.gather(*rings):
                for name in counted:
                    counted[name] += summary["alerts"][name]
        return counted

    async def told(self) -> list[str]:
        """The lines of all alerts, without their headings."""
        texts = await self.sql.fetch("SELECT text FROM wakebell.messages WHERE kind = 'alert' ORDER BY id")
        return [line for row in texts for line in row["text"].splitlines()[1:]]


@pytest.fixture
async def stage(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    sql = await asyncpg.connect(database_url)
    path = tmp_path / "wakebell.toml"
    for name, value in {
        "DATABASE_URL": database_url,
        "WAKEBELL_CONFIG": str(path),
        "CRON_SECRET": CRON_SECRET,
        "API_TOKEN": API_TOKEN,
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "mail.py").write_text(HANDLER, encoding="utf-8")
    replicas = [a_service(database_url, tmp_path, CONFIGURATION) for _ in range(2)]
    stage = Stage(sql, tmp_path, replicas)
    handlers = {"mail": runnable("mail", stage.handle)}
    stage.replicas = [dataclasses.replace(each, handlers=handlers) for each in replicas]
    await sql.execute(  # the source is not due, and fetched nowhere
        "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, grid_from, due_at, primed_at) "
        "VALUES ('board', $1, 1800, now(), now() + interval '9 days', now())",
        replicas[0].settings.sources["board"].fingerprint,
    )
    await stage.ring()  # what is configured is known from now on
    await sql.execute("DELETE FROM wakebell.ticks")
    yield stage
    await sql.close()


def script(text: str) -> State:
    async def run(stage: Stage) -> None:
        await stage.sql.execute(text)

    return run


async def fail(stage: Stage) -> None:
    stage.fails = True
    await stage.sql.execute("SELECT FROM wakebell.enqueue('mail')")


async def succeed(stage: Stage) -> None:
    stage.fails = False
    await stage.sql.execute("SELECT FROM wakebell.enqueue('mail')")


async def break_file(stage: Stage) -> None:
    (stage.folder / "wakebell.toml").write_text(BROKEN, encoding="utf-8")


async def mend_file(stage: Stage) -> None:
    (stage.folder / "wakebell.toml").write_text(f"{CONFIGURATION}\n# mended\n", encoding="utf-8")


async def block(stage: Stage) -> None:
    configured = stage.replicas[0].settings
    address = address_of(configured, configured.recipients["me"])
    await stage.replicas[0].stores.reach.block(address=address, name="me", channel="line", reason="they left")


async def nothing(_: Stage) -> None:
    """It is over by itself."""


async def wait_for_nobody(stage: Stage) -> None:
    """A job that is due for long in a queue that is full, while ticks came."""
    await stage.sql.execute(
        "INSERT INTO wakebell.ticks (trigger, status, started_at) "
        "SELECT 'http', 'ok', now() - make_interval(mins => n * 15) FROM generate_series(1, 20) AS n; "
        "INSERT INTO wakebell.queues (name, max_running) VALUES ('mails', 1); "
        "INSERT INTO wakebell.jobs (id, type, queue, status, lease_until, lease_token) OVERRIDING SYSTEM VALUE "
        "VALUES (7001, 'mail', 'mails', 'running', now() + interval '1 hour', 1); "
        "INSERT INTO wakebell.jobs (id, type, queue, run_after) OVERRIDING SYSTEM VALUE "
        "VALUES (7002, 'mail', 'mails', now() - interval '50 minutes')"
    )


TICKS = "INSERT INTO wakebell.ticks (trigger, status, started_at) VALUES "

PROVOKED: list[tuple[State, State, str, str | None]] = [
    (fail, succeed, "Job mail failed (job 1): the mailbox is full", "Jobs of mail go well again"),
    (
        script("INSERT INTO wakebell.jobs (type, run_after) VALUES ('of_nobody', now() - interval '25 hours')"),
        script("DELETE FROM wakebell.jobs WHERE type = 'of_nobody'"),
        "Nobody handles jobs of the type of_nobody, add its handler or cancel them",
        "Jobs of the type of_nobody wait for a handler no more",
    ),
    (
        wait_for_nobody,
        script("DELETE FROM wakebell.jobs WHERE queue = 'mails'"),
        "Queue mails is behind, its first job is 7002: mail",
        "Queue mails has caught up",
    ),
    (
        script(f"{TICKS} ('http', 'ok', now() - interval '7 hours')"),
        nothing,
        "Nobody rang for too long, see whether the scheduler still runs: 7 h",
        "Ticks come on time again",
    ),
    (
        script(f"{TICKS} " + ", ".join(f"('http', 'failed', now() - interval '{n} minutes')" for n in (6, 7, 8))),
        nothing,
        "Ticks fail one after another, see the log",
        "Ticks go well again",
    ),
    (
        script(f"{TICKS} " + ", ".join(f"('http', NULL, now() - interval '{n} minutes')" for n in (6, 7, 8))),
        nothing,
        "Ticks fail one after another, see the log: they begin and do not end: look at the host's memory",
        "Ticks go well again",
    ),
    (
        break_file,
        mend_file,
        "wakebell.toml was changed and cannot be used, what was read before it still counts",
        "wakebell.toml can be used again",
    ),
    (
        script("UPDATE wakebell.sources SET failures = 3, last_error = 'no feed', last_failure_at = now()"),
        script("UPDATE wakebell.sources SET failures = 0, last_success_at = clock_timestamp()"),
        "Source board failed 3 times in a row: no feed",
        "Source board answers again",
    ),
    *(
        (
            script(f"UPDATE wakebell.sources SET state = '{state}', state_at = now(), empty_rounds = 3"),
            script("UPDATE wakebell.sources SET state = 'ok', state_at = clock_timestamp(), empty_rounds = 0"),
            f"Source board {words}",
            None,
        )
        for state, words in (
            ("blind", "lists nothing"),
            ("silent", "has had nothing"),
            ("unstable", "gives what is known"),
        )
    ),
    (
        script(
            "INSERT INTO wakebell.channels (name, parked_at, parked_until) VALUES ('line', now(), now() + '9 days')"
        ),
        script("UPDATE wakebell.channels SET parked_until = NULL"),
        "Channel line takes nothing for now",
        "Channel line takes messages again",
    ),
    (
        script("INSERT INTO wakebell.channels (name, low_at, low_until) VALUES ('line', now(), now() + '9 days')"),
        script("UPDATE wakebell.channels SET low_until = now()"),
        "Messages of channel line run low for this month",
        "Channel line has messages enough again",
    ),
    (
        block,
        script("UPDATE wakebell.recipients SET blocked_at = NULL"),
        "Recipient me is not reached any more, see whether the address is right (wakebell unblock me): they left",
        "Recipient me is written to again",
    ),
    (
        script("UPDATE wakebell.schedules SET missed_at = now(), missed_slot = '2026-11-30 09:00+00'"),
        script("UPDATE wakebell.schedules SET fired_at = clock_timestamp()"),
        "Schedule daily was missed: 2026-11-30T09:00Z",
        "Schedule daily fires again",
    ),
    (
        script("UPDATE wakebell.reminder_rules SET failures = 1, failed_at = now(), last_error = 'no such column'"),
        script("UPDATE wakebell.reminder_rules SET failures = 0"),
        "The query of reminder day_before fails (in a row: 1): no such column",
        "The query of reminder day_before goes well again",
    ),
    (
        script(
            "INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at) "
            "VALUES ('me', 'line', 'uncertain', '', '', now())"
        ),
        script(
            "INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at, sent_at) "
            "VALUES ('me', 'line', 'sent', '', '', now(), clock_timestamp())"
        ),
        "A message to me could not be delivered",
        "Messages to me arrive again",
    ),
]


@pytest.mark.parametrize(("provoke", "heal", "told", "over"), PROVOKED, ids=[each[2][:40] for each in PROVOKED])
async def test_it_is_told_once_and_once_when_it_is_over(
    stage: Stage, provoke: State, heal: State, told: str, over: str | None
):
    await provoke(stage)
    rung = await stage.ring()
    if heal is not nothing:
        assert rung == {"opened": 1, "resolved": 0}
        [line] = await stage.told()
        assert line.startswith(told)

    await heal(stage)
    healed = await stage.ring()

    assert (rung["opened"] + healed["opened"], rung["resolved"] + healed["resolved"]) == (1, 1)
    first, last = await stage.told()
    assert first.startswith(told)
    assert last.startswith(over or "")
    assert await stage.ring() == {"opened": 0, "resolved": 0}
    assert len(await stage.told()) == 2


async def test_a_secret_in_an_error_leaves_the_tick_masked(stage: Stage):
    ctx_errors = await _errors_of(stage, f"a-token-of-line and {CRON_SECRET}")

    assert ctx_errors == ["job type mail failed"], "names and no reasons"
    row = await stage.sql.fetchval("SELECT text FROM wakebell.messages WHERE kind = 'alert'")
    assert row.endswith("[secret] and [secret]")


async def _errors_of(stage: Stage, reason: str) -> list[str]:
    async def handle(payload: Any, ctx: Context) -> None:
        raise PermanentFailure(reason)

    service = dataclasses.replace(stage.replicas[0], handlers={"mail": runnable("mail", handle)})
    await stage.sql.execute("SELECT FROM wakebell.enqueue('mail')")
    summary = await tick.run(service, budget=timedelta(seconds=25), max_jobs=100, trigger="test")
    errors: list[str] = summary["errors"]
    return errors
