from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from app.bounds import Bound
from app.threads import in_thread

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name")


async def test_a_blocking_call_runs_in_a_daemon_thread_with_the_callers_context():
    NAME.set("caller")

    def call(more: str) -> tuple[str, bool, bool]:
        return (
            NAME.get() + more,
            threading.current_thread().daemon,
            threading.current_thread() is threading.main_thread(),
        )

    assert await in_thread(call, "!") == ("caller!", True, False)


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3), KeyboardInterrupt()])
async def test_what_a_thread_raises_is_raised_here(error: BaseException):
    def call() -> Any:
        raise error

    with pytest.raises(type(error)):
        await in_thread(call)


async def test_a_thread_that_is_not_waited_for_any_more_harms_nobody():
    go_on, over = threading.Event(), threading.Event()

    def call() -> None:
        go_on.wait(30)
        over.set()

    with pytest.raises(TimeoutError), Bound(0.01):
        await in_thread(call)
    go_on.set()

    assert await asyncio.to_thread(over.wait, 30)
    await asyncio.sleep(0)
