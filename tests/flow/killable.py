"""`wakebell`, that kills itself with SIGKILL at a moment which the environment names. Run as a program.

DIE_AT=point     at a named point of the batch, the first time that it gets there
DIE_AT=number    before or after the so-manyth thing that its tick does with the world: a statement, a transaction,
                 a commit, a request. Beyond the last one it lives, and says how many there were

`killable.py lives` imports the service once. Then each line of its standard input, `DIE_AT ARGUMENT...`, is the life of
one child: a `wakebell` with these arguments, forked. A line comes back when the child is over: its exit status.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import httpx

from app import cli, plugins
from app.channels import line
from app.handlers import fetch_source
from app.stores import jobs, sources
from app.stores.database import Database
from app.stores.items import Items
from app.stores.messages import Messages
from app.stores.ticks import Ticks

DIE_AT = "WAKEBELL_TESTS_DIE_AT"


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL cannot be survived")


def of_a_send(*args: Any, **_: Any) -> bool:
    return any(getattr(arg, "type", None) == "send_message" for arg in args)


def of_a_fetch(*args: Any, **_: Any) -> bool:
    return any(getattr(arg, "type", None) == "fetch_source" for arg in args)


def of_a_compose(*args: Any, **_: Any) -> bool:
    return any(getattr(arg, "type", None) == "compose_messages" for arg in args)


def always(*_: Any, **__: Any) -> bool:
    return True


# In the order of a batch. Where, whose attribute, and for which of its calls.
POINTS: dict[str, tuple[str, Any, str, Callable[..., bool]]] = {
    "after the fetch": ("after", fetch_source, "_fetch", always),
    "amid the round": ("after", sources, "store_in", always),
    "before the commit of the round": ("after", jobs, "finish_in", of_a_fetch),
    "after the commit of the round": ("after", Items, "add_round", always),
    "before the commit of the message": ("after", jobs, "finish_in", of_a_compose),
    "after the commit of the message": ("after", Messages, "compose", always),
    "before the send is noted": ("before", Messages, "start", always),
    "before the send": ("before", line, "send", always),
    "after the answer": ("after", line, "send", always),
    "before the result is noted": ("before", Messages, "finish_sent", always),
    "before the last commit": ("after", jobs, "finish_in", of_a_send),
    "after the last commit": ("after", Messages, "finish_sent", always),
    "before the tick is closed": ("before", Ticks, "close", always),
}


def set_point(name: str) -> None:
    moment, owner, attribute, concerned = POINTS[name]
    call: Callable[..., Awaitable[Any]] = getattr(owner, attribute)

    @functools.wraps(call)
    async def deadly(*args: Any, **kwargs: Any) -> Any:
        if moment == "before" and concerned(*args, **kwargs):
            die()
        answer = await call(*args, **kwargs)
        if moment == "after" and concerned(*args, **kwargs):
            die()
        return answer

    setattr(owner, attribute, deadly)


class Count:
    """Steps of the process; it dies at the given one."""

    def __init__(self, fatal: int) -> None:
        self.steps = 0
        self._fatal = fatal

    def step(self) -> None:
        self.steps += 1
        if self.steps == self._fatal:
            die()

    def around(self, owner: Any, attribute: str) -> None:
        call: Callable[..., Awaitable[Any]] = getattr(owner, attribute)

        @functools.wraps(call)
        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.step()
            answer = await call(*args, **kwargs)
            self.step()
            return answer

        setattr(owner, attribute, counted)

    def around_transactions(self) -> None:
        transaction = Database.transaction

        @asynccontextmanager
        async def counted(database: Database):
            self.step()
            async with transaction(database) as connection:
                self.step()
                yield connection
                self.step()  # all written, nothing committed
            self.step()

        Database.transaction = counted  # type: ignore[method-assign, assignment]


def set_count(fatal: int) -> Count:
    count = Count(fatal)
    count.around(Database, "fetch")
    count.around(httpx.AsyncHTTPTransport, "handle_async_request")
    count.around_transactions()
    return count


def run(die_at: str, arguments: list[str]) -> int:
    if not die_at.isdigit():
        set_point(die_at)
        return cli.main(arguments)
    count = set_count(int(die_at))
    status = cli.main(arguments)
    print(f"steps: {count.steps}", flush=True)
    return status


def lives() -> None:
    for package in ("app.channels", "app.handlers", "app.plans", "app.sources"):
        for kind in plugins.kinds(package):
            plugins.load(package, kind)
    for order in sys.stdin:
        die_at, *arguments = order.split()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = run(die_at, arguments)
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        print(f"ended: {os.waitstatus_to_exitcode(ended)}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["lives"]:
        lives()
    else:
        sys.exit(run(os.environ[DIE_AT], sys.argv[1:]))
