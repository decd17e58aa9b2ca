"""Pauses with reasons, limits, and how queues stand."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.stores.database import Database, connect
from app.stores.health import HealthFacts
from app.stores.jobs import Jobs
from app.stores.queues import Pause, QueueChange, Queues, Starts, StoredQueue

LEASES = {"greet": timedelta(seconds=60)}
HOUR = timedelta(hours=1)
NEXT_DUE = "SELECT next_due_at FROM wakebell.look_at_jobs('[\"greet\"]', '[\"greet\"]', 10)"


@pytest.fixture
def queues(database: Database) -> Queues:
    return Queues(database)


async def claimed(jobs: Jobs) -> list[str]:
    return sorted(job.queue for job in await jobs.claim(own=False, limit=10, leases=LEASES, token=1))


async def test_a_queue_without_anything_stands_empty(queues: Queues):
    assert await queues.all() == []
    assert await queues.get("mail") == StoredQueue(
        name="mail",
        due=0,
        running=0,
        max_running=None,
        max_starts=None,
        period_seconds=None,
        paused_until=None,
        reason=None,
    )


async def test_a_pause_keeps_back_what_is_due_until_it_is_ended(queues: Queues, jobs: Jobs):
    await jobs.enqueue(type="greet", queue="mail")
    await jobs.enqueue(type="greet", queue="other")

    paused = await queues.change("mail", QueueChange(pause=Pause(until="forever", reason="the provider is down")))

    assert paused
    assert await jobs.count_startable(["greet"]) == 1, "a backlog that waits on purpose is not what a tick could start"
    assert await claimed(jobs) == ["other"]
    mail = await queues.get("mail")
    assert (mail.paused_until, mail.reason, mail.due) == ("forever", "the provider is down", 1)
    await queues.change("mail", QueueChange(pause="nothing"))
    assert await claimed(jobs) == ["mail"]


@pytest.mark.parametrize("by", ["length", "instant"])
async def test_a_pause_ends_by_itself_and_shows_as_none_then(
    queues: Queues, jobs: Jobs, sql: asyncpg.Connection, by: str
):
    await jobs.enqueue(type="greet", queue="mail")
    until = HOUR if by == "length" else datetime.now(UTC) + HOUR

    await queues.change("mail", QueueChange(pause=Pause(until=until, reason="maintenance")))

    during = await queues.get("mail")
    assert isinstance(during.paused_until, datetime)
    assert abs(during.paused_until - datetime.now(UTC) - HOUR) < timedelta(minutes=10)
    await sql.execute("UPDATE wakebell.queues SET paused_until = now() - interval '1 second'")
    after = await queues.get("mail")
    assert (after.paused_until, after.reason) == (None, None)
    assert [queue.name for queue in await queues.all()] == ["mail"]
    assert await claimed(jobs) == ["mail"]
    assert [queue.name for queue in await queues.all()] == ["mail"]


async def test_a_pause_that_would_be_over_already_changes_nothing(queues: Queues):
    yesterday = Pause(until=datetime.now(UTC) - timedelta(days=1), reason="too late")

    assert not await queues.change("mail", QueueChange(pause=yesterday, max_running=3))

    assert await queues.all() == []


async def test_a_change_leaves_the_rest_as_it_is(queues: Queues):
    await queues.change("mail", QueueChange(max_running=3))
    await queues.change("mail", QueueChange(starts=Starts(count=10, period=timedelta(minutes=1))))
    await queues.change("mail", QueueChange(pause=Pause(until="forever", reason="tired")))

    whole = await queues.get("mail")

    assert (whole.max_running, whole.max_starts, whole.period_seconds, whole.reason) == (3, 10, 60, "tired")
    await queues.change("mail", QueueChange(pause="nothing", max_running="nothing", starts="nothing"))
    assert await queues.all() == []


async def test_a_limit_on_starts_that_is_made_wider_goes_on_counting(
    queues: Queues, jobs: Jobs, sql: asyncpg.Connection
):
    for _ in range(10):
        await jobs.enqueue(type="greet", queue="mail")
    await queues.change("mail", QueueChange(starts=Starts(count=2, period=HOUR)))
    assert len(await claimed(jobs)) == 2

    await queues.change("mail", QueueChange(starts=Starts(count=5, period=HOUR)))

    assert len(await claimed(jobs)) == 3
    await queues.change("mail", QueueChange(starts="nothing"))
    assert await sql.fetchval("SELECT recent_starts FROM wakebell.queues") == []


async def test_all_that_has_work_or_a_setting_is_listed_by_name(queues: Queues, jobs: Jobs, sql: asyncpg.Connection):
    later = datetime.now(UTC) + HOUR
    for queue, run_after in (("b", None), ("b", None), ("b", later), ("a", None), ("Z", later)):
        await jobs.enqueue(type="greet", queue=queue, run_after=run_after)
    await jobs.enqueue(type="greet", queue="b", serial_key="k")
    await jobs.enqueue(type="greet", queue="b", serial_key="k")
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send')")
    await sql.execute("INSERT INTO wakebell.jobs (type, queue, status) VALUES ('greet', 'ended', 'done')")
    await queues.change("limited", QueueChange(max_running=1))
    await sql.execute(
        "UPDATE wakebell.jobs SET status = 'running', lease_until = now() + interval '1 minute', lease_token = 1 "
        "WHERE queue = 'a'"
    )

    found = await queues.all()

    assert [(queue.name, queue.due, queue.running) for queue in found] == [
        ("Z", 0, 0),
        ("a", 0, 1),
        ("b", 3, 0),
        ("limited", 0, 0),
    ]
    assert [queue.name for queue in await queues.all(own=True)] == ["Z", "a", "b", "limited", "wakebell.send"]


async def test_of_very_many_queues_those_with_settings_are_listed(queues: Queues, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, queue) SELECT 'greet', 'a' || n FROM generate_series(1, 1100) n"
    )
    await queues.change("zz", QueueChange(pause=Pause(until="forever", reason="tired")))

    found = await queues.all()

    assert (len(found), found[-1].name) == (1000, "zz")


async def test_a_long_backlog_is_counted_to_a_bound(queues: Queues, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) SELECT 'greet', 'mail' FROM generate_series(1, 10100)")

    assert (await queues.get("mail")).due == 10_000


async def test_what_waits_on_purpose_is_neither_late_nor_next(
    queues: Queues, jobs: Jobs, database: Database, sql: asyncpg.Connection
):
    await jobs.enqueue(type="greet", queue="mail")
    health = HealthFacts(database)

    await queues.change("mail", QueueChange(pause=Pause(until=HOUR, reason="maintenance")))
    in_an_hour = await sql.fetchval(NEXT_DUE)
    told = await health.read([])
    await queues.change("mail", QueueChange(pause=Pause(until="forever", reason="maintenance")))
    never = await sql.fetchval(NEXT_DUE)
    await queues.change("mail", QueueChange(pause="nothing"))

    assert timedelta(minutes=50) < in_an_hour - datetime.now(UTC) < timedelta(minutes=70)
    assert never is None
    assert told.oldest_due_at is None
    assert (await health.read([])).oldest_due_at is not None
    assert await sql.fetchval(NEXT_DUE) <= datetime.now(UTC) + timedelta(minutes=1)


async def test_four_who_change_and_claim_at_once_leave_the_last_word_and_no_error(
    queues: Queues, jobs: Jobs, database_url: str
):
    for _ in range(60):
        await jobs.enqueue(type="greet", queue="mail")

    async def at_work(number: int) -> int:
        database = connect(database_url)
        count = 0
        try:
            for turn in range(10):
                await Queues(database).change("mail", QueueChange(max_running=1 + turn % 3))
                taken = await Jobs(database).claim(own=False, limit=2, leases=LEASES, token=1 + number * 100 + turn)
                for job in taken:
                    await Jobs(database).finish(job, "done")
                count += len(taken)
        finally:
            await database.dispose()
        return count

    counts = await asyncio.gather(*(at_work(number) for number in range(4)))

    assert sum(counts) > 0
    assert (await queues.get("mail")).max_running == 1
