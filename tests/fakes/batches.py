"""A service and the contexts of its ticks, around handlers that are made up."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from app import composing, handlers, main, settings
from app.context import Context, Deadline, Service
from app.domain.jobs import Job
from app.handlers import OWN_LEAST, Runnable
from app.settings.watched import chats_that_tell
from app.stores.database import Database
from app.stores.looks import About, Look
from app.stores.sql import Statement

CRON_SECRET = "a-cron-secret-of-thirty-characters"
API_TOKEN = "an-api-token-of-thirty-characters"
LEASE = timedelta(seconds=60)

Handle = Callable[[Any, Context], Coroutine[Any, Any, Any]]


class Half(random.Random):
    """Chance that leaves every delay as it is."""

    def random(self) -> float:
        return 0.5


class AnyPayload(BaseModel, extra="allow"):
    """Takes everything."""


def a_service(url: str, folder: Path, text: str = "", **environ: str) -> Service:
    """A service over a database, with a configuration file of this text; no user's handlers."""
    (folder / "wakebell.toml").write_text(text, encoding="utf-8")
    given = {
        "DATABASE_URL": url,
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "CRON_SECRET": CRON_SECRET,
        "API_TOKEN": API_TOKEN,
    }
    service = main.build(settings.load(given | environ))
    return dataclasses.replace(service, random=Half(1))


def runnable(
    name: str,
    handle: Handle,
    *,
    own: bool = False,
    timeout: float = 15,
    threaded: bool = False,
    delays: tuple[timedelta, ...] | None = None,
    after: frozenset[str] = frozenset(),
    payload: type[BaseModel] = AnyPayload,
) -> Runnable:
    module: Any = SimpleNamespace(Payload=payload, handle=handle)
    seconds = timedelta(seconds=timeout)
    return Runnable(
        type=name,
        module=module,
        own=own,
        timeout=seconds,
        threaded=threaded,
        delays=delays,
        least=OWN_LEAST,
        after=after,
    )


def about(service: Service, *users: str) -> About:
    """What a tick of the service looks for, with these types of users."""
    configured = service.settings
    return About(
        users=list(users),
        own=list(handlers.own()),
        sources=list(configured.sources),
        recipients=list(configured.recipients),
        chats=chats_that_tell(configured),
        most_a_day=composing.most_a_day(configured),
        held_until=partial(composing.held_until, configured),
        kept=configured.retention,
        schedules=configured.schedules.values(),
        read_at=configured.read_at,
    )


async def seen(ctx: Context) -> Look:
    """What there is to do."""
    return await ctx.stores.looks.look(about(ctx.service))


@asynccontextmanager
async def a_batch(
    service: Service, *, budget: float = 25, elapsed: float = 0, max_jobs: int = 100
) -> AsyncIterator[Context]:
    """The context of a tick that began `elapsed` seconds ago. It reaches nobody over the network."""
    transport = httpx.MockTransport(lambda request: httpx.Response(599, text="the test reached for the network"))
    async with service.stores.database.held(), httpx.AsyncClient(transport=transport) as http:
        yield Context(
            service=service,
            http=http,
            deadline=Deadline(timedelta(seconds=budget), started=time.monotonic() - elapsed),
            max_jobs=max_jobs,
            trigger="test",
        )


async def claim(ctx: Context, name: str, *, own: bool = False) -> Job:
    [job] = await ctx.stores.jobs.claim(own=own, limit=1, leases={name: LEASE}, token=ctx.random.getrandbits(62))
    return job


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that are made meanwhile, each by itself; those of transactions are not among them."""
    made: list[str] = []
    fetch = Database.fetch

    async def watching(self: Database, statement: Statement, *given: Any) -> list[dict[str, Any]]:
        made.append(statement.text)
        return await fetch(self, statement, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Database, "fetch", watching)
        yield made
