"""A hand-written loop over asyncpg: claim 1,000, run them, finish 1,000. The floor, not a product."""

from __future__ import annotations

from typing import Any

from bench.queues.adapters.plain import CLAIM, FINISH, connected, handled, prepare
from bench.queues.adapters.plain import put_over as put

__all__ = ["drain", "opened", "prepare", "put"]

opened = connected
FINISHED = FINISH.format(ids="$1")


async def drain(app: Any, count: int) -> None:  # noqa: ARG001 - it ends when nothing is due
    """Until a claim comes back empty."""
    while claimed := await app.fetch(CLAIM):
        await app.execute(FINISHED, await handled(claimed))
