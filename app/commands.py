"""What the commands about what is in the database share: how it is asked, and how it is shown."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from app.stores import Stores

    Database = Callable[[], AbstractContextManager[Mapping[str, str]]]
    """The environment with a DATABASE_URL in it."""

    AddCommand = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
    """Its name, what runs it, and what it does."""

# Everything else is imported when it is needed: `wakebell --help` is to come at once.


def asked(database: Database, question: Callable[[Stores], Any]) -> Any:
    """What the database answers; only its settings are needed."""
    from app import settings  # noqa: PLC0415

    with database() as environ:
        return asyncio.run(with_stores(settings.load_database(environ).url, question))


async def with_stores(url: str | None, question: Callable[[Stores], Any]) -> Any:
    """The answer of the database with this URL."""
    async with _stores(url) as stores:
        return await question(stores)


@asynccontextmanager
async def _stores(url: str | None) -> AsyncIterator[Stores]:
    from app import stores  # noqa: PLC0415
    from app.stores.database import connect  # noqa: PLC0415

    opened = stores.over(connect(url or ""))
    async with opened.database.held():
        await opened.require_schema()
        yield opened


def columns(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells, below each other."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def second(at: str) -> str:
    """An instant as programs are told it, to the second."""
    return f"{at[:19].replace('T', ' ')}Z"


def plain(words: str) -> str:
    """On one line, and nothing in it that a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def cut(words: str, length: int) -> str:
    """At most so many characters."""
    return words if len(words) <= length else f"{words[: length - 1]}…"
