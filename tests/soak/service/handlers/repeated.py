"""Its row is written on its own, and the job ends later, together with others: killed in between, it runs again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from sqlalchemy import text

TIMEOUT = timedelta(seconds=2)

WRITE = text("INSERT INTO public.effects (job, type) VALUES (:job, 'repeated') ON CONFLICT DO NOTHING")


class Payload(BaseModel):
    fails: bool


async def handle(payload: Payload, ctx: Any) -> None:
    await ctx.stores.database.fetch(WRITE, {"job": ctx.current_job.id})
