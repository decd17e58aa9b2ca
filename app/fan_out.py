"""More is due than one tick may run: other replicas are woken for it, by ringing the service's own address.

    tick --count--> rings --(beside the tick's own drain)--> answers --> judge, count what remains

The host's balancer decides who answers; who does shares what is due as two ticks do. The requests stay open until the
drains have ended, since hosts freeze what runs after an answer.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from app.clients import ring
from app.context import outbound
from app.domain.errors import Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import httpx

    from app.context import Context

log = logging.getLogger(__name__)

WAKING = timedelta(seconds=2)
"""What a replica may take to wake without its drain ending later than the tick. So much less is its budget."""

LEAST_BUDGET = timedelta(seconds=1)


class FanOut:
    """The drains that one tick has rung. Left, whatever of them is still open is closed."""

    def __init__(self, ctx: Context, types: Collection[str]) -> None:
        """`types` are users' types, which this tick's `max_jobs` bounds."""
        self._ctx = ctx
        self._types = types
        self._open = AsyncExitStack()
        self._ringing: list[asyncio.Task[Mapping[str, int] | str]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._ringing:
            task.cancel()
        await asyncio.gather(*self._ringing, return_exceptions=True)
        await self._open.aclose()

    async def ring(self) -> None:
        """Ring for what is due beyond this tick's own bound, `[tick] fan_out` drains at most. Waits for none of them.

        Without that setting no statement is made.
        """
        count = await self._count()
        if count:
            http = await self._open.enter_async_context(outbound(self._ctx.service.user_agent))
            self._ringing = [asyncio.create_task(self._ring(http)) for _ in range(count)]

    async def answers(self) -> bool:
        """Wait for the drains: until the tick must end, or the process is told to stop. They change no outcome.

        Whether there were any.
        """
        if not self._ringing:
            return False
        ended: asyncio.Task[Any] = asyncio.create_task(asyncio.wait(self._ringing))
        stopped: asyncio.Task[Any] = asyncio.create_task(self._ctx.service.stopping.wait())
        try:
            await asyncio.wait({ended, stopped}, return_when="FIRST_COMPLETED")
        finally:
            ended.cancel()
            stopped.cancel()
        self._tell([task.result() for task in self._ringing if task.done()])
        return True

    async def _count(self) -> int:
        most, size = self._ctx.settings.tick.fan_out, self._ctx.max_jobs
        if not most or self._budget < LEAST_BUDGET or self._ctx.service.stopping.requested:
            return 0
        due = await self._ctx.stores.jobs.count_startable(self._types, limit=size * most + 1)
        return min(most, math.ceil(max(due - size, 0) / size))

    @property
    def _budget(self) -> timedelta:
        return self._ctx.deadline.budget - self._ctx.deadline.elapsed - WAKING

    async def _ring(self, http: httpx.AsyncClient) -> Mapping[str, int] | str:
        """What the drain has counted, or why there was none."""
        environment = self._ctx.settings.environment
        if environment.public_url is None or not environment.cron_secrets:
            return "CRON_SECRET is not set"
        try:
            return await ring.ring(
                http,
                environment.public_url,
                environment.cron_secrets[0],
                budget=max(self._budget, LEAST_BUDGET),
                max_jobs=self._ctx.max_jobs,
                patience=self._ctx.deadline.left,
            )
        except Failure as failure:
            return str(failure)

    def _tell(self, answers: list[Mapping[str, int] | str]) -> None:
        reasons = [answer for answer in answers if isinstance(answer, str)]
        jobs: Counter[str] = Counter()
        for answer in answers:
            if not isinstance(answer, str):
                jobs.update(answer)
        del jobs["remaining"]  # each has counted the same
        about = {"rings": len(self._ringing), "answered": len(answers) - len(reasons)}
        log.info("replicas rung", extra={**about, "jobs": dict(jobs)})
        if reasons:
            log.warning("replicas not woken", extra={"rings": len(reasons), "reasons": sorted(set(reasons))})
