"""A queue of a test's own."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from app import asked, drain, handlers
from app.domain.jobs import Discard, Done, NewJob, Snooze
from app.testing.drained import Drained, JobsFailed, drained, watched
from app.testing.wanted import Wanted, listed
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from app.context import Context, Service
    from app.domain.jobs import Outcome
    from app.handlers import Runnable
    from app.stores.jobs import StoredJob
    from app.stores.testing import Bench

    Payload = Mapping[str, Any] | BaseModel
    """As JSON has it, or the handler's own `Payload`."""

BUDGET = timedelta(seconds=300)
"""Of a drain, and so the longest time-out that a handler may have: a tick has no more."""

WITHIN = timedelta(seconds=5)


class Queue:
    """A queue of a test's own. Times are the database's; `advance` lets them pass.

    A handler is named by its type, or given as the module that it is.
    """

    def __init__(self, url: str, service: Service, bench: Bench) -> None:
        self.url = url
        """Of its database, for the program that puts jobs in: what that commits is seen here."""

        self._service = service
        self._stores = service.stores
        self._bench = bench

    def handler(self, name: str) -> ModuleType:
        """The module of a type as it is used here, for a test that replaces something in it.

        Raises:
            Refused: there is no such type.
        """
        types = self._service.handlers
        module: ModuleType = types[asked.known_type(name, types)].module
        return module

    async def run(
        self,
        handler: str | ModuleType,
        payload: Payload | None = None,
        *,
        queue: str = "default",
        attempt: int = 1,
        max_attempts: int = 4,
    ) -> Outcome:
        """Run one handler alone. Returns its outcome: `Done()` where it returns None or has used `ctx.transaction()`.

        Its job is there while it runs and gone afterwards; what it has written and put in stays.

        Raises:
            Exception: what the handler raises, as it is.
            pydantic.ValidationError: the payload does not fit.
            TimeoutError: it took longer than its `TIMEOUT`.
            TypeError: it returned something else.
        """
        runnable = self._runnable(handler)
        job = await self._bench.begin(
            type=runnable.type, payload=_plain(payload), queue=queue, attempt=attempt, max_attempts=max_attempts
        )
        try:
            given = runnable.module.Payload.model_validate(job.payload)
            async with self._service.batch(budget=BUDGET, max_jobs=1, trigger="test") as ctx:
                own = ctx.of(job)
                async with asyncio.timeout(runnable.timeout.total_seconds()):
                    returned = await _called(runnable, given, own)
            return Done() if own.progress.settled else _outcome(returned)
        finally:
            await self._bench.remove(job)

    async def enqueue(self, handler: str | ModuleType, payload: Payload | None = None, **options: Any) -> StoredJob:
        """Put in a job, and return what is there then: one that has its unique key already, if there is one.

        `options` are `queue`, `priority`, `run_after`, `unique_key`, `serial_key`, `max_attempts`, `replace`, and
        `then`, a list of `app.domain.jobs.NewJob` or of mappings with its names.

        Raises:
            Refused: there is no such type.
            pydantic.ValidationError: the payload does not fit.
            ValueError: what else of it is refused.
        """
        runnable, plain = self._runnable(handler), _plain(payload)
        runnable.module.Payload.model_validate(plain)
        then = [job if isinstance(job, NewJob) else NewJob(**job) for job in options.pop("then", ())]
        added = await self._stores.jobs.enqueue(type=runnable.type, payload=plain, then=then, **options)
        [stored] = [job for job in await self.jobs(type=runnable.type) if job.id == added.id]
        return stored

    async def jobs(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        status: str | None = None,
        queue: str | None = None,
    ) -> list[StoredJob]:
        """The jobs that fit every filter, in the order in which they were put in."""
        return await self._bench.all(type=type, status=status, queue=queue)

    async def drain(self, *, max_jobs: int = 1000, raises: bool = True) -> Drained:
        """Run what is due, and what that puts in, as a tick does.

        Raises:
            JobsFailed: a try failed, or a job is due whose type has no handler; not with `raises=False`.
        """
        since, _ = await self._bench.look()
        raised: dict[tuple[int, int], BaseException] = {}
        modules = {name: runnable.module for name, runnable in self._service.handlers.items()}
        runnables = {name: watched(handlers.users_own(name, module), raised) for name, module in modules.items()}
        async with self._service.batch(budget=BUDGET, max_jobs=max_jobs, trigger="test") as ctx:
            await drain.until_idle(ctx, runnables)
            ctx.tally.add("jobs.remaining", await self._stores.jobs.count_startable(list(runnables)))
            await self._stores.jobs.park(list(runnables))
        run = await self._bench.all(started_since=since)
        unknown = [job for job in await self.jobs(status="pending") if job.held]
        told = drained(ctx, run, unknown, since=since, raised=raised)
        if raises and told.failures:
            raise JobsFailed(told.failures) from next(iter(raised.values()), None)
        return told

    async def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass: what is due in an hour is due after `advance(hours=1)`; pauses and limits of queues go by too.

        What moves are the times of what waits, by so much towards the past.
        """
        await self._bench.advance(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds))

    async def assert_enqueued(
        self,
        handler: str | ModuleType,
        payload: Mapping[str, Any] | None = None,
        *,
        status: str | None = "pending",
        run_after: datetime | timedelta | None = None,
        within: timedelta = WITHIN,
        **columns: Any,
    ) -> StoredJob:
        """The first job that fits; there must be one.

        Args:
            handler: the job's type.
            payload: what its payload holds at least.
            status: None: any.
            run_after: an instant, or how long after it was put in.
            within: how exactly.
            columns: `queue`, `priority`, `unique_key`, `serial_key`, `max_attempts`.

        Raises:
            AssertionError: there is none; it lists what is there.
        """
        wanted = Wanted(
            type=_name(handler), payload=payload, status=status, run_after=run_after, within=within, columns=columns
        )
        there = await self.jobs()
        found = next((job for job in there if wanted.fits(job)), None)
        if found is None:
            raise AssertionError(f"there is no {wanted}\n{listed(there)}")
        return found

    async def refute_enqueued(
        self,
        handler: str | ModuleType,
        payload: Mapping[str, Any] | None = None,
        *,
        status: str | None = "pending",
        run_after: datetime | timedelta | None = None,
        within: timedelta = WITHIN,
        **columns: Any,
    ) -> None:
        """There must be no job that fits; what that means is as for `assert_enqueued`.

        Raises:
            AssertionError: there is one; it lists what is there.
        """
        wanted = Wanted(
            type=_name(handler), payload=payload, status=status, run_after=run_after, within=within, columns=columns
        )
        there = await self.jobs()
        found = next((job for job in there if wanted.fits(job)), None)
        if found is not None:
            raise AssertionError(f"job {found.id} is a {wanted}\n{listed(there)}")

    def _runnable(self, handler: str | ModuleType) -> Runnable:
        """Read anew: a test may have replaced its `handle` or its `TIMEOUT`."""
        if isinstance(handler, ModuleType):
            return handlers.users_own(_name(handler), handler)
        return handlers.users_own(handler, self.handler(handler))


async def _called(runnable: Runnable, payload: BaseModel, ctx: Context) -> Any:
    if runnable.threaded:
        return await in_thread(runnable.module.handle, payload, ctx)
    return await runnable.module.handle(payload, ctx)


def _outcome(returned: Any) -> Outcome:
    match returned:
        case None:
            return Done()
        case Done() | Snooze() | Discard():
            return returned
        case _:
            raise TypeError(f"handle() returned {type(returned).__name__}, not Done, Snooze or Discard")


def _plain(payload: Payload | None) -> Mapping[str, Any]:
    if isinstance(payload, BaseModel):
        return payload.model_dump(mode="json")
    return {} if payload is None else payload


def _name(handler: str | ModuleType) -> str:
    return handler.__name__.rpartition(".")[2] if isinstance(handler, ModuleType) else handler
