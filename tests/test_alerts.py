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


WAYS = """
[channels.line]
kind = "line"
token = "a-token-of-line"

[channels.mail]
kind = "webhook"
url = "https://mail.example/hook"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

[recipients.me]
channel = "line"
to = "U00000000000000000000000000000001"
{fallback}

[recipients.other]
channel = "line"
to = "U00000000000000000000000000000002"

[recipients.boss]
channel = "mail"

[alerts]
to = {to}
"""


@pytest.mark.parametrize(
    ("to", "fallback", "expected"),
    [
        ('["me", "boss"]', "", {"boss"}),
        ('["me", "other"]', "", {"me", "other", "inbox"}),
        ('["me"]', 'fallback = "boss"', {"boss"}),
        ('["me"]', 'fallback = "other"', {"me", "inbox"}),
        ('["me", "inbox"]', "", {"inbox"}),
        ('["inbox"]', "", {"inbox"}),
    ],
)
@pytest.mark.parametrize("what", ["message_failed", "quota_low"])
async def test_what_is_wrong_with_a_channel_is_told_by_another_where_there_is_one(
    database_url: str, tmp_path: Path, *, to: str, fallback: str, expected: set[str], what: str
):
    service = a_service(database_url, tmp_path, WAYS.format(to=to, fallback=fallback))
    connection = await asyncpg.connect(database_url)
    await connection.execute(FAILED_MESSAGE if what == "message_failed" else LOW)

    async with a_batch(service) as ctx:
        await alerts.judge(ctx)
    found = {recipient for recipient, _, _ in await told(connection)}
    await connection.execute(SENT_MESSAGE if what == "message_failed" else NO_LONGER_LOW)
    async with a_batch(service) as ctx:
        await alerts.judge(ctx)
    again = [recipient for recipient, _, _ in await told(connection)]
    await connection.close()

    assert found == expected
    assert sorted(again) == sorted([*expected, *expected]), "who heard of it hears that it is over"


FAILED_MESSAGE = (
    "INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at) "
    "VALUES ('other', 'line', 'failed', '', '', clock_timestamp())"
)
SENT_MESSAGE = (
    "INSERT INTO wakebell.messages (recipient, channel, status, body, text, finished_at, sent_at) "
    "VALUES ('other', 'line', 'sent', '', '', clock_timestamp(), clock_timestamp())"
)
LOW = "INSERT INTO wakebell.channels (name, low_at, low_until) VALUES ('line', now(), now() + interval '9 days')"
NO_LONGER_LOW = "UPDATE wakebell.channels SET low_until = now()"


async def test_each_hears_only_what_concerns_another_channel_than_theirs(database_url: str, tmp_path: Path):
    service = a_service(database_url, tmp_path, WAYS.format(to='["me", "boss"]', fallback=""))
    connection = await asyncpg.connect(database_url)
    await connection.execute(FAILED_MESSAGE)
    await connection.execute(FAILED_MESSAGE.replace("'other', 'line'", "'boss', 'mail'"))
    await connection.execute("INSERT INTO wakebell.jobs (type, status, finished_at) VALUES ('greet', 'failed', now())")

    async with a_batch(service) as ctx:
        await alerts.judge(ctx)
    texts = {recipient: text.splitlines()[1:] for recipient, _, text in await told(connection)}
    await connection.close()

    assert texts == {
        "me": ["Job greet failed (job 1)", "A message to boss could not be delivered"],
        "boss": ["Job greet failed (job 1)", "A message to other could not be delivered"],
    }


async def test_an_alert_that_did_not_arrive_stands_in_the_inbox(service: Service, sql: asyncpg.Connection):
    service = dataclasses.replace(service, settings=dataclasses.replace(service.settings, alerts=("me",)))
    async with a_batch(service) as ctx:
        await alerts.judge(ctx)
    await sql.execute("UPDATE wakebell.messages SET status = 'failed', finished_at = now()")

    async with a_batch(service) as ctx:
        assert await alerts.judge(ctx) is True
        assert await alerts.judge(ctx) is False

    [_, (recipient, _, text)] = await told(sql)
    assert recipient == "inbox"
    assert text.splitlines()[0] == "This did not reach me:"
    assert text.endswith("no such user")


async def test_five_hundred_failures_are_one_message_to_each(service: Service, sql: asyncpg.Connection):
    await sql.execute("ALTER TABLE wakebell.jobs ALTER COLUMN id RESTART WITH 1000")
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, status, last_error, finished_at) "
        "SELECT 'type' || n, 'failed', 'full', now() FROM generate_series(1001, 1499) AS n"
    )

    async with a_batch(service) as ctx:
        await alerts.judge(ctx)
        await alerts.judge(ctx)

    assert [recipient for recipient, _, _ in await told(sql)] == ["me", "boss"]
    assert (await told(sql))[1][2].endswith("and 491 more")


async def test_no_secret_is_told_whatever_a_reason_says(service: Service, sql: asyncpg.Connection):
    await sql.execute(
        "UPDATE wakebell.jobs SET last_error = 'POST https://x.example/a-token-of-line and "
        "an-api-token-of-thirty-characters refused', judged_finish = NULL"
    )

    async with a_batch(service) as ctx:
        await alerts.judge(ctx)

    for _, _, text in await told(sql):
        assert text.endswith("POST https://x.example/[secret] and [secret] refused")
