"""One run of one job: its payload read, its handler called within its time, its outcome written."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
import traceback
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app import logs
from app.bounds import Bound, Stepped
from app.domain.errors import DatabaseUnavailable, LeaseLost, PermanentFailure, TemporaryFailure
from app.domain.jobs import Discard, Done, Finished, Settled, Snooze, retry_delay
from app.threads import in_thread

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.jobs import Job
    from app.handlers import Runnable

log = logging.getLogger(__name__)

LONGEST = timedelta(days=365)
"""How long a job is put off at most: whoever asks for more has made a mistake, milliseconds for seconds perhaps."""

TOO_DEEP = "the payload is nested too deeply to be read; put the job in again with a flatter one"

TRACEBACK_LINES = 20
"""Of a bug, kept with the failed try: the innermost calls say most."""


class _Cut(Exception):
    """The tick's time ended before the job's own did: nobody's fault."""


class Cut:
    """Whether those who run jobs cancel them: a handler may do that to itself, which is its own failure."""

    def __init__(self) -> None:
        self.ordered = False


async def run(ctx: Context, job: Job, runnable: Runnable, limit: timedelta, cut: Cut) -> Finished | None:
    """Run the handler for at most `limit` and write what came of it. A job that fails, fails alone.

    Who cancels the task that this runs in orders the cut first. Returns what the caller is to finish, together with
    others; None when that is done already.

    Raises:
        DatabaseUnavailable: what came of it could not be written; the job is due again when its lease ends.
    """
    begun = time.monotonic()
    logs.JOB.set(job)  # in the task that runs it, and those that it makes
    own = ctx.of(job)
    writing = _Writing(ctx, job, runnable)
    try:
        outcome = await _handled(own, job, runnable, limit)
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and cut.ordered:
            if not own.progress.settled:
                await writing.finish("interrupted", error="the process was told to stop")
            raise
        await _spared(cut)
        await _raised(writing, own, error)
        return None
    await _spared(cut)
    if own.progress.settled:
        if not isinstance(outcome, Settled | None) and outcome != Done():
            log.warning("job outcome after its transaction does not count", extra=writing.about)
        writing.count("done")
        return None
    return await _kept(writing, own, outcome, seconds=time.monotonic() - begun)


async def _spared(cut: Cut) -> None:
    """Take back that a handler has cancelled its own task: what is written next, and who comes next, are not meant."""
    task = asyncio.current_task()
    if task is None or not task.cancelling() or cut.ordered:
        return
    while task.cancelling():
        task.uncancel()
    try:
        await asyncio.sleep(0)  # where a cancellation arrives that was under way
    except asyncio.CancelledError:
        if cut.ordered:
            raise


async def _handled(ctx: Context, job: Job, runnable: Runnable, limit: timedelta) -> Any:
    if not isinstance(job.payload, dict):  # what a claim does not hand out, and whatever else the handler would take
        raise PermanentFailure(TOO_DEEP)
    try:
        payload = runnable.module.Payload.model_validate(job.payload)
    except ValidationError as error:
        raise PermanentFailure(_told(error)) from None
    waiting: Any
    if runnable.threaded:
        waiting = in_thread(runnable.module.handle, payload, ctx)
    else:
        waiting = Stepped(runnable.module.handle(payload, ctx), {"job": job.id, "type": job.type})
        if waiting.begin():
            return waiting.value
    ctx.progress.waited = True
    bound = Bound(limit.total_seconds())
    try:
        with bound:
            return await waiting
    except TimeoutError:
        if not bound.expired:  # the handler's own, about something of its own
            raise
        if limit < runnable.timeout:
            raise _Cut from None
        raise TemporaryFailure(f"took longer than its time-out of {limit.total_seconds():g} s") from None


async def _raised(writing: _Writing, ctx: Context, error: BaseException) -> None:
    """The handler did not return."""
    if ctx.progress.settled:
        log.warning("job failed after its transaction had finished it", extra=writing.about, exc_info=error)
        writing.count("done")
        return
    match error:
        case _Cut():
            await writing.finish("release")
        case LeaseLost():
            log.warning("job lease lost", extra=writing.about)
        case asyncio.CancelledError():
            await _failed(writing, ctx, "CancelledError: the handler ended as if it had been cancelled")
        case PermanentFailure():
            await writing.finish("failed", error=_words(error))
        case TemporaryFailure():
            await _failed(writing, ctx, _words(error), after=error.retry_after)
        case DatabaseUnavailable():
            log.warning("job stopped by the database", extra={**writing.about, "reason": str(error)})
            await _failed(writing, ctx, str(error))
        case _:
            log.error("job attempt crashed", extra=writing.about, exc_info=error)
            trace = "".join(traceback.format_exception(error)).splitlines()[-TRACEBACK_LINES:]
            await _failed(writing, ctx, f"{type(error).__name__}: {_words(error)}", trace="\n".join(trace))


async def _kept(writing: _Writing, ctx: Context, outcome: Any, *, seconds: float) -> Finished | None:
    try:
        match outcome:
            case Settled():
                return None
            case Done() | None if not writing.runnable.own:
                result = outcome.result if outcome else None
                return Finished(job=writing.job, result=result, seconds=seconds, waited=ctx.progress.waited)
        await _ended(writing, ctx, outcome)
    except DatabaseUnavailable:
        raise
    except Exception as error:  # a delay that is none or has no end: the handler's bug, and no other job's matter
        log.exception("job outcome refused", extra=writing.about)
        await _failed(writing, ctx, f"its outcome cannot be kept: {type(error).__name__}: {_words(error)}")
    return None


async def _ended(writing: _Writing, ctx: Context, outcome: Any) -> None:
    match outcome:
        case Done(result):
            await writing.finish("done", result=result)
        case None:
            await writing.finish("done")
        case Snooze(timedelta() as delay):
            await writing.finish("snooze", delay=min(delay, LONGEST))
        case Snooze():
            raise TypeError("Snooze takes a datetime.timedelta")
        case Discard(reason):
            await writing.finish("cancelled", error=reason)
        case _:
            reason = f"handle() returned {type(outcome).__name__}, not Done, Snooze or Discard"
            await _failed(writing, ctx, reason)


async def _failed(
    writing: _Writing,
    ctx: Context,
    reason: str,
    *,
    after: timedelta | None = None,
    trace: str | None = None,
) -> None:
    """An attempt that failed: once more after a while, or given up when it was the last."""
    job, delays = writing.job, writing.runnable.delays
    if job.last_attempt:
        await writing.finish("failed", error=reason, traceback=trace)
        return
    tries = max(job.attempt - job.crashes, 1)
    usual = delays[min(tries, len(delays)) - 1] if delays else retry_delay(tries, jitter=ctx.random.random())
    delay = after if isinstance(after, timedelta) and timedelta(0) < after else usual
    await writing.finish("retry", delay=min(delay, LONGEST), error=reason, traceback=trace)


COUNTERS = {
    "done": "jobs.done",
    "cancelled": "jobs.done",  # there was nothing to do: nothing that anybody must look at
    "snooze": "jobs.snoozed",
    "retry": "jobs.retrying",
    "failed": "jobs.failed",
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Writing:
    """Writes down how a run ended, and counts it."""

    ctx: Context
    job: Job
    runnable: Runnable

    @property
    def about(self) -> dict[str, Any]:
        """What log lines say of the job."""
        return {"job": self.job.id, "type": self.job.type, "attempt": self.job.attempt}

    async def finish(self, outcome: Any, **told: Any) -> None:
        """`outcome` is one of `stores.jobs.Ending`, `told` what belongs to it."""
        if not await self.ctx.stores.jobs.finish(self.job, outcome, **told):
            log.warning("job lease lost", extra=self.about)
            return
        if outcome in {"retry", "failed"}:
            log.warning("job attempt failed", extra={**self.about, "outcome": outcome, "reason": told["error"]})
            self.ctx.tally.fail(f"job type {self.job.type} failed")
        self.count(outcome)

    def count(self, outcome: str) -> None:
        """Only users' jobs count in the summary's `jobs`."""
        if not self.runnable.own and outcome in COUNTERS:
            self.ctx.tally.add(COUNTERS[outcome])


def _words(error: BaseException) -> str:
    """What an exception says of itself; one of a handler's may break over it."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it is, its job fails alone
        return "(it cannot be put into words)"


def _told(error: ValidationError) -> str:
    """Which fields of the payload are wrong, without their values: those may be secret."""
    places = [f"{'.'.join(str(part) for part in e['loc']) or 'the payload'}: {e['msg']}" for e in error.errors()]
    return "the payload does not fit the handler: " + "; ".join(places[:10])
