from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

from app import drain, lanes
from app.context import TRANSACTIONS, Context, Service
from app.domain.errors import DatabaseUnavailable, TemporaryFailure
from app.domain.jobs import Done, Job, NewJob, Snooze
from app.handlers import Runnable
from app.stores import Stores
from app.stores.jobs import enqueue_own_in
from tests.fakes.batches import Handle, a_batch, a_service, runnable


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Service:
    return a_service(database_url, tmp_path)


@pytest.fixture
async def sql(database_url: str):
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def add(service: Service, *names: str, count: int = 1) -> None:
    for name in names:
        for _ in range(count):
            await service.stores.jobs.enqueue(type=name)


async def add_own(service: Service, *names: str) -> None:
    async with service.stores.database.transaction() as db:
        for name in names:
            await enqueue_own_in(db, type=name, payload={}, queue=f"wakebell.{name}")


async def statuses(sql: asyncpg.Connection) -> dict[str, int]:
    rows = await sql.fetch("SELECT status, count(*) FROM wakebell.jobs GROUP BY status")
    return {row["status"]: row["count"] for row in rows}


def these(*made_up: Runnable) -> dict[str, Runnable]:
    return {each.type: each for each in made_up}


def noting(notes: list[str], note: str) -> Handle:
    async def handle(payload: Any, ctx: Context) -> Done:
        notes.append(note)
        return Done()

    return handle


async def done(payload: Any, ctx: Context) -> Done:
    return Done()


async def hanging(payload: Any, ctx: Context) -> None:
    await asyncio.Event().wait()


async def test_all_that_is_due_is_run(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=25)
    await add_own(service, "sweep")

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", done), runnable("sweep", done, own=True)))

    assert await statuses(sql) == {"done": 26}
    assert (ctx.tally["jobs.claimed"], ctx.tally["jobs.done"]) == (25, 25), "own work has its own names"


async def test_nothing_due_is_nothing_done(service: Service):
    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", done)))

    assert ctx.tally["jobs.claimed"] == 0


async def test_as_many_run_at_once_as_there_are_slots(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=30)
    together = asyncio.Barrier(lanes.SLOTS)
    running, most = 0, 0

    async def handle(payload: Any, ctx: Context) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await together.wait()  # ends only when ten of them run
        running -= 1

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    assert most == lanes.SLOTS
    assert await statuses(sql) == {"done": 30}


async def test_what_a_job_puts_in_is_run_too(service: Service, sql: asyncpg.Connection):
    await add(service, "first")

    async def handle(payload: Any, ctx: Context) -> None:
        await ctx.stores.jobs.enqueue(type="second")

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("first", handle), runnable("second", done)))

    assert await statuses(sql) == {"done": 2}


async def test_users_jobs_are_bounded_and_own_work_is_not(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=25)
    await add_own(service, *["sweep"] * 15)

    async with a_batch(service, max_jobs=13) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", done), runnable("sweep", done, own=True)))
        await drain.until_idle(ctx, these(runnable("greet", done), runnable("sweep", done, own=True)))

    assert ctx.tally["jobs.claimed"] == 13
    assert await statuses(sql) == {"done": 13 + 15, "pending": 12}


async def test_a_job_that_comes_back_at_once_does_not_come_back_for_ever(service: Service):
    await add(service, "greet")

    async def handle(payload: Any, ctx: Context) -> Snooze:
        return Snooze(timedelta(0))

    async with a_batch(service, max_jobs=5) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    assert ctx.tally["jobs.claimed"] == 5


async def test_a_type_that_nobody_knows_is_left_alone(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", "unknown")

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", done)))

    assert await statuses(sql) == {"done": 1, "pending": 1}


async def test_a_job_that_crashes_does_not_keep_the_others_from_running(service: Service, sql: asyncpg.Connection):
    await add(service, "bug", "failure", "exit", "greet")

    def raising(error: BaseException) -> Handle:
        async def handle(payload: Any, ctx: Context) -> None:
            raise error

        return handle

    async with a_batch(service) as ctx:
        await drain.until_idle(
            ctx,
            these(
                runnable("bug", raising(KeyError("bug"))),
                runnable("failure", raising(TemporaryFailure("down"))),
                runnable("exit", raising(SystemExit())),
                runnable("greet", done),
            ),
        )

    assert await statuses(sql) == {"done": 1, "pending": 3}
    assert ctx.tally["jobs.retrying"] == 3


async def test_nothing_is_begun_when_the_time_is_up(service: Service, sql: asyncpg.Connection):
    await add(service, "greet")
    await add_own(service, "sweep")

    async with a_batch(service, budget=25, elapsed=25) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", done), runnable("sweep", done, own=True)))

    assert await statuses(sql) == {"pending": 2}


async def test_a_job_is_begun_only_when_its_whole_time_fits(service: Service, sql: asyncpg.Connection):
    await add(service, "long", "short")
    await add_own(service, "sweep")

    async with a_batch(service, budget=25, elapsed=12) as ctx:
        await drain.until_idle(
            ctx,
            these(
                runnable("long", done, timeout=20),
                runnable("short", done, timeout=10),
                runnable("sweep", done, own=True, timeout=20),  # own work goes back when it is cut
            ),
        )

    rows = await sql.fetch("SELECT type FROM wakebell.jobs WHERE status = 'done' ORDER BY type")
    assert [row["type"] for row in rows] == ["short", "sweep"]


async def test_a_lease_outlives_its_job_and_not_by_much(service: Service, sql: asyncpg.Connection):
    await add(service, "greet")
    leases: list[float] = []

    async def handle(payload: Any, ctx: Context) -> None:
        leases.append(await sql.fetchval("SELECT extract(epoch FROM lease_until - now()) FROM wakebell.jobs"))

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle, timeout=15)))

    assert 20 < leases[0] <= 25


async def test_composing_that_falls_due_during_the_fetches_waits_for_them(service: Service):
    await add_own(service, "fetch")
    notes: list[str] = []

    async def fetch(payload: Any, ctx: Context) -> None:
        await add_own(service, "compose", "other")
        notes.append("fetched")

    async def slow(payload: Any, ctx: Context) -> None:
        while "other" not in notes:  # another own job ends meanwhile, and the drain claims anew
            await asyncio.sleep(0)
            await ctx.stores.jobs.count_startable([])
        notes.append("fetched slowly")

    await add_own(service, "slow")
    async with a_batch(service) as ctx:
        await drain.until_idle(
            ctx,
            these(
                runnable("fetch", fetch, own=True),
                runnable("slow", slow, own=True),
                runnable("other", noting(notes, "other"), own=True),
                runnable("compose", noting(notes, "composed"), own=True, after=frozenset({"slow"})),
            ),
        )

    assert notes == ["fetched", "other", "fetched slowly", "composed"]


async def test_composing_that_falls_due_together_with_a_fetch_waits_for_it_too(
    service: Service, sql: asyncpg.Connection
):
    """The next in a host's line is due the moment that the one before it has ended, as is what that one has found."""
    await add_own(service, "compose", "fetch")
    notes: list[str] = []

    async with a_batch(service) as ctx:
        await drain.until_idle(
            ctx,
            these(
                runnable("fetch", noting(notes, "fetched"), own=True),
                runnable("compose", noting(notes, "composed"), own=True, after=frozenset({"fetch"})),
            ),
        )

    assert notes == ["fetched", "composed"]
    assert {row["attempts"] for row in await sql.fetch("SELECT attempts FROM wakebell.jobs")} == {1}


async def test_composing_does_not_wait_for_a_source_that_hangs(service: Service):
    await add_own(service, "fetch")
    composed = asyncio.Event()

    async def fetch(payload: Any, ctx: Context) -> None:
        await add_own(service, "compose")
        await composed.wait()

    async def compose(payload: Any, ctx: Context) -> None:
        composed.set()

    async with a_batch(service, budget=25, elapsed=25 * drain.AFTER_SHARE - 0.2) as ctx:
        await drain.until_idle(
            ctx,
            these(
                runnable("fetch", fetch, own=True),
                runnable("compose", compose, own=True, after=frozenset({"fetch"})),
            ),
        )

    assert composed.is_set()


async def test_nothing_is_begun_once_the_process_is_told_to_stop(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=30)

    async def handle(payload: Any, ctx: Context) -> None:
        service.stopping.request()

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    left = await statuses(sql)
    assert left["done"] == ctx.tally["jobs.done"] <= lanes.SLOTS
    assert left["pending"] == 30 - left["done"]


async def test_a_process_that_was_told_to_stop_before_does_nothing(service: Service, sql: asyncpg.Connection):
    await add(service, "greet")
    service.stopping.request()

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", done)))

    assert await statuses(sql) == {"pending": 1}


async def test_a_job_that_does_not_end_in_time_to_stop_goes_back(
    service: Service, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(drain, "STOP_SECONDS", 0.01)
    await add(service, "hanging")

    async def handle(payload: Any, ctx: Context) -> None:
        service.stopping.request()
        await asyncio.Event().wait()

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("hanging", handle)))

    row = await sql.fetchrow("SELECT status, crashes, last_error FROM wakebell.jobs")
    assert tuple(row) == ("pending", 1, "the process was told to stop")


async def test_a_cancelled_drain_gives_its_jobs_back(service: Service, sql: asyncpg.Connection):
    await add(service, "hanging", count=3)
    begun = asyncio.Barrier(4)

    async def handle(payload: Any, ctx: Context) -> None:
        await begun.wait()
        await asyncio.Event().wait()

    async with a_batch(service) as ctx:
        draining = asyncio.create_task(drain.until_idle(ctx, these(runnable("hanging", handle))))
        await begun.wait()
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining

    assert await statuses(sql) == {"pending": 3}


class Losing:
    """Jobs whose database is lost at some call."""

    def __init__(self, jobs: Any, lost: str) -> None:
        self._jobs = jobs
        self._lost = lost

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name != self._lost:
            found: Callable[..., Any] = getattr(self._jobs, name)
            return found

        async def lose(*given: Any, **more: Any) -> list[Job]:
            raise DatabaseUnavailable("gone")

        return lose


async def test_a_database_that_is_lost_on_the_way_ends_the_drain(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", "hanging")
    losing: Any = Losing(service.stores.jobs, "turn")
    lost_service = dataclasses.replace(service, stores=Stores(service.stores.database, jobs=losing))

    async with a_batch(lost_service) as ctx:
        with pytest.raises(DatabaseUnavailable):
            await drain.until_idle(ctx, these(runnable("greet", done), runnable("hanging", hanging)))

    assert await statuses(sql) == {"pending": 2}
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("job ")] == []


async def test_two_drains_at_once_share_the_jobs(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=40)
    ran: list[int] = []

    async def handle(payload: Any, ctx: Context) -> None:
        ran.append(ctx.current_job.id)

    async with a_batch(service) as one, a_batch(service) as other:
        made_up = these(runnable("greet", handle))
        await asyncio.gather(drain.until_idle(one, made_up), drain.until_idle(other, made_up))

    assert len(ran) == len(set(ran)) == 40
    assert one.tally["jobs.done"] + other.tally["jobs.done"] == 40


class LosingTheFirst(Losing):
    """Jobs whose database is lost once something is to be finished."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._jobs, name)
        if name != self._lost:
            return found

        async def lose(*given: Any, **more: Any) -> Any:
            if more["done"]:
                raise DatabaseUnavailable("gone")
            return await found(*given, **more)

        return lose


async def test_what_could_not_be_finished_is_due_again_when_its_lease_ends(service: Service, sql: asyncpg.Connection):
    await add(service, "greet")
    losing: Any = LosingTheFirst(service.stores.jobs, "turn")
    lost_service = dataclasses.replace(service, stores=Stores(service.stores.database, jobs=losing))

    async with a_batch(lost_service) as ctx:
        with pytest.raises(DatabaseUnavailable):
            await drain.until_idle(ctx, these(runnable("greet", done)))

    assert await statuses(sql) == {"running": 1}
    assert ctx.tally["jobs.done"] == 0


async def test_results_are_kept_and_a_lost_lease_among_them_is_told(
    service: Service, sql: asyncpg.Connection, caplog: pytest.LogCaptureFixture
):
    await add(service, "greet", count=3)

    async def handle(payload: Any, ctx: Context) -> Done:
        if ctx.current_job.id == 2:
            await sql.execute("UPDATE wakebell.jobs SET lease_token = 7 WHERE id = 2")
        return Done({"id": ctx.current_job.id})

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    rows = await sql.fetch("SELECT id, status, result FROM wakebell.jobs ORDER BY id")
    assert [tuple(row) for row in rows] == [(1, "done", '{"id": 1}'), (2, "running", None), (3, "done", '{"id": 3}')]
    assert ctx.tally["jobs.done"] == 2
    assert [record.getMessage() for record in caplog.records] == ["job lease lost"]


async def test_many_quick_jobs_are_finished_by_few_calls(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=300)
    counting: Any = Counting(service.stores.jobs)
    counted: Any = dataclasses.replace(service, stores=Stores(service.stores.database, jobs=counting))

    async with a_batch(counted) as ctx:
        await drain.until_idle(dataclasses.replace(ctx, max_jobs=300), these(runnable("greet", done)))

    assert await statuses(sql) == {"done": 300}
    assert ctx.tally["jobs.done"] == ctx.tally["jobs.claimed"] == 300
    assert counting.turns <= 30, "each turn finishes what has ended while the one before it was under way"


class Counting:
    """Jobs that count their turns."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs
        self.turns = 0

    def __getattr__(self, name: str) -> Any:
        self.turns += name == "turn"
        return getattr(self._jobs, name)


async def test_jobs_at_hand_go_back_when_the_process_is_told_to_stop(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=100)
    seen = 0

    async def handle(payload: Any, ctx: Context) -> None:
        nonlocal seen
        seen += 1
        if seen == 15:  # by now there are more at hand than run
            ctx.service.stopping.request()

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    found = await statuses(sql)
    assert set(found) == {"done", "pending"}
    assert found["done"] == ctx.tally["jobs.done"] < 100
    assert await sql.fetchval("SELECT max(attempts) FROM wakebell.jobs WHERE status = 'pending'") == 0


async def test_a_handlers_own_transaction_commits_with_the_end_of_its_job(service: Service, sql: asyncpg.Connection):
    await sql.execute("CREATE TABLE public.effects (job bigint)")
    await add(service, "greet", count=20)

    async def handle(payload: Any, ctx: Context) -> None:
        async with ctx.transaction() as db:
            await db.execute(text("INSERT INTO public.effects VALUES (:job)"), {"job": ctx.current_job.id})
            if ctx.current_job.id % 5 == 0 and ctx.current_job.attempt == 1:
                raise TemporaryFailure("after the write")

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    assert await statuses(sql) == {"done": 16, "pending": 4}
    assert await sql.fetchval("SELECT count(*) FROM public.effects") == 16
    assert (ctx.tally["jobs.done"], ctx.tally["jobs.retrying"]) == (16, 4)


async def test_a_slow_job_among_quick_ones_keeps_none_of_them_unfinished(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=60)
    await add(service, "slow")
    go_on = asyncio.Event()

    async def slow(payload: Any, ctx: Context) -> None:
        await go_on.wait()

    async with a_batch(service) as ctx:
        draining = asyncio.create_task(
            drain.until_idle(ctx, these(runnable("greet", done), runnable("slow", slow))),
        )
        while await statuses(sql) != {"done": 60, "running": 1}:
            assert not draining.done()
            await asyncio.sleep(0)
        go_on.set()
        await draining

    assert await statuses(sql) == {"done": 61}


class BreakingOnce(Losing):
    """Jobs whose connection breaks once, when something is to be finished."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._jobs, name)
        if name != "turn" or self._lost == "once":
            return found

        async def lose(*given: Any, **more: Any) -> Any:
            if more["done"]:
                self._lost = "once"
                raise DatabaseUnavailable("gone")
            return await found(*given, **more)

        return lose


async def test_a_connection_that_breaks_once_makes_nothing_run_twice(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=3)
    breaking: Any = BreakingOnce(service.stores.jobs, "not yet")
    broken = dataclasses.replace(service, stores=Stores(service.stores.database, jobs=breaking))

    async with a_batch(broken) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", done)))

    assert await statuses(sql) == {"done": 3}
    assert await sql.fetchval("SELECT max(attempts) FROM wakebell.jobs") == 1


async def test_what_a_job_leaves_behind_cancels_no_other(service: Service, sql: asyncpg.Connection):
    await add(service, "greet", count=2 * lanes.SLOTS)
    left: list[asyncio.Task[Any]] = []

    async def handle(payload: Any, ctx: Context) -> None:
        await asyncio.sleep(0)
        for task in left:
            task.cancel()
        left.append(asyncio.current_task())  # type: ignore[arg-type]

    async def careful(payload: Any, ctx: Context) -> None:
        earlier = [task for task in left if task is not asyncio.current_task()]
        assert len(earlier) == len(left), "a task that gave way was used again"
        await handle(payload, ctx)

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", careful)))

    assert len(set(left)) == 2 * lanes.SLOTS


async def test_jobs_that_wait_for_nothing_let_the_others_have_their_turn(service: Service):
    await add(service, "greet", count=200)
    looped, longest = 0, 0

    async def watch() -> None:
        nonlocal looped
        while True:
            looped += 1
            await asyncio.sleep(0)

    async def handle(payload: Any, ctx: Context) -> None:
        nonlocal longest
        before = looped
        time.sleep(lanes.TURN_SECONDS)  # noqa: ASYNC251 - a computation
        longest = max(longest, streak(before))

    seen: list[int] = []

    def streak(now: int) -> int:
        """How many jobs in a row ran in the same turn of the loop."""
        seen.append(now)
        return len(seen) - seen.index(now)

    watcher = asyncio.create_task(watch())
    async with a_batch(service, max_jobs=200) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))
    watcher.cancel()

    assert len(seen) == 200
    assert longest <= 2 * lanes.SLOTS, "of each lane two: one that fills its time, and one that goes beyond it"


async def test_a_thousand_jobs_at_hand_go_back_in_one_statement(
    service: Service, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await service.stores.jobs.enqueue_many([NewJob(type="greet")] * 500)
    released: list[int] = []
    release = type(service.stores.jobs).release

    async def counted(self: Any, jobs: Any) -> int:
        released.append(len(jobs))
        return await release(self, jobs)

    monkeypatch.setattr(type(service.stores.jobs), "release", counted)

    async def handle(payload: Any, ctx: Context) -> None:
        if ctx.tally["jobs.claimed"] == 100:
            service.stopping.request()

    async with a_batch(service, max_jobs=500) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    assert released == [max(released)]
    left = await sql.fetch("SELECT status, attempts, started_at IS NULL AS fresh FROM wakebell.jobs")
    assert {(row["attempts"], row["fresh"]) for row in left if row["status"] == "pending"} == {(0, True)}
    assert {row["status"] for row in left} == {"done", "pending"}


class Odd:
    """What says of itself something that cannot be stored."""

    def __str__(self) -> str:
        return "\x00 and \ud800"


async def test_an_odd_result_or_payload_is_no_other_jobs_matter(service: Service, sql: asyncpg.Connection):
    await add(service, "odd", "greet", count=4)
    await sql.execute("""SELECT wakebell.enqueue('greet', '{"n": 1e5000}')""")
    await sql.execute("SELECT wakebell.enqueue('greet', CAST($1 AS jsonb))", '{"n":' + "[" * 2500 + "]" * 2500 + "}")

    async def handle(payload: Any, ctx: Context) -> Done:
        return Done({"skipped": [Odd(), Path("x")]})

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("odd", handle), runnable("greet", done)))

    assert await statuses(sql) == {"done": 9, "failed": 1}
    assert await sql.fetchval("SELECT max(attempts) FROM wakebell.jobs") == 1


async def test_a_snooze_in_milliseconds_is_put_off_for_a_year_at_most(service: Service, sql: asyncpg.Connection):
    await add(service, "greet")

    async def handle(payload: Any, ctx: Context) -> Snooze:
        return Snooze(timedelta(seconds=1_800_000_000_000))

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    assert await sql.fetchval("SELECT run_after < now() + interval '366 days' FROM wakebell.jobs")


@pytest.mark.direct
async def test_handlers_transactions_leave_connections_to_the_drain(service: Service):
    await add(service, "greet", count=lanes.SLOTS)
    most = inside = 0
    full = asyncio.Event()

    async def handle(payload: Any, ctx: Context) -> None:
        nonlocal most, inside
        async with ctx.transaction():
            inside += 1
            most = max(most, inside)
            if inside == TRANSACTIONS:
                full.set()
            await full.wait()
            await ctx.stores.jobs.count_startable([])  # beside it there is a connection
            inside -= 1

    async with a_batch(service) as ctx:
        await drain.until_idle(ctx, these(runnable("greet", handle)))

    assert most == TRANSACTIONS
