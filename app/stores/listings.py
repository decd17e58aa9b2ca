"""What people ask to see: pages of jobs and messages, the story of a message, the state of sources. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from app.stores import sql
from app.stores.database import rows
from app.stores.jobs import StoredJob, stored_job
from app.stores.payloads import json_value
from app.stores.sql import text
from app.stores.text import array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.domain.identity import Rule
    from app.domain.watching import State
    from app.stores.database import Database

SQL = sql.load("listings")

Row = TypeVar("Row")

MOST_BYTES = 1024 * 1024
"""Payloads or texts on one page: two hundred payloads of the greatest size would be 50 MiB."""

# Each group is read in the order of its index, whatever the planner knows of the table: it has misjudged one that was
# small when last looked at. What must be sorted, the few ids of all groups, is sorted nevertheless. And compiling a
# plan takes longer than running it.
BY_INDEX = text(
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true), "
    "set_config('enable_incremental_sort', 'off', true), set_config('jit', 'off', true)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """Rows, the newest first."""

    rows: list[Row]

    more: bool
    """Older ones follow. A page of long rows ends before its limit; it holds one row at least if there is any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message as it stands in the table, without the bytes that are sent."""

    id: int
    recipient: str
    channel: str

    kind: str
    """What it tells of: `items`, `note`, `alert` or `reminder`."""

    status: str
    text: str
    attempts: int

    last_error: str | None
    """Of the last try that failed; none once it is sent."""

    provider_id: str | None

    repeated: bool
    """The provider said that it had it already: an earlier try had arrived."""

    created_at: datetime
    first_tried_at: datetime | None
    sent_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldItem:
    """An item that a message tells of."""

    title: str
    link: str | None
    source: str
    subscriptions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSource:
    """A source as it stands in the table."""

    name: str

    fingerprint: str
    """Of the configuration that the last tick planned it by."""

    due_at: datetime
    primed_at: datetime | None
    last_round_at: datetime | None
    last_success_at: datetime | None

    failures: int
    """Rounds in a row that failed."""

    last_failure_at: datetime | None
    last_error: str | None

    fresh_until: datetime | None
    """Not read before: its server says that nothing changes until then."""

    gone_at: datetime | None
    """Its server has said that it is over for good."""

    refusals: int
    """Rounds in a row that its host has refused."""

    distrusted_at: datetime | None
    """Read whole each time, since its server has said "unchanged" when it was not."""

    key_rule: Rule
    """What tells its items apart, where nothing is configured."""

    state: State
    """Of its last round that was read."""

    empty_rounds: int
    """In a row, for no reason that is known."""

    quiet_days: int | None
    """Since its last news, or since it was primed."""

    moved_host: str | None
    """Where it has moved for good."""

    host_waits_until: datetime | None
    host_reason: str | None
    """Of its host, while that is left alone."""

    next_due_at: datetime | None
    """When it is read next at the earliest; None: not any more."""

    item_count: int


class Listings:
    """Read only. Each call takes about as long with a million rows as with a thousand."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_jobs(
        self,
        *,
        limit: int,
        before: int | None = None,
        status: str | None = None,
        type: str | None = None,  # noqa: A002 - the column's name
        queue: str | None = None,
        own: bool = False,
    ) -> Page[StoredJob]:
        """Jobs with an id below `before` that fit every filter; those in the service's own queues only with `own`."""
        params = {"before": before, "status": status, "type": type, "queue": queue, "own": own}
        found, more = await self._page("list_jobs", params, limit)
        return Page(rows=[stored_job(row) for row in found], more=more)

    async def list_messages(
        self,
        *,
        limit: int,
        before: int | None = None,
        status: str | None = None,
        recipient: str | None = None,
        channel: str | None = None,
    ) -> Page[StoredMessage]:
        """Messages with an id below `before` that fit every filter."""
        params = {"before": before, "status": status, "recipient": recipient, "channel": channel}
        found, more = await self._page("list_messages", params, limit)
        return Page(rows=[StoredMessage(**row) for row in found], more=more)

    async def get_message(self, message_id: int) -> StoredMessage | None:
        """One message as it stands; None when there is no such message."""
        found = await self._database.fetch(SQL["get_message"], {"id": message_id})
        return StoredMessage(**found[0]) if found else None

    async def list_told(self, message_id: int) -> list[ToldItem]:
        """The items that a message tells of, in its order: those that it shows, then those that it only counts."""
        found = await self._database.fetch(SQL["list_told"], {"id": message_id})
        return [ToldItem(**row | {"subscriptions": tuple(json_value(row["subscriptions"]))}) for row in found]

    async def list_sources(self, names: Sequence[str]) -> dict[str, StoredSource]:
        """The state of these sources by name, without those that no tick has planned yet."""
        found = await self._database.fetch(SQL["list_sources"], {"names": array(names)})
        return {row["name"]: StoredSource(**row) for row in found}

    async def _page(self, name: str, params: Mapping[str, Any], limit: int) -> tuple[list[dict[str, Any]], bool]:
        async with self._database.transaction() as db:
            await db.execute(BY_INDEX)
            page = await rows(db, SQL[name], {**params, "most": limit, "most_bytes": MOST_BYTES})
        counts = [row.pop("found") for row in page]
        return page, bool(page) and counts[0] > len(page)
