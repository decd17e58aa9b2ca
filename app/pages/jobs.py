"""Jobs: what waits, what ran, what was given up and why; run one again, or cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app import upkeep
from app.api.jobs import JobsQuery
from app.asked import own_types, refusal
from app.domain.jobs import OWN_PREFIX
from app.pages.asking import Away, Shown, Trouble
from app.upkeep import NoSuchJob, NotAsItIs

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from app.pages.asking import Asked
    from app.stores.jobs import StoredJob

LIMIT = 25
FILTERS = ("status", "type", "queue", "own")
STATUSES = ("pending", "running", "done", "failed", "cancelled")


async def show_all(asked: Asked) -> Shown:
    """A page of jobs, the newest first; the service's own when they are asked for."""
    chosen = asked.chosen(*FILTERS)
    try:
        query = JobsQuery.model_validate(chosen)
    except ValidationError as error:
        raise refusal(error) from None
    own = query.own or (query.queue or "").startswith(OWN_PREFIX) or query.type in own_types()
    page = await asked.stores.listings.list_jobs(
        limit=LIMIT,
        before=asked.before(),
        status=query.status,
        type=query.type,
        queue=query.queue,
        own=own,
    )
    values = {"page": page, "chosen": chosen, "first": asked.before() is None, "statuses": STATUSES}
    return Shown(template="jobs.html", values=values | {"types": sorted(asked.service.handlers)})


async def show_one(asked: Asked) -> Shown:
    """One job with its payload, masked as the API does it, its failures, and what follows on it."""
    job = await _done(upkeep.get(asked.stores.jobs, asked.id))
    whole: dict[str, Any] = upkeep.shown(job)
    return Shown(template="job.html", values={"job": job, "payload": whole["payload"], "then": whole["then"]})


async def retry(asked: Asked) -> Away:
    """Run it again now."""
    await _done(upkeep.retry(asked.stores.jobs, asked.id))
    return Away(to=f"/jobs/{asked.id}", told="retried")


async def cancel(asked: Asked) -> Away:
    """Take it out."""
    await _done(upkeep.cancel(asked.stores.jobs, asked.id))
    return Away(to=f"/jobs/{asked.id}", told="cancelled")


async def _done(doing: Awaitable[StoredJob]) -> StoredJob:
    try:
        return await doing
    except NoSuchJob as error:
        raise Trouble(404, f"{error}.") from None
    except NotAsItIs as error:
        raise Trouble(409, f"{error}.") from None
