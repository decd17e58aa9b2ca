"""Its row is written in the transaction that ends its job. Some fail at their first try, with the row written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from sqlalchemy import text

from app.domain.errors import TemporaryFailure

TIMEOUT = timedelta(seconds=2)
RETRY = (timedelta(seconds=0.2),)

WRITE = text("INSERT INTO public.effects (job, type) VALUES (:job, 'exact')")


class Payload(BaseModel):
    fails: bool


async def handle(payload: Payload, ctx: Any) -> None:
    job = ctx.current_job
    async with ctx.transaction() as db:
        await db.execute(WRITE, {"job": job.id})
        if payload.fails and job.attempt - job.crashes == 1:
            raise TemporaryFailure("the first try of this one fails")
