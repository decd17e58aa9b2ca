"""Putting in many jobs at once."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.jobs import NewJob
from app.stores.jobs import Jobs

LEASES = {"greet": timedelta(seconds=60)}
COUNT = "SELECT count(*) FROM wakebell.jobs"


async def test_many_jobs_are_put_in_with_all_their_sides(jobs: Jobs):
    at = datetime.now(UTC) + timedelta(hours=1)
    added = await jobs.enqueue_many(
        [
            NewJob(type="greet", payload={"name": "မြန်မာ"}),
            NewJob(
                type="part",
                payload={"n": [1, 2.5, None, {"a": True}]},
                queue="people",
                priority=7,
                run_after=at,
                unique_key="u",
                serial_key="s",
                max_attempts=2,
            ),
        ]
    )

    assert [one.created for one in added] == [True, True]
    first, second = [await jobs.get(one.id) for one in added]
    assert first is not None
    assert second is not None
    assert (first.type, first.payload, first.queue, first.priority) == ("greet", {"name": "မြန်မာ"}, "default", 0)
    assert (first.max_attempts, first.unique_key, first.serial_key, first.waiting) == (4, None, None, False)
    assert (second.type, second.payload, second.queue) == ("part", {"n": [1, 2.5, None, {"a": True}]}, "people")
    assert (second.priority, second.run_after, second.max_attempts) == (7, at, 2)
    assert (second.unique_key, second.serial_key, second.waiting) == ("u", "s", False)


async def test_no_jobs_are_no_work(jobs: Jobs):
    assert await jobs.enqueue_many([]) == []


async def test_a_delay_counts_from_the_putting_in(jobs: Jobs):
    [added] = await jobs.enqueue_many([NewJob(type="greet", delay=timedelta(hours=1))])

    stored = await jobs.get(added.id)
    assert stored is not None
    assert timedelta(minutes=59) < stored.run_after - stored.created_at <= timedelta(hours=1)


async def test_of_two_with_one_unique_key_the_first_is_created(jobs: Jobs):
    there = await jobs.enqueue(type="greet", unique_key="there")

    added = await jobs.enqueue_many(
        [NewJob(type=kind, unique_key=key) for kind in ("greet", "part") for key in ("b", "there", "a", "b", None)]
    )

    assert [one.created for one in added] == [True, False, True, False, True, True, True, True, False, True]
    assert added[1].id == there.id
    assert added[3].id == added[0].id
    assert added[8].id == added[5].id != added[0].id


async def test_serial_jobs_stand_in_the_order_of_the_list(jobs: Jobs):
    old = (await jobs.enqueue(type="greet", serial_key="b")).id
    listed = [("a", "z"), ("b", "y"), ("a", "x"), ("b", None), ("a", None)]
    added = await jobs.enqueue_many([NewJob(type="greet", serial_key=key, unique_key=unique) for key, unique in listed])
    ids = [one.id for one in added]

    order = []
    while claimed := await jobs.claim(own=False, limit=10, leases=LEASES, token=1):
        order.append(sorted(job.id for job in claimed))
        for job in claimed:
            await jobs.finish(job, "done")

    assert order == [[old, ids[0]], [ids[1], ids[2]], [ids[3], ids[4]]]


async def test_a_serial_key_in_another_transactions_hands_is_not_waited_for(jobs: Jobs, sql: asyncpg.Connection):
    transaction = sql.transaction()
    await transaction.start()
    await sql.fetchval("SELECT id FROM wakebell.enqueue('greet', serial_key => 'k')")

    [added] = await jobs.enqueue_many([NewJob(type="greet", serial_key="k")])  # would wait for ever

    assert await jobs.claim(own=False, limit=10, leases=LEASES, token=1) == []
    await transaction.rollback()
    assert (await jobs.rescue()).promoted == 1
    [job] = await jobs.claim(own=False, limit=10, leases=LEASES, token=2)
    assert job.id == added.id


async def test_more_serial_keys_than_one_transaction_may_lock_are_left_to_the_rescue(
    jobs: Jobs, sql: asyncpg.Connection
):
    await jobs.enqueue_many([NewJob(type="greet", serial_key=f"k{number}") for number in range(1200)])

    assert await sql.fetchval(f"{COUNT} WHERE NOT waiting") == 1000
    assert (await jobs.rescue()).promoted == 200


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (NewJob(type=""), r"^jobs\[1\]: type must not be empty$"),
        (NewJob(type="x" * 201), r"^jobs\[1\]: type must be at most 200 bytes"),
        (NewJob(type="greet", queue="wakebell.send"), r"^jobs\[1\]: queues named .* are the service's own"),
        (NewJob(type="greet", queue=""), r"^jobs\[1\]: queue must not be empty"),
        (NewJob(type="greet", priority=101), r"^jobs\[1\]: priority must be from 0 to 100"),
        (NewJob(type="greet", max_attempts=0), r"^jobs\[1\]: max_attempts must be at least 1"),
        (NewJob(type="greet", unique_key=""), r"^jobs\[1\]: unique_key must be from 1 to 1000 bytes"),
        (NewJob(type="greet", serial_key="k" * 1001), r"^jobs\[1\]: serial_key must be from 1 to 1000 bytes"),
        (NewJob(type="greet", delay=timedelta(seconds=-1)), r"^jobs\[1\]: delay_seconds must be from 0"),
        (
            NewJob(type="greet", delay=timedelta(1), run_after=datetime(2030, 1, 1, tzinfo=UTC)),
            r"^jobs\[1\]: run_after and delay_seconds exclude each other",
        ),
        (
            NewJob(type="greet", run_after=datetime(2030, 1, 1)),  # noqa: DTZ001
            r"^jobs\[1\]: run_after must have a time zone",
        ),
        (NewJob(type="greet", payload={"text": "x" * 262144}), r"^jobs\[1\]: payload must be at most 256 KiB"),
        (NewJob(type="greet", payload={"a": ["ok", "\x00"]}), r"^jobs\[1\]\.payload\.a\[1\]: holds a NUL"),
        (NewJob(type="greet", payload={"a": {"b": "\ud800"}}), r"^jobs\[1\]\.payload\.a\.b: holds half of a surrogate"),
        (NewJob(type="greet", unique_key="\x00"), r"^jobs\[1\]\.unique_key: holds a NUL"),
        (
            NewJob(type="greet", then=(NewJob(type="a"), NewJob(type=""))),
            r"^jobs\[1\]\.then\[1\]: type must not be emp",
        ),
        (NewJob(type="greet", then=(NewJob(type="a"),) * 101), r"^jobs\[1\]\.then must be at most 100 at once"),
    ],
)
async def test_one_wrong_job_is_named_by_its_place_and_none_is_put_in(
    wrong: NewJob, told: str, jobs: Jobs, sql: asyncpg.Connection
):
    with pytest.raises(ValueError, match=told):
        await jobs.enqueue_many([NewJob(type="greet"), wrong, NewJob(type="")])

    assert await sql.fetchval(COUNT) == 0


async def test_a_wrong_follower_of_one_job_is_told_without_a_list(jobs: Jobs):
    with pytest.raises(ValueError, match=r"^then\[0\]: priority must be from 0 to 100$"):
        await jobs.enqueue(type="greet", then=[NewJob(type="after", priority=101)])
    with pytest.raises(ValueError, match=r"^type must not be empty$"):
        await jobs.enqueue(type="", then=[NewJob(type="after")])
    with pytest.raises(ValueError, match=r"^payload\.a: holds a NUL"):
        await jobs.enqueue(type="greet", payload={"a": "\x00"}, then=[NewJob(type="after")])


async def test_a_chain_has_an_end(jobs: Jobs):
    chain = NewJob(type="greet")
    for _ in range(10):
        chain = NewJob(type="greet", then=(chain,))
    await jobs.enqueue_many([chain])

    with pytest.raises(ValueError, match="must not follow more than 10 others"):
        await jobs.enqueue_many([NewJob(type="greet", then=(chain,))])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{}", "jobs must be a JSON array"),
        (None, "jobs must be a JSON array"),
        ("[1]", r"jobs\[0\]: must be a JSON object"),
        ('[{"type": "greet"}, {"type": "greet", "run_afer": 1}]', r'jobs\[1\]: must not have the key "run_afer"'),
        ('[{"type": "greet"}, {"type": "greet", "priority": "high"}]', r"jobs\[1\]: invalid input syntax for type int"),
        ('[{"type": "greet", "run_after": "soon"}]', r"jobs\[0\]: invalid input syntax for type timestamp"),
        ('[{"type": "greet", "payload": []}]', r"jobs\[0\]: payload must be a JSON object"),
        ('[{"type": "greet", "then": {}}]', r"jobs\[0\]\.then must be a JSON array"),
        (
            '[{"type": "a"}, {"type": "a", "then": [{"type": "b"}, {"type": "c", "priority": "x"}]}]',
            r"jobs\[1\]\.then\[1\]: in",
        ),
    ],
)
async def test_a_wrong_list_in_sql_is_told_in_the_same_words(given: str | None, told: str, sql: asyncpg.Connection):
    with pytest.raises(asyncpg.InvalidParameterValueError, match=f"^wakebell.enqueue_many: {told}"):
        await sql.fetch("SELECT * FROM wakebell.enqueue_many($1::text::jsonb)", given)


async def test_sql_takes_a_thousand_and_no_more(sql: asyncpg.Connection):
    put_in = "SELECT * FROM wakebell.enqueue_many($1::text::jsonb)"
    thousand: list[dict[str, Any]] = [{"type": "greet"}] * 1000

    with pytest.raises(asyncpg.InvalidParameterValueError, match="jobs must be at most 1000 at once"):
        await sql.fetch(put_in, json.dumps([*thousand, {"type": "greet"}]))
    assert await sql.fetchval(COUNT) == 0
    added = await sql.fetch(put_in, json.dumps(thousand))

    assert [row["position"] for row in added] == list(range(1000))
    assert await sql.fetchval(COUNT) == 1000


async def test_sql_may_say_null_for_what_it_does_not_set(sql: asyncpg.Connection):
    names = ["payload", "queue", "priority", "run_after", "unique_key", "serial_key", "max_attempts", "then"]
    one = json.dumps([{"type": "greet", **dict.fromkeys(names), "delay_seconds": None}])

    [row] = await sql.fetch("SELECT * FROM wakebell.enqueue_many($1::text::jsonb)", one)

    assert tuple(row)[::2] == (0, True)


async def test_ten_thousand_and_one_are_refused(jobs: Jobs):
    with pytest.raises(ValueError, match="at most 10000 jobs at once, not 10001; put them in in portions"):
        await jobs.enqueue_many([NewJob(type="greet")] * 10_001)


async def test_a_unique_key_survives_the_rollback_of_who_held_it(
    database_url: str, jobs: Jobs, sql: asyncpg.Connection
):
    """The one who waited finds the key free, and begins again from the first."""
    transaction = sql.transaction()
    await transaction.start()
    rolled_back = await sql.fetchval("SELECT id FROM wakebell.enqueue('greet', unique_key => 'b')")
    waiting = asyncio.create_task(jobs.enqueue_many([NewJob(type="greet", unique_key=key) for key in ("c", "b", "a")]))
    observer = await asyncpg.connect(database_url)
    try:
        while not await observer.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"):
            continue
    finally:
        await observer.close()
    await transaction.rollback()

    added = await waiting

    assert [one.created for one in added] == [True, True, True]
    assert rolled_back not in {one.id for one in added}
    assert [one.id for one in added] == sorted(one.id for one in added)
