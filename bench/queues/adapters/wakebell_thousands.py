"""The same in ticks of 1,000 jobs, the most that one ring by HTTP may ask for: each one connects, plans and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.queues.adapters import wakebell
from bench.queues.adapters.wakebell import opened, prepare, put

if TYPE_CHECKING:
    from app.context import Service

__all__ = ["drain", "opened", "prepare", "put"]


async def drain(app: Service, count: int) -> None:
    """As many ticks as it takes."""
    await wakebell.drain(app, count, at_most=1_000)
