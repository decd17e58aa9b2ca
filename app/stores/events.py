"""Inbound events: each is kept once, together with the one job that it becomes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.stores import sql
from app.stores.payloads import DEEPEST, is_deep, json_text

if TYPE_CHECKING:
    from app.stores.database import Database

SQL = sql.load("events")

KEPT_AT_LEAST = timedelta(days=3)
"""Providers send again for so long; a repeat that comes later would be another event."""

PAYLOAD_BYTES = 256 * 1024
"""Of a job's payload, by the database's own rule."""

ROOM = 2048
"""What a payload has besides the data, at most: an id, a type and a name, each as long as it may be."""

TOO_LONG = "it is longer than the 256 KiB that a payload may have"
TOO_DEEP = f"it is nested too deeply: a payload may have fewer than {DEEPEST} levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """What was told, verified and read."""

    door: str
    """`hooks.<name>`, `chats.<name>`."""

    id: str
    """The provider's: it is kept once by it."""

    type: str | None
    """The provider's; None: it has not said."""

    source: str
    """The name by which the configuration knows who tells."""

    data: Any
    """The body as JSON."""

    body: bytes
    """The JSON as it came: kept where a payload cannot hold it."""

    job: str | None
    """The type of its job; None: it is to have none."""

    queue: str = "default"


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """What became of it."""

    job_id: int | None
    """None: it has no job."""

    created: bool
    """False: it was there already, with that job."""


class Events:
    """What others have told us."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, event: NewEvent) -> KeptEvent:
        """Keep it and put in its job, both or neither. Of two with one id at once, one is kept; both get its job.

        What a payload cannot hold (too long, too deep, a NUL character) is kept as it came: the job's `data` is null
        then, and `omitted` says why; `body` gives it.
        """
        given: dict[str, Any] = {
            "door": event.door,
            "event_id": event.id,
            "type": event.type,
            "source": event.source,
            "job_type": event.job,
            "queue": event.queue,
        }
        data, omitted = _data(event)
        if data is not None:
            [row] = await self._database.fetch(SQL["keep"], {**given, "data": data, "omitted": None, "body": None})
            if row["created"] is not None:
                return KeptEvent(row["job_id"], row["created"])
        whole = {"data": None, "omitted": omitted or TOO_LONG, "body": event.body}
        [row] = await self._database.fetch(SQL["keep"], {**given, **whole})
        return KeptEvent(row["job_id"], row["created"])

    async def body(self, source: str, event_id: str) -> bytes | None:
        """The JSON of a hook's event whose payload has `omitted`, as it came, for its handler.

        None for every other event, and for one whose job has been deleted.
        """
        found = await self._database.fetch(SQL["body"], {"door": door_of_hook(source), "event_id": event_id})
        return found[0]["body"] if found else None

    async def prune(self, *, keep: timedelta, most: int) -> int:
        """Forget at most `most` events that came longer than `keep` ago, but three days; bodies with their jobs."""
        params = {"keep_seconds": kept_seconds(keep), "most": most}
        [found] = await self._database.fetch(SQL["prune"], params)
        return int(found["pruned"])


def door_of_hook(name: str) -> str:
    """The door of `[hooks.<name>]`."""
    return f"hooks.{name}"


def kept_seconds(jobs: timedelta) -> float:
    """How long an event is known, where jobs are kept for so long."""
    return max(jobs, KEPT_AT_LEAST).total_seconds()


def _data(event: NewEvent) -> tuple[str | None, str | None]:
    """Its JSON as the database takes it, or why it does not."""
    if is_deep({"data": event.data}):
        return None, TOO_DEEP
    try:
        told = json_text("data", event.data)
    except ValueError as error:
        return None, str(error)
    shown = json.dumps(event.data, ensure_ascii=False)  # with the spaces that PostgreSQL puts in
    return (None, TOO_LONG) if len(shown.encode()) > PAYLOAD_BYTES - ROOM else (told, None)
