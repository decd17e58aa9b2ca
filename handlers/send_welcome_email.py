"""An example, to change or to delete: writes once to somebody who has signed up. docs/guides/jobs.md walks through it."""

import os
from datetime import timedelta

from pydantic import BaseModel
from sqlalchemy import text

from app.clients.http import failure_of
from app.domain.jobs import Discard

TIMEOUT = timedelta(seconds=20)
MAIL_URL = "https://api.resend.com/emails"

FIND = text("SELECT email, name, welcomed_at FROM public.users WHERE id = :id")
WELCOMED = text("UPDATE public.users SET welcomed_at = now() WHERE id = :id")


class Payload(BaseModel):
    user_id: int  # an id and not the address: that may have changed by the time the job runs


async def handle(payload: Payload, ctx):
    found = await ctx.stores.database.fetch(FIND, {"id": payload.user_id})
    if not found:
        return Discard("there is no such user any more")  # nothing to do, and nobody to alarm
    [user] = found
    if user["welcomed_at"] is not None:
        return Discard("was welcomed already")

    answer = await ctx.http.post(
        MAIL_URL,
        json={
            "from": "Gigs <hello@gigs.example>",
            "to": [user["email"]],
            "subject": f"Welcome, {user['name']}",
            "text": "It is good to have you with us.",
        },
        headers={
            "Authorization": f"Bearer {os.environ['MAIL_TOKEN']}",
            # The same at every try: a mail that was sent and whose answer was lost is not sent again.
            "Idempotency-Key": f"welcome/{payload.user_id}",
        },
    )
    if not answer.is_success:
        raise failure_of(answer)  # 429 and 5xx are tried again, after Retry-After; the rest is given up and opens an alert

    async with ctx.transaction() as db:  # both or neither: that it was written down, and that the job is done
        await db.execute(WELCOMED, {"id": payload.user_id})
