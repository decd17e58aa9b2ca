from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from app import alerts, plugins, settings
from app.context import Service
from app.domain.messages import Body
from tests.fakes.batches import a_batch, a_service

CONFIGURATION = """
[service]
name = "gigs"

[channels.line]
kind = "line"
token = "a-token-of-line"

[recipients.me]
channel = "line"
to = "U00000000000000000000000000000001"
language = "th"

[recipients.boss]
channel = "inbox"

[alerts]
to = ["me", "boss"]
"""


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Service:
    return a_service(database_url, tmp_path, CONFIGURATION)


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO wakebell.jobs (id, type, status, last_error, finished_at) OVERRIDING SYSTEM VALUE "
        "VALUES (77, 'mail', 'failed', 'no such user', now())"
    )
    yield connection
    await connection.close()


async def told(sql: asyncpg.Connection) -> list[tuple[str, str, str]]:
    return [
        tuple(row)
        for row in await sql.fetch(
            "SELECT recipient, channel, text FROM wakebell.messages WHERE kind = 'alert' ORDER BY id"
        )
    ]


async def test_everyone_named_is_told_in_their_language(service: Service, sql: asyncpg.Connection):
    async with a_batch(service) as ctx:
        assert await alerts.judge(ctx) is True
        assert (ctx.tally["alerts.open"], ctx.tally["alerts.opened"], ctx.tally["alerts.resolved"]) == (1, 1, 0)

    assert await told(sql) == [
        ("me", "line", "gigs: มีเรื่องที่ต้องตรวจสอบ\nงาน mail ล้มเหลว (หมายเลข 77): no such user"),
        ("boss", "inbox", "gigs: something needs a look\nJob mail failed (job 77): no such user"),
    ]


async def test_what_is_over_is_told_to_them_too(service: Service, sql: asyncpg.Connection):
    async with a_batch(service) as ctx:
        await alerts.judge(ctx)
    await sql.execute("INSERT INTO wakebell.jobs (type, status, finished_at) VALUES ('mail', 'done', now())")

    async with a_batch(service) as ctx:
        assert await alerts.judge(ctx) is True
        assert (ctx.tally["alerts.open"], ctx.tally["alerts.opened"], ctx.tally["alerts.resolved"]) == (0, 0, 1)

    assert [text for _, channel, text in await told(sql) if channel == "inbox"][1:] == [
        "gigs: alert closed\nJobs of mail go well again; 1 failed one is kept: GET /api/jobs?type=mail&status=failed"
    ]


async def test_with_nothing_to_tell_there_is_nothing_to_send(service: Service, sql: asyncpg.Connection):
    async with a_batch(service) as ctx:
        await alerts.judge(ctx)

        assert await alerts.judge(ctx) is False

    assert len(await told(sql)) == 2


async def test_jobs_that_nobody_handles_are_told_and_make_no_tick_partial(service: Service, sql: asyncpg.Connection):
    await sql.execute("UPDATE wakebell.jobs SET judged_finish = finished_at")
    await sql.execute("INSERT INTO wakebell.jobs (type, held) VALUES ('send_recipt', true), ('send_recipt', true)")

    async with a_batch(service) as ctx:
        assert await alerts.judge(ctx) is False

        assert ctx.tally.errors == ["2 jobs of a type that nobody handles are parked: send_recipt"]
        assert ctx.tally.status == "ok"


def breaking(broken: set[str]) -> Any:
    """`plugins.load`, with channels of these kinds that cannot compose."""
    load = plugins.load

    def loaded(package: str, kind: str) -> Any:
        if package != "app.channels" or kind not in broken:
            return load(package, kind)

        def compose(digest: Any, options: Any) -> list[Body]:
            raise RuntimeError("a bug of this channel")

        return SimpleNamespace(compose=compose)

    return loaded


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("me", "boss"), [("boss", "inbox"), ("inbox", "inbox")]), (("me", "inbox"), [("inbox", "inbox")])],
)
async def test_a_channel_that_breaks_over_it_is_told_in_the_inbox_and_keeps_nobody_from_hearing(
    service: Service,
    sql: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    names: tuple[str, ...],
    expected: list[tuple[str, str]],
):
    service = dataclasses.replace(service, settings=dataclasses.replace(service.settings, alerts=names))
    monkeypatch.setattr(plugins, "load", breaking({"line"}))

    async with a_batch(service) as ctx:
        assert await alerts.judge(ctx) is True
        assert await alerts.judge(ctx) is False
        assert ctx.tally.errors == ["channel line failed"]

    assert [(recipient, channel) for recipient, channel, _ in await told(sql)] == expected
    assert "a bug of this channel" in caplog.text


async def test_alerts_go_through_in_quiet_hours_unless_the_recipient_says_otherwise(
    database_url: str, tmp_path: Path, sql: asyncpg.Connection
):
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    hours = f'quiet_hours = "{now - hour:%H:%M}-{now + hour:%H:%M}"\n'
    text = CONFIGURATION.replace('language = "th"\n', f'language = "th"\n{hours}')
    text = text.replace('"inbox"\n', f'"inbox"\n{hours}quiet_alerts = true\n')
    async with a_batch(a_service(database_url, tmp_path, text)) as ctx:
        await alerts.judge(ctx)

    waits = await sql.fetch(
        "SELECT messages.recipient, jobs.run_after - now() AS wait FROM wakebell.messages "
        "JOIN wakebell.jobs ON jobs.unique_key = CAST(messages.id AS text) AND jobs.type = 'send_message'"
    )
    wait_by_recipient = {row["recipient"]: row["wait"] for row in waits}
    assert wait_by_recipient["me"] <= timedelta(0)
    assert timedelta(minutes=50) < wait_by_recipient["boss"] <= hour


@pytest.mark.parametrize(("fallback", "expected"), [("", "inbox"), ('fallback = "boss"\n', "boss")])
async def test_an_alert_to_one_who_is_not_reached_goes_to_the_fallback_or_the_inbox(
    database_url: str, tmp_path: Path, sql: asyncpg.Connection, fallback: str, expected: str
):
    text = CONFIGURATION.replace('language = "th"\n', f'language = "th"\n{fallback}').replace('"me", "boss"', '"me"')
    service = a_service(database_url, tmp_path, text)
    me = service.settings.recipients["me"]
    async with a_batch(service) as ctx:
        address = settings.address_of(ctx.settings, me)
        await ctx.stores.reach.block(address=address, name="me", channel="line", reason="they left")
        await alerts.judge(ctx)

    [(recipient, _, words)] = await told(sql)
    assert recipient == expected
    assert "Recipient me is not reached any more" in words
    assert words.endswith("(wakebell unblock me): they left")
