from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel, SecretStr
from sqlalchemy import text

from app import attempt, drain
from app.attempt import Cut
from app.context import Context, Deadline
from app.domain.errors import DatabaseUnavailable, LeaseLost, PermanentFailure, TemporaryFailure
from app.domain.jobs import Discard, Done, Finished, Settled, Snooze
from app.handlers import Runnable
from app.stores import Stores
from tests.fakes.batches import Handle, a_batch, a_service, claim, runnable

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path) -> AsyncIterator[Context]:
    async with a_batch(a_service(database_url, tmp_path)) as ctx:
        yield ctx


class Attempt:
    """One job of a made-up type, run once."""

    def __init__(self, ctx: Context, sql: asyncpg.Connection) -> None:
        self.ctx = ctx
        self.sql = sql
        self.finished: Finished | None = None
        """What the run left to be finished together with others."""

    async def of(
        self, handle: Handle, *, payload: dict[str, Any] | None = None, limit: float | None = None, **options: Any
    ) -> dict[str, Any]:
        """The job's row afterwards."""
        max_attempts = options.pop("max_attempts", 4)
        await self.ctx.stores.jobs.enqueue(type="greet", payload=payload or {}, max_attempts=max_attempts)
        return await self.again(runnable("greet", handle, **options), limit)

    async def again(self, made_up: Runnable, limit: float | None = None) -> dict[str, Any]:
        job = await claim(self.ctx, "greet")
        bound = made_up.timeout if limit is None else timedelta(seconds=limit)
        self.finished = await attempt.run(self.ctx, job, made_up, bound, Cut())
        return await self.row()

    async def row(self) -> dict[str, Any]:
        return dict(await self.sql.fetchrow("SELECT *, run_after - now() AS wait FROM wakebell.jobs"))


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
def run(ctx: Context, sql: asyncpg.Connection) -> Attempt:
    return Attempt(ctx, sql)


def returning(outcome: Any) -> Handle:
    async def handle(payload: Any, ctx: Context) -> Any:
        return outcome

    return handle


def raising(error: BaseException) -> Handle:
    async def handle(payload: Any, ctx: Context) -> Any:
        raise error

    return handle


async def hanging(payload: Any, ctx: Context) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("outcome", "status", "counter", "kept"),
    [
        (Discard("it was deleted"), "cancelled", "jobs.done", None),
        (Snooze(MINUTE), "pending", "jobs.snoozed", None),
    ],
)
async def test_an_outcome_is_written(run: Attempt, outcome: Any, status: str, counter: str, kept: str | None):
    row = await run.of(returning(outcome))

    assert (row["status"], row["result"]) == (status, kept)
    assert run.ctx.tally[counter] == 1
    assert run.ctx.tally.status == "ok"


@pytest.mark.parametrize(("outcome", "result"), [(None, None), (Done(), None), (Done({"sent": 3}), {"sent": 3})])
async def test_what_went_well_is_left_to_be_finished_with_others(run: Attempt, outcome: Any, result: Any):
    row = await run.of(returning(outcome))

    assert row["status"] == "running"
    assert run.finished is not None
    assert (run.finished.job.id, run.finished.result) == (row["id"], result)
    assert run.ctx.tally["jobs.done"] == 0, "counted when it is committed"


@pytest.mark.parametrize(("outcome", "kept"), [(None, None), (Done({"sent": 3}), '{"sent": 3}')])
async def test_own_jobs_are_finished_at_once(run: Attempt, outcome: Any, kept: str | None):
    row = await run.of(returning(outcome), own=True)

    assert (row["status"], row["result"]) == ("done", kept)
    assert run.finished is None


async def test_a_snooze_costs_no_attempt(run: Attempt):
    row = await run.of(returning(Snooze(timedelta(minutes=10))))

    assert row["attempts"] == 0
    assert timedelta(minutes=9) < row["wait"] <= timedelta(minutes=10)


async def test_the_reason_for_a_discard_is_kept(run: Attempt):
    assert (await run.of(returning(Discard("booking 7 is gone"))))["last_error"] == "booking 7 is gone"


async def test_a_handler_that_has_settled_its_job_is_not_written_for(run: Attempt):
    async def handle(payload: Any, ctx: Context) -> Settled:
        await ctx.stores.jobs.finish(ctx.current_job, "done", result="mine")
        return Settled()

    assert (await run.of(handle))["result"] == '"mine"'


async def test_a_handler_is_given_its_payload_and_its_job(run: Attempt):
    class Payload(BaseModel):
        name: str
        count: int = 7

    seen: list[Any] = []

    async def handle(payload: Payload, ctx: Context) -> None:
        seen.extend([payload, ctx.current_job.type, ctx.current_job.attempt])

    await run.ctx.stores.jobs.enqueue(type="greet", payload={"name": "ก"})
    await run.again(runnable("greet", handle, payload=Payload))

    assert seen == [Payload(name="ก"), "greet", 1]
    assert run.ctx.job is None, "a handler's context is its own"


async def test_a_payload_that_does_not_fit_fails_at_once_and_shows_no_value(run: Attempt):
    class Payload(BaseModel):
        count: int
        token: SecretStr

    await run.ctx.stores.jobs.enqueue(type="greet", payload={"count": "s3cr3t", "token": 7})
    row = await run.again(runnable("greet", returning(None), payload=Payload))

    assert row["status"] == "failed"
    assert row["last_error"].startswith("the payload does not fit the handler: count: ")
    assert "token: " in row["last_error"]
    assert "s3cr3t" not in row["last_error"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TemporaryFailure("mail.example answered 503"), "mail.example answered 503"),
        (KeyError("a bug"), "KeyError: 'a bug'"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (asyncio.CancelledError(), "CancelledError: the handler ended as if it had been cancelled"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (DatabaseUnavailable("the database was busy"), "the database was busy"),
        (ExceptionGroup("several", [ValueError("one")]), "ExceptionGroup: several (1 sub-exception)"),
        (ValueError("NUL \x00"), "ValueError: NUL "),
    ],
)
async def test_a_failed_attempt_is_repeated_after_a_minute(run: Attempt, error: BaseException, told: str):
    row = await run.of(raising(error))

    assert (row["status"], row["attempts"], row["crashes"], row["last_error"]) == ("pending", 1, 0, told)
    assert timedelta(seconds=50) < row["wait"] <= MINUTE
    assert run.ctx.tally["jobs.retrying"] == 1
    assert run.ctx.tally.errors == ["job type greet failed"]
    assert run.ctx.tally.status == "partial"


async def test_a_bug_is_logged_with_its_traceback_and_a_failure_is_not(run: Attempt, caplog: pytest.LogCaptureFixture):
    await run.of(raising(TemporaryFailure("down")))
    assert [record.exc_info for record in caplog.records] == [None]
    caplog.clear()

    await run.sql.execute("UPDATE wakebell.jobs SET run_after = now()")
    await run.again(runnable("greet", raising(KeyError("bug"))))

    [crashed, failed] = caplog.records
    assert (crashed.levelno, crashed.getMessage()) == (logging.ERROR, "job attempt crashed")
    assert crashed.exc_info
    assert vars(failed)["outcome"] == "retry"


async def test_the_waits_grow_and_the_last_attempt_is_final(run: Attempt):
    waits = []
    failing = runnable("greet", raising(TemporaryFailure("down")))
    row = await run.of(raising(TemporaryFailure("down")))
    while row["status"] == "pending":
        waits.append(round(row["wait"] / MINUTE))
        await run.sql.execute("UPDATE wakebell.jobs SET run_after = now()")
        row = await run.again(failing)

    assert waits == [1, 5, 30]
    assert (row["status"], row["attempts"]) == ("failed", 4)
    assert run.ctx.tally["jobs.failed"] == 1


async def test_a_handler_may_give_its_own_waits(run: Attempt):
    failing = runnable("greet", raising(TemporaryFailure("down")), delays=(7 * MINUTE, 9 * MINUTE))
    await run.ctx.stores.jobs.enqueue(type="greet", max_attempts=9)
    waits = []
    for _ in range(3):
        await run.sql.execute("UPDATE wakebell.jobs SET run_after = now()")
        waits.append(round((await run.again(failing))["wait"] / MINUTE))

    assert waits == [7, 9, 9]


async def test_a_wait_that_was_asked_for_is_kept(run: Attempt):
    row = await run.of(raising(TemporaryFailure("429", retry_after=timedelta(hours=2))))

    assert timedelta(hours=1, minutes=59) < row["wait"] <= timedelta(hours=2)


@pytest.mark.parametrize(
    ("asked", "minutes"),
    [(timedelta(0), 1), (timedelta(-5), 1), ("soon", 1), (timedelta.max, 365 * 24 * 60)],
)
async def test_a_wait_that_makes_no_sense_is_not_kept(run: Attempt, asked: Any, minutes: int):
    row = await run.of(raising(TemporaryFailure("429", retry_after=asked)))

    assert row["status"] == "pending"
    assert round(row["wait"] / MINUTE) == minutes


async def test_what_cannot_help_is_not_repeated(run: Attempt):
    row = await run.of(raising(PermanentFailure("no such user")))

    assert (row["status"], row["last_error"]) == ("failed", "no such user")


@pytest.mark.parametrize("outcome", [True, "done", {"done": 1}, Done, 404])
async def test_an_answer_that_is_no_outcome_fails_the_attempt(run: Attempt, outcome: Any):
    row = await run.of(returning(outcome))

    assert row["status"] == "pending"
    assert row["last_error"].startswith("handle() returned ")


@pytest.mark.parametrize("outcome", [Snooze("tomorrow"), Snooze(None), Discard(7)])  # type: ignore[arg-type]
async def test_an_outcome_that_cannot_be_kept_fails_the_attempt(run: Attempt, outcome: Any):
    row = await run.of(returning(outcome))

    assert row["status"] == "pending"
    assert row["last_error"].startswith("its outcome cannot be kept: ")
    assert row["attempts"] == 1


async def test_a_handler_that_takes_too_long_fails_its_attempt(run: Attempt):
    row = await run.of(hanging, timeout=0.01)

    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert row["last_error"] == "took longer than its time-out of 0.01 s"


async def test_a_job_that_is_cut_by_the_ticks_end_goes_back_as_it_was(run: Attempt):
    row = await run.of(hanging, limit=0.01)

    assert (row["status"], row["attempts"], row["last_error"], row["started_at"]) == ("pending", 0, None, None)
    assert run.ctx.tally.status == "ok"


async def test_a_job_that_is_interrupted_is_due_again_at_once(run: Attempt):
    await run.ctx.stores.jobs.enqueue(type="greet")
    job = await claim(run.ctx, "greet")
    begun, cut = asyncio.Event(), Cut()

    async def handle(payload: Any, ctx: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    made_up = runnable("greet", handle)
    task = asyncio.create_task(attempt.run(run.ctx, job, made_up, made_up.timeout, cut))
    await begun.wait()
    cut.ordered = True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    row = await run.row()
    assert (row["status"], row["attempts"], row["crashes"]) == ("pending", 1, 1)
    assert row["last_error"] == "the process was told to stop"
    assert row["wait"] <= timedelta(0)


def cancel_myself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancelling_itself(payload: Any, ctx: Context) -> None:
    cancel_myself()
    await asyncio.Event().wait()


async def cancelling_itself_and_failing(payload: Any, ctx: Context) -> None:
    cancel_myself()
    raise TemporaryFailure("CancelledError, nearly")


@pytest.mark.parametrize("handle", [cancelling_itself, cancelling_itself_and_failing])
async def test_a_handler_that_cancels_itself_has_failed_and_was_not_interrupted(run: Attempt, handle: Handle):
    row = await run.of(handle)

    assert (row["status"], row["attempts"], row["crashes"]) == ("pending", 1, 0)
    assert row["last_error"].startswith("CancelledError")
    assert row["wait"] > timedelta(seconds=30)


async def test_a_handler_that_cancels_itself_and_ends_well_all_the_same_is_done(run: Attempt):
    async def handle(payload: Any, ctx: Context) -> None:
        cancel_myself()

    await run.of(handle)

    assert run.finished is not None
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "whoever is next in this task is not meant"
    await asyncio.sleep(0)


async def test_a_crash_is_not_counted_against_the_attempts(run: Attempt):
    await run.ctx.stores.jobs.enqueue(type="greet", max_attempts=1)
    await run.sql.execute("UPDATE wakebell.jobs SET attempts = 3, crashes = 3")

    assert (await run.again(runnable("greet", returning(Snooze(MINUTE)))))["status"] == "pending"
    await run.sql.execute("UPDATE wakebell.jobs SET run_after = now()")
    assert (await run.again(runnable("greet", raising(TemporaryFailure("down")))))["status"] == "failed"


async def test_a_lost_lease_writes_nothing_and_is_no_failure(run: Attempt, caplog: pytest.LogCaptureFixture):
    async def handle(payload: Any, ctx: Context) -> None:
        await run.sql.execute("UPDATE wakebell.jobs SET lease_token = 7")

    row = await run.of(handle, own=True)

    assert (row["status"], row["lease_token"]) == ("running", 7)
    assert run.ctx.tally["jobs.done"] == 0
    assert [record.getMessage() for record in caplog.records] == ["job lease lost"]


async def test_a_handler_that_finds_its_lease_lost_writes_nothing(run: Attempt):
    assert (await run.of(raising(LeaseLost("another has it"))))["status"] == "running"
    assert run.ctx.tally.status == "ok"


async def test_own_jobs_are_counted_under_their_own_names(run: Attempt):
    await run.of(raising(TemporaryFailure("down")), own=True)

    assert run.ctx.tally["jobs.retrying"] == 0
    assert run.ctx.tally.errors == ["job type greet failed"]


async def test_a_database_that_is_lost_at_the_end_is_told(run: Attempt):
    class Lost:
        async def finish(self, *given: Any, **more: Any) -> bool:
            raise DatabaseUnavailable("gone")

    await run.ctx.stores.jobs.enqueue(type="greet")
    job = await claim(run.ctx, "greet")
    stores = Stores(run.ctx.stores.database, jobs=Lost())
    ctx = dataclasses.replace(run.ctx, service=dataclasses.replace(run.ctx.service, stores=stores))

    with pytest.raises(DatabaseUnavailable):
        await attempt.run(ctx, job, runnable("greet", returning(Discard("gone"))), MINUTE, Cut())


async def test_a_handler_that_blocks_runs_in_a_thread(run: Attempt):
    def handle(payload: Any, ctx: Context) -> Done:
        return Done(threading.current_thread() is threading.main_thread())

    await run.of(handle, threaded=True)  # type: ignore[arg-type]

    assert run.finished is not None
    assert run.finished.result is False


async def test_a_blocking_handler_that_ends_the_process_fails_alone(run: Attempt):
    def handle(payload: Any, ctx: Context) -> None:
        raise SystemExit(1)

    row = await run.of(handle, threaded=True)  # type: ignore[arg-type]

    assert (row["status"], row["last_error"]) == ("pending", "SystemExit: 1")


async def test_a_bugs_traceback_is_kept_with_the_failed_try(run: Attempt):
    row = await run.of(raising(ValueError("a bug")))

    [failure] = json.loads(row["failures"])
    assert (failure["attempt"], failure["error"]) == (1, "ValueError: a bug")
    assert "test_attempt.py" in failure["traceback"]
    assert failure["traceback"].endswith("ValueError: a bug")


async def test_a_failure_on_purpose_needs_no_traceback(run: Attempt):
    row = await run.of(raising(TemporaryFailure("the shop is down")))

    [failure] = json.loads(row["failures"])
    assert (failure["error"], failure["traceback"]) == ("the shop is down", None)


async def test_what_fails_after_its_own_transaction_is_done_all_the_same(
    run: Attempt, caplog: pytest.LogCaptureFixture
):
    async def handle(payload: Any, ctx: Context) -> None:
        async with ctx.transaction():
            pass
        raise ValueError("too late")

    row = await run.of(handle)

    assert row["status"] == "done"
    assert run.ctx.tally["jobs.done"] == 1
    assert [record.getMessage() for record in caplog.records] == ["job failed after its transaction had finished it"]


async def test_an_outcome_after_the_transaction_does_not_count_and_is_told(
    run: Attempt, caplog: pytest.LogCaptureFixture
):
    async def handle(payload: Any, ctx: Context) -> Snooze:
        async with ctx.transaction():
            pass
        return Snooze(MINUTE)

    row = await run.of(handle)

    assert row["status"] == "done"
    assert [r.getMessage() for r in caplog.records] == ["job outcome after its transaction does not count"]


async def test_a_second_transaction_is_refused_in_words(run: Attempt, caplog: pytest.LogCaptureFixture):
    async def handle(payload: Any, ctx: Context) -> None:
        for _ in range(2):
            async with ctx.transaction():
                pass

    row = await run.of(handle)

    assert row["status"] == "done"
    assert "use it once" in caplog.text


async def test_a_transaction_of_a_lost_lease_writes_nothing(run: Attempt):
    await run.sql.execute("CREATE TABLE public.effects (job bigint)")

    async def handle(payload: Any, ctx: Context) -> None:
        await run.sql.execute("UPDATE wakebell.jobs SET lease_token = 7")
        async with ctx.transaction() as db:
            await db.execute(text("INSERT INTO public.effects VALUES (1)"))

    row = await run.of(handle)

    assert row["status"] == "running"
    assert await run.sql.fetchval("SELECT count(*) FROM public.effects") == 0


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Panic(BaseException):
    """As libraries written in Rust raise them."""


@pytest.mark.parametrize("error", [Unspeakable(), Panic("rust"), GeneratorExit(), PermanentFailure(Unspeakable())])
async def test_whatever_a_handler_raises_fails_its_job_alone(run: Attempt, error: BaseException):
    row = await run.of(raising(error))

    assert row["status"] in {"pending", "failed"}
    assert row["last_error"]


async def test_a_handler_that_swallows_its_cancellation_is_left_behind_in_time(run: Attempt):
    await run.ctx.stores.jobs.enqueue(type="greet")
    let_go = asyncio.Event()

    async def handle(payload: Any, ctx: Context) -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    ctx = dataclasses.replace(run.ctx, deadline=Deadline(timedelta(seconds=1)))
    await drain.until_idle(ctx, {"greet": runnable("greet", handle, timeout=0.2)})

    [stuck] = [task for task in asyncio.all_tasks() if task.get_name().startswith("job ")]
    assert (await run.row())["status"] == "running", "its lease ends by itself"
    assert ctx.tally.errors == ["job type greet did not let itself be stopped"]
    let_go.set()
    await asyncio.wait([stuck])
