from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.alerts import Incident, News, Undelivered
from app.domain.messages import Body
from app.stores import parked
from app.stores.alerts import SQL, Alerts, Judged, Telling, Whose
from app.stores.database import Database
from app.stores.reach import Reach

RECIPIENTS = ["me", "boss"]
SOURCES = ["board", "gigs"]


class Judge:
    """Judges, and remembers what was to be told."""

    def __init__(self, database: Database) -> None:
        self.alerts = Alerts(database)
        self.opened: list[Incident] = []
        self.resolved: list[Incident] = []
        self.undelivered: list[Undelivered] = []
        self.calls = 0
        self.addresses = ["a1", "a2"]

    async def __call__(
        self, sources: list[str] | None = None, recipients: list[str] | None = None, **more: Any
    ) -> Judged:
        whose = Whose(
            sources=SOURCES if sources is None else sources,
            recipients=RECIPIENTS if recipients is None else recipients,
            channels=["line"],
            addresses=self.addresses,
        )
        judged = await self.alerts.judge(whose, compose=self.compose, **more)
        return dataclasses.replace(judged, told=False)

    def compose(self, news: News) -> list[Telling]:
        self.calls += 1
        self.opened += news.opened
        self.resolved += news.resolved
        self.undelivered += news.undelivered
        return [Telling(recipient="me", channel="line", body=Body(body="{}", text="told"))]

    @property
    def told(self) -> tuple[list[str], list[str]]:
        return (
            [f"{i.kind}:{i.subject}" for i in self.opened],
            [f"{i.kind}:{i.subject}:{'healed' if i.healed else 'gone'}" for i in self.resolved],
        )


@pytest.fixture
def judge(database: Database) -> Judge:
    return Judge(database)


class World:
    """What fails and what goes well."""

    def __init__(self, sql: asyncpg.Connection, database: Database) -> None:
        self.sql = sql
        self.database = database

    async def job(self, kind: str, status: str, reason: str | None = None) -> int:
        """One that has just ended, or not yet."""
        ended = status in {"done", "failed", "cancelled"}
        job_id: int = await self.sql.fetchval(
            "INSERT INTO wakebell.jobs (type, status, last_error, finished_at) "
            "VALUES ($1, $2, $3, CASE WHEN $4 THEN clock_timestamp() END) RETURNING id",
            *(kind, status, reason, ended),
        )
        return job_id

    async def message(self, recipient: str, status: str, kind: str = "items", reason: str | None = None) -> None:
        await self.sql.execute(
            "INSERT INTO wakebell.messages (recipient, channel, kind, status, body, text, last_error, finished_at, "
            "sent_at) VALUES ($1, 'line', $2, $3, '', '', $4, clock_timestamp(), "
            "CASE WHEN $3 = 'sent' THEN clock_timestamp() END)",
            *(recipient, kind, status, reason),
        )

    async def source(self, name: str, failures: int, reason: str | None = None) -> None:
        """It has just been read, or has just failed."""
        await self.sql.execute(
            "INSERT INTO wakebell.sources AS known (name, fingerprint, every_seconds, grid_from, due_at, failures, "
            "last_error, last_failure_at, last_success_at) VALUES ($1, '', 60, now(), now(), $2, $3, "
            "CASE WHEN $2 > 0 THEN clock_timestamp() END, CASE WHEN $2 = 0 THEN clock_timestamp() END) "
            "ON CONFLICT (name) DO UPDATE SET failures = excluded.failures, last_error = excluded.last_error, "
            "last_failure_at = coalesce(excluded.last_failure_at, known.last_failure_at), "
            "last_success_at = coalesce(excluded.last_success_at, known.last_success_at)",
            *(name, failures, reason),
        )

    async def block(self, name: str, address: str) -> None:
        await Reach(self.database).block(address=address, name=name, channel="line", reason="bot was kicked")

    async def park(self, *, hours: int) -> None:
        await Reach(self.database).park("line", "no more this month", until=datetime.now(UTC) + timedelta(hours=hours))

    async def alerts(self) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.sql.fetch("SELECT * FROM wakebell.alerts ORDER BY id")]

    async def messages_about_alerts(self) -> int:
        count: int = await self.sql.fetchval(
            "SELECT count(*) FROM wakebell.messages JOIN wakebell.jobs ON jobs.unique_key = CAST(messages.id AS text) "
            "WHERE messages.kind = 'alert' AND jobs.type = 'send_message'"
        )
        return count


@pytest.fixture
def world(sql: asyncpg.Connection, database: Database) -> World:
    return World(sql, database)


async def test_nothing_wrong_is_nothing_told(judge: Judge, world: World):
    await world.job("mail", "done")
    await world.job("mail", "cancelled")
    await world.source("board", 2)
    await world.message("me", "sent")

    assert await judge() == Judged(opened=0, resolved=0, open=0)

    assert judge.calls == 0


async def test_each_kind_opens_one_alert_with_its_latest_reason_and_all_are_one_telling(judge: Judge, world: World):
    for number in range(40):
        await world.job("mail", "failed", f"reason {number}")
    await world.job("report", "failed")
    await world.source("board", 3, "no feed there")
    await world.message("me", "failed", reason="no such user")
    await world.message("me", "uncertain", reason="no answer")

    assert await judge() == Judged(opened=4, resolved=0, open=4)
    assert await judge() == Judged(opened=0, resolved=0, open=4)

    told = {f"{i.kind}:{i.subject}": (i.reason, i.failures) for i in judge.opened}
    assert told == {
        "job_failed:mail": ("reason 39", 40),
        "job_failed:report": (None, 1),
        "message_failed:me": ("no answer", 2),
        "source_failing:board": ("no feed there", 3),
    }
    assert judge.calls == 1
    assert await world.messages_about_alerts() == 1


async def test_of_jobs_that_failed_the_last_is_named(judge: Judge, world: World):
    await world.job("mail", "failed")
    last = await world.job("mail", "failed")
    report = await world.job("report", "failed")
    await world.source("board", 3)
    await world.message("me", "failed")

    await judge()

    assert {i.subject: i.last_job for i in judge.opened} == {"mail": last, "report": report, "board": None, "me": None}


async def test_jobs_that_stay_failed_are_counted_when_their_type_goes_well_again(judge: Judge, world: World):
    for kind, count in (("mail", 4), ("report", 1), ("bulk", 1500)):
        await world.sql.execute(
            "INSERT INTO wakebell.jobs (type, status, finished_at) SELECT $1, 'failed', now() "
            "FROM generate_series(1, $2)",
            *(kind, count),
        )
    await world.message("me", "failed")
    await judge()
    await judge()
    await world.sql.execute(
        "UPDATE wakebell.jobs SET status = 'done', finished_at = clock_timestamp() "
        "WHERE id IN (SELECT min(id) FROM wakebell.jobs WHERE type IN ('mail', 'report') GROUP BY type)"
    )
    await world.job("bulk", "done")
    await world.message("me", "sent")
    await judge()

    assert {i.subject: i.kept for i in judge.resolved} == {"mail": 3, "report": 0, "bulk": 1001, "me": 0}


async def test_jobs_that_nobody_handles_are_told_by_every_judging_and_open_nothing(judge: Judge, world: World):
    await world.sql.execute(
        "INSERT INTO wakebell.jobs (type, held) SELECT 'type' || n % 2, true FROM generate_series(1, 5) AS n"
    )

    for expected in (0, 1):
        judged = await judge()

        assert (judged.opened, judged.open) == (expected, expected)
        assert judged.parked is not None
        assert (judged.parked.count, judged.parked.types) == (5, ["type0", "type1"])
        await world.job("mail", "failed")


async def test_a_further_failure_is_counted_and_not_told(judge: Judge, world: World):
    await world.job("mail", "failed", "first")
    await world.source("board", 3)
    await judge()

    await world.job("mail", "failed", "second")
    await world.source("board", 7, "still down")
    assert await judge() == Judged(opened=0, resolved=0, open=2)

    found = {row["key"]: (row["failures"], row["reason"]) for row in await world.alerts()}
    assert found == {"job_failed:mail": (2, "second"), "source_failing:board": (7, "still down")}
    assert judge.calls == 1


async def test_what_works_again_is_resolved_once_and_may_open_again(judge: Judge, world: World):
    for _ in range(2):
        await world.job("mail", "failed")
        await world.source("board", 3)
        await world.message("me", "failed")
        assert await judge() == Judged(opened=3, resolved=0, open=3)

        await world.job("mail", "done")
        await world.source("board", 0)
        await world.message("me", "sent")
        assert await judge() == Judged(opened=0, resolved=3, open=0)
        assert await judge() == Judged(opened=0, resolved=0, open=0)

    opened, resolved = judge.told
    assert Counter(opened) == {"job_failed:mail": 2, "source_failing:board": 2, "message_failed:me": 2}
    assert Counter(resolved) == {
        "job_failed:mail:healed": 2,
        "source_failing:board:healed": 2,
        "message_failed:me:healed": 2,
    }


async def test_a_success_after_the_failure_in_the_same_tick_is_told_by_the_next_judging(judge: Judge, world: World):
    await world.job("mail", "failed")
    await world.job("mail", "done")
    await world.message("me", "failed")
    await world.message("me", "sent")

    assert await judge() == Judged(opened=2, resolved=0, open=2)
    assert await judge() == Judged(opened=0, resolved=2, open=0)


async def test_a_success_before_the_failure_heals_nothing(judge: Judge, world: World):
    await world.job("mail", "done")
    await world.job("mail", "failed")
    await world.message("me", "sent")
    await world.message("me", "failed")

    await judge()

    assert await judge() == Judged(opened=0, resolved=0, open=2)


async def test_a_type_that_fails_and_succeeds_in_every_tick_is_one_alert(judge: Judge, world: World):
    for _ in range(5):
        await world.job("mail", "failed")
        await world.job("mail", "done")
        await judge()
    await judge()

    assert judge.told == (["job_failed:mail"], ["job_failed:mail:healed"])
    [alert] = await world.alerts()
    assert alert["failures"] == 5


async def test_failed_jobs_that_stay_do_not_open_again_while_others_succeed(judge: Judge, world: World):
    await world.job("mail", "failed")
    for _ in range(3):
        await judge()
        await world.job("mail", "done")

    await judge()

    assert judge.told == (["job_failed:mail"], ["job_failed:mail:healed"])


async def test_a_failed_job_that_is_run_again_and_fails_again_is_told_again(judge: Judge, world: World):
    job_id = await world.job("mail", "failed")
    await judge()
    await world.job("mail", "done")
    await judge()

    for finished, status in (("NULL", "pending"), ("clock_timestamp()", "failed")):
        await world.sql.execute(
            f"UPDATE wakebell.jobs SET status = '{status}', finished_at = {finished} WHERE id = $1", job_id
        )
        await judge()

    assert judge.told[0] == ["job_failed:mail"] * 2


@pytest.mark.parametrize("status", ["pending", "running"])
async def test_a_failed_job_that_is_run_again_is_not_over_yet(judge: Judge, world: World, status: str):
    job_id = await world.job("mail", "failed")
    await judge()
    await world.sql.execute(
        "UPDATE wakebell.jobs SET status = $2, finished_at = NULL, lease_until = now(), lease_token = 1 WHERE id = $1",
        *(job_id, status),
    )
    assert (await judge()).open == 1

    await world.sql.execute(
        "UPDATE wakebell.jobs SET status = 'done', finished_at = clock_timestamp() WHERE id = $1", job_id
    )
    await judge()

    assert judge.told[1] == ["job_failed:mail:healed"]


@pytest.mark.parametrize("end", ["DELETE FROM wakebell.jobs", "UPDATE wakebell.jobs SET status = 'cancelled'"])
async def test_an_alert_ends_with_the_last_of_its_failed_jobs(judge: Judge, world: World, end: str):
    first, second = await world.job("mail", "failed"), await world.job("mail", "failed")
    await judge()
    await world.sql.execute(f"{end} WHERE id = $1", first)
    assert (await judge()).open == 1
    await world.job("mail", "pending")  # has never failed

    await world.sql.execute(f"{end} WHERE id = $1", second)
    await judge()

    assert judge.told[1] == ["job_failed:mail:gone"]


async def test_a_source_is_told_at_the_third_failure_and_not_before_it_was_read(judge: Judge, world: World):
    for failures in (1, 2, 3, 4):
        await world.source("board", failures)
        await judge()
    # Another address: the count begins anew, and nothing was read yet.
    await world.sql.execute("UPDATE wakebell.sources SET failures = 0")
    await judge()
    assert judge.told == (["source_failing:board"], [])

    await world.source("board", 0)
    await judge()

    assert judge.told[1] == ["source_failing:board:healed"]


async def test_what_is_configured_no_more_ends_and_is_told_as_gone(judge: Judge, world: World):
    await world.source("board", 5)
    await world.message("boss", "failed")
    await judge()
    await world.sql.execute("UPDATE wakebell.sources SET due_at = now() - interval '61 minutes'")

    assert await judge(sources=["gigs"], recipients=["me"]) == Judged(opened=0, resolved=2, open=0)
    assert await judge(sources=["gigs"], recipients=["me"]) == Judged(opened=0, resolved=0, open=0)

    assert judge.told[1] == ["message_failed:boss:gone", "source_failing:board:gone"]


async def test_a_source_that_another_replica_watches_is_that_ones_matter(judge: Judge, world: World):
    await world.source("board", 5)
    await judge()

    assert await judge(sources=["gigs"]) == Judged(opened=0, resolved=0, open=1)
    assert await judge(sources=["board"]) == Judged(opened=0, resolved=0, open=1)

    assert judge.told == (["source_failing:board"], [])


async def test_a_source_that_is_gone_is_told_at_once(judge: Judge, world: World):
    await world.source("board", 1, "jobs.example answered 410")
    await world.sql.execute("UPDATE wakebell.sources SET gone_at = now()")

    assert await judge() == Judged(opened=1, resolved=0, open=1)


async def test_a_source_that_is_blind_is_told_once_and_over_with_the_round_that_says_so(judge: Judge, world: World):
    await world.source("board", 0)
    state = "UPDATE wakebell.sources SET state = $1, state_at = clock_timestamp(), empty_rounds = empty_rounds + 1"
    for _ in range(3):
        await world.sql.execute(state, "blind")
        await judge()
    [alert] = await world.alerts()
    assert (alert["key"], alert["failures"]) == ("source_blind:board", 3)

    await world.sql.execute("UPDATE wakebell.sources SET state = 'ok'")  # at another address, and not read there yet
    assert (await judge()).open == 1

    await world.sql.execute(state, "silent")
    assert await judge() == Judged(opened=1, resolved=1, open=1)
    await world.sql.execute(state, "ok")
    assert await judge() == Judged(opened=0, resolved=1, open=0)

    assert judge.told == (
        ["source_blind:board", "source_silent:board"],
        ["source_blind:board:healed", "source_silent:board:healed"],
    )


async def test_a_blind_source_that_is_configured_no_more_ends_its_alert(judge: Judge, world: World):
    await world.source("board", 0)
    await world.sql.execute(
        "UPDATE wakebell.sources SET state = 'unstable', state_at = now(), due_at = now() - interval '9 days'"
    )
    await judge()

    assert await judge(sources=["gigs"]) == Judged(opened=0, resolved=1, open=0)

    assert judge.told[1] == ["source_unstable:board:gone"]


async def test_a_source_that_nobody_configures_opens_nothing(judge: Judge, world: World):
    await world.source("forgotten", 9)

    assert await judge() == Judged(opened=0, resolved=0, open=0)


async def test_a_failed_alert_opens_nothing_and_a_delivered_one_heals_nothing(judge: Judge, world: World):
    await world.message("me", "failed", kind="alert")
    await world.job("send_message", "failed")
    assert await judge() == Judged(opened=0, resolved=0, open=0)
    await world.message("me", "failed")
    await judge()

    await world.message("me", "sent", kind="alert")

    assert await judge() == Judged(opened=0, resolved=0, open=1)


async def test_what_cannot_be_composed_leaves_everything_to_the_next_judging(judge: Judge, world: World):
    await world.job("mail", "failed")

    def broken(news: News) -> list[Telling]:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - its own
        await judge.alerts.judge(Whose(sources=SOURCES, recipients=RECIPIENTS), compose=broken)

    assert await judge() == Judged(opened=1, resolved=0, open=1)


async def test_more_failures_than_are_judged_at_once_are_judged_by_the_next(judge: Judge, world: World):
    await world.sql.execute(
        "INSERT INTO wakebell.jobs (type, status, finished_at) "
        "SELECT 'mail', 'failed', now() FROM generate_series(1, 2500)"
    )

    for _ in range(3):
        await judge()

    assert [alert["failures"] for alert in await world.alerts()] == [2500]
    assert judge.told == (["job_failed:mail"], [])


async def test_names_with_signs_of_their_own_are_taken_as_they_are(judge: Judge, world: World):
    name = 'a "b", {c} \\ d\''
    await world.source(name, 3)
    await world.message(name, "failed")
    await judge(sources=[name], recipients=[name])
    await world.source(name, 0)

    judged = await judge(sources=[name], recipients=[name])

    assert judged == Judged(opened=0, resolved=1, open=1)


async def test_judges_at_once_tell_everything_once_and_never_stand_in_each_others_way(
    database: Database, sql: asyncpg.Connection
):
    world = World(sql, database)
    judges = [Judge(database) for _ in range(4)]
    types = [f"type{number}" for number in range(6)]

    for round_number in range(12):
        for kind in types:  # half of them fail while the other half heals
            await world.job(kind, "failed" if (round_number + types.index(kind)) % 2 else "done")
        await world.source("board", 3 if round_number % 2 else 0)
        await world.message("me", "failed" if round_number % 2 else "sent")
        await asyncio.gather(*(judge() for judge in judges))
        await judges[0]()  # what they left to each other

    rows = await world.alerts()
    opened = Counter(incident.subject for judge in judges for incident in judge.opened)
    resolved = Counter(incident.subject for judge in judges for incident in judge.resolved)
    assert opened == Counter(row["subject"] for row in rows)
    assert resolved == Counter(row["subject"] for row in rows if row["resolved_at"] is not None)
    assert opened == dict.fromkeys((*types, "board", "me"), 6)
    assert await world.messages_about_alerts() == sum(judge.calls for judge in judges)


async def test_an_alert_that_another_judge_holds_is_left_to_it(judge: Judge, world: World, database_url: str):
    await world.job("mail", "failed")
    await world.job("report", "failed")
    await judge()
    await world.job("mail", "done")
    await world.job("report", "done")
    other = await asyncpg.connect(database_url)
    try:
        async with other.transaction():
            await other.execute("UPDATE wakebell.alerts SET reason = 'mine' WHERE subject = 'mail'")

            assert await judge() == Judged(opened=0, resolved=1, open=1)
    finally:
        await other.close()

    assert await judge() == Judged(opened=0, resolved=1, open=0)


async def test_a_blocked_recipient_is_told_once_and_again_when_somebody_is_there(judge: Judge, world: World):
    await world.block("me", "a1")
    assert await judge() == Judged(opened=1, resolved=0, open=1)
    await world.block("me", "a1")  # one that was under way
    assert await judge() == Judged(opened=0, resolved=0, open=1)
    assert [(i.kind, i.subject, i.reason) for i in judge.opened] == [("recipient_blocked", "me", "bot was kicked")]

    await Reach(world.database).unblock(address="a1", name="me")
    assert await judge() == Judged(opened=0, resolved=1, open=0)

    await world.block("me", "a1")
    assert await judge() == Judged(opened=1, resolved=0, open=1)
    assert judge.told[1] == ["recipient_blocked:me:healed"]


async def test_another_address_in_the_configuration_ends_the_alert_about_the_old_one(judge: Judge, world: World):
    await world.block("me", "a1")
    await judge()

    judge.addresses = ["a2"]

    assert await judge() == Judged(opened=0, resolved=1, open=0)
    assert await judge() == Judged(opened=0, resolved=0, open=0)


async def test_a_parked_channel_is_told_until_the_month_is_over(judge: Judge, world: World):
    await world.park(hours=1)
    await world.park(hours=2)
    assert await judge() == Judged(opened=1, resolved=0, open=1)
    assert await judge() == Judged(opened=0, resolved=0, open=1)

    await world.sql.execute("UPDATE wakebell.channels SET parked_until = now()")

    assert await judge() == Judged(opened=0, resolved=1, open=0)
    assert judge.told == (["channel_parked:line"], ["channel_parked:line:healed"])


async def test_room_that_was_seen_for_a_moment_is_one_alert_and_not_many(judge: Judge, world: World):
    await world.park(hours=2)
    await judge()

    for _ in range(3):
        await world.sql.execute("UPDATE wakebell.channels SET parked_until = NULL, freed_at = now()")
        await judge()
        await world.park(hours=2)
        await judge()

    assert judge.told == (["channel_parked:line"], [])
    await world.sql.execute("UPDATE wakebell.channels SET parked_until = NULL, freed_at = now() - interval '3 hours'")
    assert await judge() == Judged(opened=0, resolved=1, open=0)


async def test_a_month_that_runs_low_is_told_once_in_it(judge: Judge, world: World):
    reach = Reach(world.database)
    await reach.claim_reading("line")
    ends = datetime.now(UTC) + timedelta(days=9)
    for reason in ("12 h apart", "13 h apart"):
        await reach.mark_low("line", reason, until=ends)
        await judge()
    assert [(i.kind, i.subject, i.reason) for i in judge.opened] == [("quota_low", "line", "12 h apart")]

    await world.sql.execute("UPDATE wakebell.channels SET low_until = now()")

    assert await judge() == Judged(opened=0, resolved=1, open=0)
    await reach.mark_low("line", "the next month", until=ends + timedelta(days=31))
    assert await judge() == Judged(opened=1, resolved=0, open=1)


async def test_what_is_configured_no_more_is_nobodys_concern(judge: Judge, world: World):
    await world.block("me", "a1")
    await world.park(hours=2)
    await judge()
    await world.sql.execute("UPDATE wakebell.alerts SET subject = 'gone' || subject")

    assert (await judge()).resolved == 2
    assert sorted(judge.told[1]) == ["channel_parked:goneline:gone", "recipient_blocked:goneme:gone"]


async def test_pruning_takes_the_oldest_closed_ones_and_no_open_one(judge: Judge, world: World):
    for kind in ("a", "b", "c"):
        await world.job(kind, "failed")
    await judge()
    await world.sql.execute(
        "UPDATE wakebell.alerts SET resolved_at = now() - make_interval(days => CAST(10 - id AS integer)) "
        "WHERE subject <> 'c'"
    )

    assert await judge.alerts.prune(keep=timedelta(days=1), most=1) == 1
    assert [alert["subject"] for alert in await world.alerts()] == ["b", "c"]
    assert await judge.alerts.prune(keep=timedelta(days=1), most=10) == 1
    assert await judge.alerts.prune(keep=timedelta(days=1), most=10) == 0


HISTORY = """
INSERT INTO wakebell.jobs (type, queue, status, attempts, started_at, finished_at)
SELECT 'greet' || n % 5, 'queue' || n % 5, 'done', 1, now(), now() - make_interval(secs => n)
FROM generate_series(1, 100000) AS n;
INSERT INTO wakebell.messages (recipient, channel, status, body, text, sent_at, finished_at)
SELECT 'r' || n % 5, 'line', 'sent', '', '', now() - make_interval(secs => n), now() - make_interval(secs => n)
FROM generate_series(1, 50000) AS n;
INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at)
SELECT 'http', 'ok', now() - make_interval(mins => n), now() FROM generate_series(1, 5000) AS n;
INSERT INTO wakebell.recipients (address, name, channel, blocked_at, judged_block)
SELECT md5(n::text), 'r' || n, 'line', at, at
FROM generate_series(1, 20000) AS n CROSS JOIN LATERAL (SELECT CASE WHEN n % 2 = 0 THEN now() END) AS blocked (at);
"""
OPEN = """
INSERT INTO wakebell.alerts (key, kind, subject, failed_at, judged_at)
SELECT kind || ':' || subject, kind, subject, now() - interval '9 days', now() - interval '9 days'
FROM (VALUES ('job_failed', 'gone'), ('job_failed', 'greet1'), ('message_failed', 'me'), ('source_failing', 'board'),
    ('recipient_blocked', 'r2'), ('channel_parked', 'line'), ('quota_low', 'line'), ('job_unknown', 'greet1'),
    ('jobs_overdue', 'queue1'), ('tick_overdue', 'tick'), ('config_broken', 'file'), ('schedule_missed', 'daily'),
    ('reminder_failing', 'day_before')) AS given (kind, subject)
"""
PARAMS: dict[str, Any] = {
    "source_failures": 3,
    "sources": "{board}",
    "recipients": "{me}",
    "addresses": "{c81e728d9d4c2f636f067f89cc14862c}",
    "channels": "{line}",
    "most_kept": 1001,
    "signs": '[{"kind": "job_unknown", "subject": "strange"}]',
    "well": '[{"key": "tick_overdue:tick", "seconds": 0}]',
    "overdue_seconds": 2700.0,
    "repeat_seconds": 86400.0,
}
STATEMENTS = {
    **{name: SQL[name] for name in ("look", "undelivered", "open", "resolve", "tell")},
    "late": parked.SQL["late"],
}
SMALL = {"alerts", "sources", "channels", "mutes", "queues", "schedules", "reminder_rules"}
"""A row for each that is configured, or was."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("analyzed", [False, True])
async def test_its_statements_read_no_table_as_a_whole(sql: asyncpg.Connection, *, analyzed: bool):
    await sql.execute(HISTORY)
    if analyzed:
        await sql.execute(
            "VACUUM ANALYZE wakebell.jobs, wakebell.messages, wakebell.ticks, wakebell.alerts, wakebell.recipients"
        )

    for script in ("SELECT 1", OPEN):
        await sql.execute(script)
        for name, statement in STATEMENTS.items():
            compiled, names = statement.driver
            params = [PARAMS[param] for param in names]
            assert await read(sql, compiled, params) < 200, (name, script)


async def read(sql: asyncpg.Connection, statement: str, params: list[Any]) -> int:
    """Pages that it reads; fails on a whole scan of a big table."""
    transaction = sql.transaction()
    await transaction.start()
    [plan] = json.loads(await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *params))
    await transaction.rollback()
    scanned = {node["Relation Name"] for node in nodes(plan["Plan"]) if node["Node Type"] == "Seq Scan"}
    assert scanned <= SMALL, statement
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]
