"""What stands between a message and whom it is for: allowances, parked channels, blocked and moved addresses, gaps."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.domain import quota
from app.domain.quota import READ_EVERY, Allowance
from app.domain.reach import Standing
from app.stores import sql
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from app.stores.database import Database

SQL = sql.load("reach")

LAG = timedelta(minutes=10)
"""What was sent so shortly before the provider was asked may not be counted in its answer, which is approximate."""


class Reach:
    """One row a channel and one an address, of those that there is something to say of."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, *, channel: str, address: str, recipient: str, counted: bool = False) -> Standing:
        """How it is with one address now. `counted`: with what the channel has sent, which costs a look at it."""
        params = {
            "channel": channel,
            "address": address,
            "recipient": recipient,
            "counted": counted,
            "zone_seconds": quota.MONTH_ZONE.utcoffset(None).total_seconds(),
            "lag_seconds": LAG.total_seconds(),
        }
        [row] = await self._database.fetch(SQL["standing"], params)
        return _standing(row)

    async def closed(self, asked: Sequence[tuple[str, str]]) -> list[bool]:
        """Of each channel with an address, whether nothing goes there now."""
        given = [{"place": place, "channel": name, "address": at} for place, (name, at) in enumerate(asked)]
        found = {row["place"] for row in await self._database.fetch(SQL["closed"], {"given": json.dumps(given)})}
        return [place in found for place in range(len(asked))]

    async def claim_reading(self, channel: str) -> bool:
        """Whether it is the caller's turn to ask the provider: once an hour, over all replicas."""
        params = {"channel": channel, "every_seconds": READ_EVERY.total_seconds()}
        return bool(await self._database.fetch(SQL["claim_reading"], params))

    async def keep_reading(self, channel: str, allowance: Allowance) -> None:
        """What the provider has said. Room frees a channel that was parked before it was asked."""
        room = allowance.limit is None or allowance.used < allowance.limit
        params = {"channel": channel, "limit": allowance.limit, "used": allowance.used, "room": room}
        await self._database.fetch(SQL["keep_reading"], params)

    async def park(self, channel: str, reason: str, *, until: datetime) -> None:
        """Nothing more is composed for the channel before then, unless its provider shows room."""
        await self._database.fetch(SQL["park"], {"channel": channel, "until": until, "reason": clean(reason)})

    async def pause(self, channel: str, reason: str, *, wait: timedelta) -> None:
        """No replica starts a send of the channel before `wait` is over."""
        params = {"channel": channel, "seconds": wait.total_seconds(), "reason": clean(reason, limit=500)}
        await self._database.fetch(SQL["pause"], params)

    async def mark_low(self, channel: str, reason: str, *, until: datetime) -> None:
        """The channel's digests are kept apart for the rest of the month. Marked already: nothing changes."""
        await self._database.fetch(SQL["mark_low"], {"channel": channel, "until": until, "reason": clean(reason)})

    async def block(self, *, address: str, name: str, channel: str, reason: str, alert: bool = True) -> None:
        """Never call this address again. Without an alert where it is for whoever is there to say so, and no fault."""
        params = {"address": address, "name": name, "channel": channel, "reason": clean(reason), "alert": alert}
        await self._database.fetch(SQL["block"], params)

    async def unblock(self, *, address: str, name: str) -> bool:
        """Whether it was blocked. What is owed to the recipient is told by the next tick."""
        [found] = await self._database.fetch(SQL["unblock"], {"address": address, "name": name})
        return bool(found["unblocked"])

    async def move(self, *, address: str, name: str, channel: str, to: str) -> None:
        """This address is reached at `to` from now on."""
        params = {"address": address, "name": name, "channel": channel, "to": to}
        await self._database.fetch(SQL["move"], params)

    async def keep_members(self, *, address: str, name: str, channel: str, members: int | None) -> None:
        """How many a message there costs. None: it was asked, and is as it was."""
        params = {"address": address, "name": name, "channel": channel, "members": members}
        await self._database.fetch(SQL["keep_members"], params)

    async def turn_of_channel(self, channel: str, *, gap: timedelta, most: timedelta) -> timedelta:
        """How long a send of this channel is to wait. Its turn is taken with it, unless that is more than `most`."""
        params = {"channel": channel, **_gap(gap, most)}
        return _wait(await self._database.fetch(SQL["turn_of_channel"], params))

    async def turn_of_recipient(
        self, *, address: str, name: str, channel: str, gap: timedelta, most: timedelta
    ) -> timedelta:
        """The same for a send to this address."""
        params = {"address": address, "name": name, "channel": channel, **_gap(gap, most)}
        return _wait(await self._database.fetch(SQL["turn_of_recipient"], params))


def _gap(gap: timedelta, most: timedelta) -> dict[str, float]:
    return {"gap_seconds": gap.total_seconds(), "most_seconds": most.total_seconds()}


def _standing(row: Mapping[str, Any]) -> Standing:
    read_at, used = row["quota_read_at"], int(row["under_way"]) + int(row["sent_since"])
    if read_at is not None and read_at >= quota.month_of(row["now"])[0]:  # what was used last month is over with it
        used += row["quota_used"]
    return Standing(
        now=row["now"],
        blocked=(row["blocked_reason"] or "nobody is there") if row["blocked"] else None,
        parked=(row["parked_reason"] or "it takes nothing now") if row["parked"] else None,
        moved_to=row["moved_to"],
        allowance=Allowance(limit=row["quota_limit"], used=used),
        asked_at=row["quota_tried_at"],
        read_at=read_at,
        last_at=row["last_at"],
        members=row["members"],
        members_read_at=row["members_read_at"],
        further_members=int(row["further_members"]),
    )


def _wait(rows: Sequence[Mapping[str, Any]]) -> timedelta:
    return max(timedelta(seconds=float(rows[0]["wait_seconds"])), timedelta(0))
