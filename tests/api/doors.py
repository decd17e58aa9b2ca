"""The application as a program meets it: over HTTP, without a socket, on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from app import main, settings
from app.context import Service

API_TOKEN = "an-api-token-of-thirty-letters"

NOWHERE = "postgresql://nobody@127.0.0.1:9/none"
"""A database that does not answer: who asks it gets 503."""

GREET = """
from pydantic import BaseModel, ConfigDict, field_validator


class Payload(BaseModel):
    model_config = ConfigDict(extra="allow")

    user_id: int
    password: str = ""

    @field_validator("password")
    @classmethod
    def is_no_word(cls, value):
        if value.isalpha():
            raise ValueError(f"{value} is a word")
        return value


async def handle(payload, ctx):
    pass
"""
CONFIGURATION = """
[sources.gigs]
kind = "feed"
url = "https://jobs.example/feed.xml?key=hidden-in-the-address"
every_minutes = 30

[sources.board]
kind = "feed"
url = "https://board.example/feed.xml"
every_minutes = 0.5
"""


def built(folder: Path, database_url: str, *, more: str = "", **environ: str) -> Service:
    """A service with two sources and the job types `greet` and `mail`; `more`: further lines of its configuration."""
    (folder / "handlers").mkdir(exist_ok=True)
    for name in ("greet", "mail"):
        (folder / "handlers" / f"{name}.py").write_text(GREET)
    (folder / "wakebell.toml").write_text(CONFIGURATION + more)
    given = {
        "DATABASE_URL": database_url,
        "CRON_SECRET": "a-cron-secret-of-thirty-letters",
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        **environ,
    }
    return main.build(settings.load(given))


@asynccontextmanager
async def calling(service: Service, *, token: str | None = API_TOKEN) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the service's doors."""
    transport = httpx.ASGITransport(main.create_app(service))
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://wakebell.example", headers=headers) as client:
        yield client
    await service.stores.database.dispose()
