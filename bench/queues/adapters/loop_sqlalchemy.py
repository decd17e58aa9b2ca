"""The same loop over SQLAlchemy's engine: what the stack costs when nothing is done for comfort."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from bench.queues.adapters.plain import CLAIM, FINISH, handled, prepare, put_over

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["drain", "opened", "prepare", "put"]

CLAIMING = text(CLAIM)
FINISHING = text(FINISH.format(ids=":ids"))


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Any]:
    """An engine with its defaults, and one connection that is asked for once."""
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


async def put(app: Any, count: int) -> None:
    """By asyncpg's own connection: SQLAlchemy has nothing that is faster."""
    raw = await app.get_raw_connection()
    await put_over(raw.driver_connection, count)
    await app.rollback()


async def drain(app: Any, count: int) -> None:  # noqa: ARG001 - it ends when nothing is due
    """Until a claim comes back empty."""
    while True:
        claimed = (await app.execute(CLAIMING)).all()
        await app.commit()
        if not claimed:
            return
        await app.execute(FINISHING, {"ids": await handled(claimed)})
        await app.commit()
