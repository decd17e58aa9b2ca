"""Blocking work beside the event loop, in threads that keep no process from ending."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)


async def in_thread(call: Callable[..., Any], *args: Any) -> Any:
    """What a blocking call returns, from a thread of its own.

    A call that is not over when its time is goes on: a thread cannot be stopped. It is a daemon, so that the process
    can end without it, and whatever it does by then, its job's lost lease keeps that from being written down.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if answer.done():  # its time was over
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)

    def work() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(call, *args)
        except StopIteration as stopped:  # a Future refuses it
            error = RuntimeError(f"StopIteration: {stopped}")
        except BaseException as raised:  # noqa: BLE001 - the job's, whatever it is
            error = raised
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            log.debug("a job's thread outlived its tick")

    threading.Thread(target=work, name="job", daemon=True).start()
    return await answer
