"""What a drain did, and what failed in it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from app.domain.shown import instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from app.context import Context
    from app.domain.jobs import FailedTry
    from app.handlers import Runnable
    from app.stores.jobs import StoredJob

    Raised = dict[tuple[int, int], BaseException]
    """By job and attempt."""

UNKNOWN = "there is no handler of its type"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    """A try that failed, or a job that nothing could try."""

    job: StoredJob
    """As it stands now: `pending` when it is tried again at its `run_after`, or `failed`."""

    error: str

    exception: BaseException | None = None
    """What its handler raised; None where that was not to blame: the payload did not fit, or its time was over."""

    def __str__(self) -> str:
        if self.job.held:
            return f"job {self.job.id} ({self.job.type}): {self.error}"
        again = f"tried again at {instant(self.job.run_after)}"
        state = {"pending": again, "failed": "given up"}.get(self.job.status, f"{self.job.status} since")
        return f"job {self.job.id} ({self.job.type}), {state}: {self.error}"


class JobsFailed(AssertionError):
    """Jobs failed in a drain. Its cause is the first exception that a handler raised."""

    def __init__(self, failures: list[FailedJob]) -> None:
        told = "\n".join(f"  {failure}" for failure in failures)
        super().__init__(f"{len(failures)} failed:\n{told}")
        self.failures = failures


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What a drain did."""

    done: int

    cancelled: int
    """Those whose handler returned `Discard`."""

    snoozed: int

    retrying: int
    """Tries that failed and are made again later."""

    failed: int
    """Jobs that were given up."""

    remaining: int
    """What is due still: there were more than `max_jobs`."""

    jobs: list[StoredJob]
    """Every job that was run, as it stands now, in the order in which they were put in."""

    failures: list[FailedJob]
    """Tries that failed, and jobs that are due and whose type has no handler."""


def watched(runnable: Runnable, raised: Raised) -> Runnable:
    """The same, whose exceptions are noted."""
    module = runnable.module

    async def handle(payload: Any, ctx: Context) -> Any:
        try:
            return await module.handle(payload, ctx)
        except BaseException as error:
            _note(error, ctx, raised)
            raise

    def blocking(payload: Any, ctx: Context) -> Any:
        try:
            return module.handle(payload, ctx)
        except BaseException as error:
            _note(error, ctx, raised)
            raise

    standing_in: Any = SimpleNamespace(Payload=module.Payload, handle=blocking if runnable.threaded else handle)
    return dataclasses.replace(runnable, module=standing_in)


def drained(
    ctx: Context, jobs: list[StoredJob], unknown: list[StoredJob], *, since: datetime, raised: Raised
) -> Drained:
    """`jobs` were started since then; `unknown` ones could not be."""
    cancelled = sum(job.status == "cancelled" for job in jobs)
    tries = [(job, failed) for job in jobs for failed in job.failures or () if failed.at >= since]
    return Drained(
        done=ctx.tally["jobs.done"] - cancelled,
        cancelled=cancelled,
        snoozed=ctx.tally["jobs.snoozed"],
        retrying=ctx.tally["jobs.retrying"],
        failed=ctx.tally["jobs.failed"],
        remaining=ctx.tally["jobs.remaining"],
        jobs=jobs,
        failures=[_failed(job, one, raised) for job, one in tries]
        + [FailedJob(job=job, error=UNKNOWN) for job in unknown],
    )


def _failed(job: StoredJob, one: FailedTry, raised: Mapping[tuple[int, int], BaseException]) -> FailedJob:
    return FailedJob(job=job, error=one.error or "", exception=raised.get((job.id, one.attempt)))


def _note(error: BaseException, ctx: Context, raised: Raised) -> None:
    raised[ctx.current_job.id, ctx.current_job.attempt] = error
