"""A process that kills itself with SIGKILL at a moment it was told: production code knows nothing of it.

a point     the first time that the batch gets there, by its name in POINTS
a number    before or after the so-manyth thing that the process does with the world: a statement, a transaction,
            a commit, a request; beyond the last one it lives, and its log says how many there were

With `SUSPENDED` before its name, a point is where the process stands still, once, until it is sent SIGCONT.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import httpx

from app import commanding
from app.channels import line
from app.chats import line as chats_line
from app.handlers import fetch_source
from app.stores import conversations, jobs, reminders, sources
from app.stores.conversations import Conversations
from app.stores.database import Database
from app.stores.items import Items
from app.stores.messages import Messages
from app.stores.reminders import Reminders
from app.stores.ticks import Ticks

Concerned = Callable[..., bool]

SUSPENDED = "suspended "


def always(*_: Any, **__: Any) -> bool:
    return True


def of_a(job_type: str) -> Concerned:
    """Whether a call is about a job of the type."""
    return lambda *args, **_: any(getattr(arg, "type", None) == job_type for arg in args)


# In the order of a batch: where, whose attribute, and for which of its calls.
POINTS: dict[str, tuple[str, Any, str, Concerned]] = {
    "after the fetch": ("after", fetch_source, "_fetch", always),
    "amid the round": ("after", sources, "settle_in", always),
    "before the commit of the round": ("after", jobs, "finish_in", of_a("fetch_source")),
    "after the commit of the round": ("after", Items, "add_round", always),
    "before the commit of the message": ("after", jobs, "finish_in", of_a("compose_messages")),
    "after the commit of the message": ("after", Messages, "compose", always),
    "before the send is noted": ("before", Messages, "start", always),
    "before the send": ("before", line, "send", always),
    "after the answer": ("after", line, "send", always),
    "before the last commit": ("after", jobs, "finish_in", of_a("send_message")),
    "after the last commit": ("after", Messages, "finish_sent", always),
    "before the tick is closed": ("before", Ticks, "close", always),
}

# In the order in which a booking's reminder gets there; rounds of sources never do.
OF_REMINDERS: dict[str, tuple[str, Any, str, Concerned]] = {
    "amid the planning of reminders": ("after", reminders, "_queue_in", always),
    "after the planning of reminders": ("after", Reminders, "plan", always),
    "before the reminder is kept": ("after", jobs, "finish_in", of_a("send_reminder")),
    "after the reminder is kept": ("after", Reminders, "tell", always),
    "after LINE has the reminder": ("after", line, "send", always),
}

# In the order in which a command in a chat gets there.
OF_COMMANDS: dict[str, tuple[str, Any, str, Concerned]] = {
    "before the effect of a command is kept": ("after", conversations, "freeze_in", always),
    "after the effect of a command is kept": ("after", commanding, "obey", always),
    "after LINE has the reply": ("after", chats_line, "reply", always),
}

# In the order in which a message in a chat gets there.
OF_REPLIES: dict[str, tuple[str, Any, str, Concerned]] = {
    "before the reply is frozen": ("before", Conversations, "freeze", always),
    "after the reply is frozen": ("after", Conversations, "freeze", always),
    "after LINE has the reply": ("after", chats_line, "reply", always),
}


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL cannot be survived")


def stand_still() -> None:
    """As a machine does that its host suspends."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _once(act: Callable[[], None]) -> Callable[[], None]:
    acts = [act]
    return lambda: acts.pop()() if acts else None


def die_at(moment: str | int) -> Count | None:
    """From now on this process is mortal. What is returned counts its steps."""
    if isinstance(moment, int):
        return Count(moment)
    when, owner, attribute, concerned = (POINTS | OF_REMINDERS | OF_COMMANDS | OF_REPLIES)[
        moment.removeprefix(SUSPENDED)
    ]
    happen = _once(stand_still) if moment.startswith(SUSPENDED) else die
    call: Callable[..., Awaitable[Any]] = getattr(owner, attribute)

    @functools.wraps(call)
    async def deadly(*args: Any, **kwargs: Any) -> Any:
        if when == "before" and concerned(*args, **kwargs):
            happen()
        answer = await call(*args, **kwargs)
        if when == "after" and concerned(*args, **kwargs):
            happen()
        return answer

    setattr(owner, attribute, deadly)
    return None


class Count:
    """Steps of the process; it dies at the given one. 0: never."""

    def __init__(self, fatal: int) -> None:
        self.steps = 0
        self._fatal = fatal
        self._around(Database, "fetch")
        self._around(httpx.AsyncHTTPTransport, "handle_async_request")
        for name in ("transaction", "sqlalchemy"):
            self._around_transactions(name)

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self._fatal:
            die()

    def _around(self, owner: Any, attribute: str) -> None:
        call: Callable[..., Awaitable[Any]] = getattr(owner, attribute)

        @functools.wraps(call)
        async def counted(*args: Any, **kwargs: Any) -> Any:
            self._step()
            answer = await call(*args, **kwargs)
            self._step()
            return answer

        setattr(owner, attribute, counted)

    def _around_transactions(self, name: str) -> None:
        transaction = getattr(Database, name)

        @asynccontextmanager
        async def counted(database: Database):
            self._step()
            async with transaction(database) as connection:
                self._step()
                yield connection
                self._step()  # all is written, nothing is committed
            self._step()

        setattr(Database, name, counted)
