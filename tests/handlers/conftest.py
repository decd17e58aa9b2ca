"""A service whose sources and channels are made up, and handlers run as a tick would run them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from app import attempt, handlers, plugins
from app.context import Context
from app.domain.items import Fetched, Unchanged
from app.domain.messages import Body, Digest, Message, Receipt
from app.sources import Reading
from tests.fakes.batches import a_batch, a_service, claim

CONFIGURATION = """
[sources.board]
kind = "feed"
url = "https://board.example/feed.xml"
every_minutes = 30

[recipients.me]
channel = "inbox"

[subscriptions.python]
any = ["python"]
to = ["me"]

[subscriptions.all]
to = ["me", "inbox"]
"""


class Source:
    """In place of `app/sources/feed.py`."""

    def __init__(self) -> None:
        self.answer: Fetched | Unchanged | BaseException = Fetched(items=())
        self.readings: list[Reading] = []

    async def fetch(self, options: Any, ctx: Reading) -> Fetched | Unchanged:
        self.readings.append(ctx)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Channel:
    """In place of `app/channels/inbox.py`."""

    def __init__(self) -> None:
        self.REPEATABLE_FOR: timedelta | None = timedelta(hours=24)
        self.answer: Receipt | BaseException = Receipt(provider_id="r-1")
        self.bodies: Callable[[Digest], list[Body]] = lambda digest: [
            Body(body="|".join(item.title for item in digest.items), text="told")
        ]
        self.sent: list[Message] = []

    def compose(self, digest: Digest, options: Any) -> list[Body]:
        return self.bodies(digest)

    async def send(self, message: Message, options: Any, http: Any) -> Receipt:
        self.sent.append(message)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
async def ctx(database_url: str, tmp_path: Path) -> AsyncIterator[Context]:
    async with a_batch(a_service(database_url, tmp_path, CONFIGURATION)) as ctx:
        yield ctx


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture(autouse=True)
def made_up(ctx: Context, source: Source, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kinds, in place once the configuration was read by the real ones."""
    load = plugins.load
    kinds = {
        "app.sources": SimpleNamespace(fetch=source.fetch),
        "app.channels": channel,
    }
    monkeypatch.setattr(plugins, "load", lambda package, kind: kinds.get(package) or load(package, kind))


Run = Callable[..., Any]


@pytest.fixture
def run(ctx: Context, sql: asyncpg.Connection) -> Run:
    """Run the one job of this type that is waiting, as a tick does; its row afterwards."""

    async def once(name: str) -> dict[str, Any]:
        await sql.execute("UPDATE wakebell.jobs SET run_after = now() WHERE status = 'pending'")
        job = await claim(ctx, name, own=True)
        runnable = handlers.own()[name]
        await attempt.run(ctx, job, runnable, runnable.timeout, attempt.Cut())
        row = await sql.fetchrow("SELECT *, run_after - now() AS wait FROM wakebell.jobs WHERE id = $1", job.id)
        return dict(row)

    return once
