"""The job that does nothing but count its runs."""  # noqa: INP001 - a folder of handlers is no package

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from bench.queues import counter

if TYPE_CHECKING:
    from app.context import Context


class Payload(BaseModel):
    """As every contender's."""

    n: int


async def handle(payload: Payload, ctx: Context) -> None:  # noqa: ARG001 - a handler takes both
    """Nothing."""
    counter.count()
