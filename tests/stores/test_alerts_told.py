"""When an alert is told: once, again after a while, not while it is muted, not once somebody has taken it on."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta

import asyncpg
import pytest

from app.domain.alerts import News, Sign, Well
from app.domain.messages import Body
from app.stores.alerts import Alerts, Judged, Seen, Telling, Whose
from app.stores.database import Database
from app.stores.incidents import Incidents

DAY = timedelta(hours=24)
WHOSE = Whose(sources=["board"], recipients=["me"], channels=["line"])
OVERDUE = timedelta(minutes=45)


class Judge:
    """Judges, and remembers what was told: `key`, `key again`, `key over`."""

    def __init__(self, database: Database) -> None:
        self.alerts = Alerts(database)
        self.told: list[str] = []
        self.undelivered: list[str] = []
        self.last_jobs: list[int | None] = []

    async def __call__(self, seen: Seen | None = None, repeat: timedelta | None = DAY) -> Judged:
        return await self.alerts.judge(WHOSE, compose=self.compose, seen=seen or Seen(), repeat=repeat)

    def compose(self, news: News) -> list[Telling]:
        self.told += [f"{i.kind}:{i.subject}{' again' if i.again else ''}" for i in news.opened]
        self.told += [f"{i.kind}:{i.subject} {'over' if i.healed else 'gone'}" for i in news.resolved]
        self.last_jobs += [i.last_job for i in news.opened]
        self.undelivered += [f"{lost.recipient}: {lost.text}" for lost in news.undelivered]
        return [Telling(recipient="me", channel="line", body=Body(body="{}", text="told"))]


@pytest.fixture
def judge(database: Database) -> Judge:
    return Judge(database)


@pytest.fixture
def incidents(database: Database) -> Incidents:
    return Incidents(database)


async def fail(sql: asyncpg.Connection, kind: str = "mail") -> int:
    job_id: int = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, status, last_error, finished_at) "
        "VALUES ($1, 'failed', 'full', clock_timestamp()) RETURNING id",
        kind,
    )
    return job_id


async def succeed(sql: asyncpg.Connection, kind: str = "mail") -> None:
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, status, finished_at) VALUES ($1, 'done', clock_timestamp())", kind
    )


async def later(sql: asyncpg.Connection, hours: float) -> None:
    """As if so much time had passed since anything was told."""
    await sql.execute("UPDATE wakebell.alerts SET told_at = told_at - make_interval(secs => $1 * 3600)", hours)


async def end_mutes(sql: asyncpg.Connection) -> None:
    await sql.execute("UPDATE wakebell.mutes SET until = now() - interval '1 second'")


# ----------------------------------------------------------------------------------------------------- again and again


async def test_what_stays_open_is_told_again_once_a_day(judge: Judge, sql: asyncpg.Connection):
    await fail(sql)
    for hours in (0, 23, 2, 0, 25):
        await later(sql, hours)
        await judge()

    assert judge.told == ["job_failed:mail", "job_failed:mail again", "job_failed:mail again"]


async def test_it_is_never_told_again_where_nobody_wants_that(judge: Judge, sql: asyncpg.Connection):
    await fail(sql)
    await judge(repeat=None)
    await later(sql, 9999)
    await judge(repeat=None)

    assert judge.told == ["job_failed:mail"]


async def test_what_somebody_has_taken_on_is_not_told_again_and_its_end_is(
    judge: Judge, incidents: Incidents, sql: asyncpg.Connection
):
    await fail(sql)
    await judge()
    found = await incidents.find("job_failed:mail")
    assert found is not None
    assert await incidents.acknowledge(found.id)
    await later(sql, 25)
    await fail(sql)
    await judge()

    await succeed(sql)
    await judge()

    assert judge.told == ["job_failed:mail", "job_failed:mail over"]
    assert not await incidents.acknowledge(found.id), "it is over"
    assert await incidents.find("job_failed:mail") is None
    await fail(sql)
    await judge()
    assert judge.told[-1] == "job_failed:mail", "another incident is another matter"


async def test_two_judges_at_once_tell_nothing_twice(judge: Judge, sql: asyncpg.Connection):
    for number in range(20):
        await fail(sql, f"type{number}")
    await asyncio.gather(*(judge() for _ in range(4)))
    await later(sql, 25)
    await asyncio.gather(*(judge() for _ in range(4)))
    await end_mutes(sql)

    assert sorted(judge.told) == sorted(
        [f"job_failed:type{n}" for n in range(20)] + [f"job_failed:type{n} again" for n in range(20)]
    )


# ------------------------------------------------------------------------------------------------------------- muting


@pytest.mark.parametrize("pattern", ["job_failed:mail", "job_failed:*", "*", "*:mail", "job_*il"])
async def test_what_is_muted_before_it_opens_is_recorded_and_told_when_that_is_over(
    judge: Judge, incidents: Incidents, sql: asyncpg.Connection, pattern: str
):
    await incidents.mute(pattern, timedelta(hours=8))
    last = await fail(sql)

    judged = await judge()

    assert (judged.opened, judged.open, judged.told) == (1, 1, False)
    await end_mutes(sql)
    await judge()
    await judge()
    assert judge.told == ["job_failed:mail"]
    assert judge.last_jobs == [last]


@pytest.mark.parametrize(
    "pattern", ["job_failed:mai", "job%", "job_failed_mail", "source_failing:*", "*mail*x", "j\\*"]
)
async def test_a_pattern_means_what_it_says_and_nothing_more(
    judge: Judge, incidents: Incidents, sql: asyncpg.Connection, pattern: str
):
    await incidents.mute(pattern, timedelta(hours=8))
    await fail(sql)
    await judge()

    assert judge.told == ["job_failed:mail"]


async def test_what_opened_and_ended_while_it_was_muted_is_not_told_at_all(
    judge: Judge, incidents: Incidents, sql: asyncpg.Connection
):
    await incidents.mute("job_failed:mail", timedelta(hours=8))
    await fail(sql)
    await judge()
    await succeed(sql)
    judged = await judge()
    await end_mutes(sql)
    await judge()

    assert (judged.resolved, judge.told) == (1, [])


async def test_an_open_one_that_is_muted_is_silent_until_that_is_over(
    judge: Judge, incidents: Incidents, sql: asyncpg.Connection
):
    await fail(sql)
    await judge()
    until = await incidents.mute("job_failed:mail", timedelta(hours=48))
    await later(sql, 25)
    await judge()
    found = await incidents.find("job_failed:mail")

    assert judge.told == ["job_failed:mail"]
    assert found is not None
    assert found.muted_until == until
    assert await incidents.unmute("job_failed:mail")
    assert not await incidents.unmute("job_failed:mail")
    await judge()
    assert judge.told == ["job_failed:mail", "job_failed:mail again"]


async def test_a_later_word_about_a_pattern_counts_and_what_has_passed_is_none(incidents: Incidents):
    first = await incidents.mute("a:*", timedelta(hours=8))
    second = await incidents.mute("a:*", timedelta(hours=1))
    assert first is not None
    assert second is not None
    assert second < first
    assert await incidents.mute("a:*", first - timedelta(days=9)) is None

    [mute] = await incidents.list_mutes()

    assert (mute.pattern, mute.until) == ("a:*", second)


# ------------------------------------------------------------------------------------------------- what ticks have seen


async def test_a_sign_opens_and_ends_when_the_tick_says_so(judge: Judge):
    bad = Seen(signs=[Sign(kind="tick_overdue", subject="tick", reason="7 h")])
    well = Seen(well=[Well(key="tick_overdue:tick"), Well(key="tick_failed:tick")])

    for seen in (bad, bad, Seen(), well, well):
        await judge(seen)

    assert judge.told == ["tick_overdue:tick", "tick_overdue:tick over"]


async def test_a_configuration_is_well_for_who_has_read_it_since(judge: Judge, sql: asyncpg.Connection):
    await judge(Seen(signs=[Sign(kind="config_broken", subject="file")]))
    await sql.execute("UPDATE wakebell.alerts SET failed_at = failed_at - interval '10 minutes'")

    for seconds in (3600, 601):
        await judge(Seen(well=[Well(key="config_broken:file", seconds=seconds)]))
        assert judge.told == ["config_broken:file"]
    await judge(Seen(well=[Well(key="config_broken:file", seconds=300)]))

    assert judge.told == ["config_broken:file", "config_broken:file over"]


# ------------------------------------------------------------------------------------------------------- jobs that wait


async def test_a_type_that_nobody_handles_for_a_day_is_told_once(judge: Judge, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO wakebell.jobs (type, held, run_after) VALUES ('young', true, now())")
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, held, run_after) "
        "SELECT 'old', true, now() - interval '25 hours' FROM generate_series(1, 3)"
    )
    for _ in range(3):
        await judge()
    assert judge.told == ["job_unknown:old"]

    await sql.execute("UPDATE wakebell.jobs SET held = false")
    await judge()
    await judge()

    assert judge.told == ["job_unknown:old", "job_unknown:old over"]


async def late_job(sql: asyncpg.Connection, minutes: float, queue: str = "mails") -> int:
    job_id: int = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, queue, run_after) "
        "VALUES ('mail', $1, now() - make_interval(secs => $2 * 60)) RETURNING id",
        *(queue, minutes),
    )
    return job_id


async def ticked_for(sql: asyncpg.Connection, hours: float) -> None:
    await sql.execute(
        "INSERT INTO wakebell.ticks (trigger, status, started_at) "
        "VALUES ('http', 'ok', now() - make_interval(secs => $1 * 3600))",
        hours,
    )


async def test_a_queue_whose_first_job_does_not_start_is_told_once_and_when_it_has_caught_up(
    judge: Judge, sql: asyncpg.Connection
):
    await ticked_for(sql, 9)
    first = await late_job(sql, 46)
    await late_job(sql, 44, queue="reports")
    seen = Seen(overdue=OVERDUE)
    for _ in range(3):
        await judge(seen)
    assert (judge.told, judge.last_jobs) == (["jobs_overdue:mails"], [first])

    await sql.execute("UPDATE wakebell.jobs SET run_after = now() - interval '30 minutes'")
    await judge(seen)
    assert judge.told == ["jobs_overdue:mails"], "half way is not caught up"

    await sql.execute("UPDATE wakebell.jobs SET run_after = now() - interval '20 minutes'")
    await judge(seen)
    assert judge.told == ["jobs_overdue:mails", "jobs_overdue:mails over"]


async def test_a_queue_that_is_paused_waits_on_purpose(judge: Judge, sql: asyncpg.Connection):
    await ticked_for(sql, 9)
    await late_job(sql, 46)
    pause = (
        "INSERT INTO wakebell.queues (name, paused_until, pause_reason) "
        "VALUES ('mails', now() + interval '1 hour', 'x')"
    )
    unpause = "DELETE FROM wakebell.queues"
    seen = Seen(overdue=OVERDUE)

    for script in (pause, unpause, pause):
        await sql.execute(script)
        await judge(seen)

    assert judge.told == ["jobs_overdue:mails", "jobs_overdue:mails gone"]


GAP = (
    "INSERT INTO wakebell.alerts (key, kind, subject, failed_at, resolved_at) "
    "VALUES ('tick_overdue:tick', 'tick_overdue', 'tick', now(), now())"
)


@pytest.mark.parametrize("script", ["", GAP])
async def test_what_waited_while_nobody_rang_is_not_late(judge: Judge, sql: asyncpg.Connection, script: str):
    await ticked_for(sql, 0 if not script else 9)
    await late_job(sql, 400)
    await sql.execute(script or "SELECT 1")

    await judge(Seen(overdue=OVERDUE))

    assert judge.told == []


# ------------------------------------------------------------------------------------------------ schedules, reminders


async def test_a_schedule_that_was_missed_is_told_once_for_each_miss(judge: Judge, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.schedules (name, fingerprint, anchor_at) "
        "VALUES ('daily', 'f', now()), ('other', 'f', now())"
    )
    miss = (
        "UPDATE wakebell.schedules SET missed_count = missed_count + 1, missed_at = clock_timestamp(), "
        "missed_slot = '2026-11-30 09:00+00' WHERE name = 'daily'"
    )
    fire = "UPDATE wakebell.schedules SET fired_at = clock_timestamp() WHERE name = 'daily'"
    for script in (miss, "SELECT 1", miss, fire, "SELECT 1", miss):
        await sql.execute(script)
        await judge()
    await sql.execute("UPDATE wakebell.schedules SET removed_at = now()")
    await judge()

    name = "schedule_missed:daily"
    assert judge.told == [name, f"{name} over", name, f"{name} gone"]
    assert await sql.fetchval("SELECT reason FROM wakebell.alerts LIMIT 1") == "2026-11-30T09:00Z"


async def test_a_query_of_a_reminder_that_fails_is_told_once(judge: Judge, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.reminder_rules (name, fingerprint, failures, failed_at, last_error) "
        "VALUES ('day_before', 'f', 1, now(), 'no such column'), ('well', 'f', 0, NULL, NULL)"
    )
    again = (
        "UPDATE wakebell.reminder_rules SET failures = failures + 1, failed_at = clock_timestamp() WHERE failures > 0"
    )
    well = "UPDATE wakebell.reminder_rules SET failures = 0"
    for script in ("SELECT 1", again, again, well, "SELECT 1"):
        await sql.execute(script)
        await judge()

    assert judge.told == ["reminder_failing:day_before", "reminder_failing:day_before over"]
    assert await sql.fetchval("SELECT failures FROM wakebell.alerts") == 3


# -------------------------------------------------------------------------------------------------- what did not arrive


async def test_an_alert_that_did_not_arrive_is_handed_on_once(judge: Judge, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.messages (recipient, channel, kind, status, body, text, finished_at) VALUES "
        "('boss', 'line', 'alert', 'failed', '', 'gigs: bad', now()), "
        "('inbox', 'inbox', 'alert', 'failed', '', 'x', now())"
    )

    judged = await judge()
    await judge()

    assert judge.undelivered == ["boss: gigs: bad"]
    assert dataclasses.replace(judged, told=False) == Judged(opened=0, resolved=0, open=0)


# -------------------------------------------------------------------------------------------------------------- looking


async def test_alerts_are_listed_the_newest_first(judge: Judge, incidents: Incidents, sql: asyncpg.Connection):
    for number in range(3):
        await fail(sql, f"type{number}")
    await sql.execute("UPDATE wakebell.jobs SET last_error = 'no room' WHERE type = 'type1'")
    await judge()
    await succeed(sql, "type2")
    await judge()
    await incidents.mute("*:type0", timedelta(hours=1))

    page = await incidents.list_alerts(limit=2)
    rest = await incidents.list_alerts(limit=2, before=page.rows[-1].id)
    opened = await incidents.list_alerts(limit=9, opened=True)
    over = await incidents.list_alerts(limit=9, opened=False)

    assert [alert.key for alert in page.rows] == ["job_failed:type2", "job_failed:type1"]
    assert (page.more, rest.more) == (True, False)
    assert [alert.key for alert in rest.rows] == ["job_failed:type0"]
    assert [alert.reason for alert in opened.rows] == ["no room", "full"]
    assert [alert.muted_until is not None for alert in opened.rows] == [False, True]
    assert [alert.subject for alert in over.rows] == ["type2"]
    assert (await incidents.list_alerts(limit=9, kind="tick_overdue")).rows == []
