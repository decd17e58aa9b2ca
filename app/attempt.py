"""One run of one job: its payload read, its handler called within its time, its outcome written."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app.domain.errors import DatabaseUnavailable, LeaseLost, PermanentFailure, TemporaryFailure
from app.domain.jobs import Discard, Done, Settled, Snooze, retry_delay

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.jobs import Job
    from app.handlers import Runnable

log = logging.getLogger(__name__)


LONGEST = timedelta(days=365)
"""How long a failed job is put off at most: a provider that asks for more has made a mistake."""


class _Cut(Exception):
    """The tick's time ended before the job's own did: nobody's fault."""


async def run(ctx: Context, job: Job, runnable: Runnable, limit: timedelta) -> None:
    """Run the handler for at most `limit` and write what came of it. A job that fails, fails alone.

    Raises:
        DatabaseUnavailable: what came of it could not be written; the job is due again when its lease ends.
    """
    about = {"job": job.id, "type": job.type, "attempt": job.attempt}
    try:
        outcome = await _handled(dataclasses.replace(ctx, job=job), job, runnable, limit)
    except asyncio.CancelledError:
        if _told_to_end():
            await _finish(ctx, job, runnable, "interrupted", error="the process was told to stop")
            raise
        await _failed(ctx, job, runnable, "CancelledError: the handler ended as if it had been cancelled")
    except _Cut:
        await _finish(ctx, job, runnable, "release")
    except LeaseLost:
        log.warning("job lease lost", extra=about)
    except PermanentFailure as failure:
        await _finish(ctx, job, runnable, "failed", error=str(failure))
    except TemporaryFailure as failure:
        await _failed(ctx, job, runnable, str(failure), after=failure.retry_after)
    except DatabaseUnavailable as error:
        log.warning("job stopped by the database", extra={**about, "reason": str(error)})
        await _failed(ctx, job, runnable, str(error))
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # a handler's bug, or its try to end the process
        log.exception("job attempt crashed", extra=about)
        await _failed(ctx, job, runnable, f"{type(error).__name__}: {error}")
    else:
        await _kept(ctx, job, runnable, outcome)


def _told_to_end() -> bool:
    """Whether it is this task that was cancelled, and not something that the handler waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _handled(ctx: Context, job: Job, runnable: Runnable, limit: timedelta) -> Any:
    try:
        payload = runnable.module.Payload.model_validate(dict(job.payload))
    except ValidationError as error:
        raise PermanentFailure(_told(error)) from None
    bound = asyncio.timeout(limit.total_seconds())
    try:
        async with bound:
            return await runnable.module.handle(payload, ctx)
    except TimeoutError:
        if not bound.expired():  # the handler's own, about something of its own
            raise
        if limit < runnable.timeout:
            raise _Cut from None
        raise TemporaryFailure(f"took longer than its time-out of {limit.total_seconds():g} s") from None


async def _kept(ctx: Context, job: Job, runnable: Runnable, outcome: Any) -> None:
    try:
        await _ended(ctx, job, runnable, outcome)
    except DatabaseUnavailable:
        raise
    except Exception as error:  # a delay that is none or has no end: the handler's bug, and no other job's matter
        log.exception("job outcome refused", extra={"job": job.id, "type": job.type, "attempt": job.attempt})
        await _failed(ctx, job, runnable, f"its outcome cannot be kept: {type(error).__name__}: {error}")


async def _ended(ctx: Context, job: Job, runnable: Runnable, outcome: Any) -> None:
    match outcome:
        case Settled():
            pass
        case Done(result):
            await _finish(ctx, job, runnable, "done", result=result)
        case None:
            await _finish(ctx, job, runnable, "done")
        case Snooze(timedelta() as delay):
            await _finish(ctx, job, runnable, "snooze", delay=delay)
        case Snooze():
            raise TypeError("Snooze takes a datetime.timedelta")
        case Discard(reason):
            await _finish(ctx, job, runnable, "cancelled", error=reason)
        case _:
            reason = f"handle() returned {type(outcome).__name__}, not Done, Snooze or Discard"
            await _failed(ctx, job, runnable, reason)


async def _failed(ctx: Context, job: Job, runnable: Runnable, reason: str, *, after: timedelta | None = None) -> None:
    """An attempt that failed: once more after a while, or given up when it was the last."""
    if job.last_attempt:
        await _finish(ctx, job, runnable, "failed", error=reason)
        return
    tries = max(job.attempt - job.crashes, 1)
    if runnable.delays:
        usual = runnable.delays[min(tries, len(runnable.delays)) - 1]
    else:
        usual = retry_delay(tries, jitter=ctx.random.random())
    delay = after if isinstance(after, timedelta) and timedelta(0) < after else usual
    await _finish(ctx, job, runnable, "retry", delay=min(delay, LONGEST), error=reason)


COUNTERS = {
    "done": "jobs.done",
    "cancelled": "jobs.done",  # there was nothing to do: nothing that anybody must look at
    "snooze": "jobs.snoozed",
    "retry": "jobs.retrying",
    "failed": "jobs.failed",
}


async def _finish(ctx: Context, job: Job, runnable: Runnable, outcome: Any, **told: Any) -> None:
    if not await ctx.stores.jobs.finish(job, outcome, **told):
        log.warning("job lease lost", extra={"job": job.id, "type": job.type, "attempt": job.attempt})
        return
    if outcome in {"retry", "failed"}:
        log.warning(
            "job attempt failed",
            extra={
                "job": job.id,
                "type": job.type,
                "attempt": job.attempt,
                "outcome": outcome,
                "reason": told["error"],
            },
        )
        ctx.tally.fail(f"job type {job.type} failed")
    if not runnable.own and outcome in COUNTERS:
        ctx.tally.add(COUNTERS[outcome])


def _told(error: ValidationError) -> str:
    """Which fields of the payload are wrong, without their values: those may be secret."""
    places = [f"{'.'.join(str(part) for part in e['loc']) or 'the payload'}: {e['msg']}" for e in error.errors()]
    return "the payload does not fit the handler: " + "; ".join(places[:10])
