"""A time-out for one job that does not count the time in which another one held the event loop.

A handler that blocks the loop (a `time.sleep`, a long computation) stops all jobs of its process. Without this the
time-outs of all of them would be over when it lets go, and jobs would fail for what one of them did.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator
    from types import TracebackType

log = logging.getLogger(__name__)

BLOCKING_SECONDS = 1.0
"""A step of this length is told in the log: what else runs in the process has stood still for it."""


class Stalls:
    """How long the loop was held, in all, since the process began."""

    def __init__(self) -> None:
        self.total = 0.0


STALLS = Stalls()


class Bound:
    """`with Bound(seconds) as bound`, in a task: cancels what is inside once its time is over; `expired` says so."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stalled = 0.0
        self.expired = False

    def __enter__(self) -> Self:
        """Begin to count."""
        self._task = asyncio.current_task()
        self._stalled = STALLS.total
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._over)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop counting; a cancellation of its own becomes TimeoutError."""
        if self._timer is not None:
            self._timer.cancel()
        if not self.expired or self._task is None:
            return
        others = self._task.uncancel()  # somebody else may have cancelled the task as well: that goes on
        if kind is not None and issubclass(kind, asyncio.CancelledError) and not others:
            raise TimeoutError from error

    def _over(self) -> None:
        stalled = STALLS.total - self._stalled
        if stalled > 0:  # what the loop stood still does not count
            self._stalled = STALLS.total
            self._timer = asyncio.get_running_loop().call_later(stalled, self._over)
        elif self._task is not None:
            self.expired = True
            self._task.cancel()


class Stepped:
    """Runs something step by step, in a context of its own, and measures each; a long one is a stall for all others.

    `begin` runs it to where it first has to wait for something; most small jobs end there, and have cost no timer. Then
    it is awaited, in the same task and at once: what it waits for is handed on.
    """

    def __init__(self, awaited: Awaitable[Any], about: dict[str, Any]) -> None:
        self._steps = awaited.__await__()
        self._context = contextvars.copy_context()  # several jobs may run in one task
        self._about = about
        self._waits_for: Any = None
        self.value: Any = None
        """What it returned."""

    def begin(self) -> bool:
        """Whether it has ended with its first step. Raises what it raises."""
        return self._ended(self._steps.send, None)

    def __await__(self) -> Generator[Any, Any, Any]:
        """What it returns."""
        ended = False
        while not ended:
            try:
                value = yield self._waits_for
            except BaseException as error:  # noqa: BLE001 - handed on to the handler, whatever it is
                ended = self._ended(self._steps.throw, error)
            else:
                ended = self._ended(self._steps.send, value)
        return self.value

    def _ended(self, step: Any, value: Any) -> bool:
        begun = time.monotonic()
        try:
            self._waits_for = self._context.run(step, value)
        except StopIteration as end:
            self.value = end.value
            return True
        finally:
            if (seconds := time.monotonic() - begun) >= BLOCKING_SECONDS:
                self._tell_stall(seconds)
        return False

    def _tell_stall(self, seconds: float) -> None:
        STALLS.total += seconds
        log.warning(
            "job blocked the event loop",
            extra={**self._about, "seconds": round(seconds, 1), "advice": "def handle runs in a thread"},
        )
