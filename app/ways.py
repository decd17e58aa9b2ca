"""Whom to write to in a recipient's name, and whether now.

    the recipient --nobody is there, or its channel takes nothing--> its fallback --neither--> held
          |
          `--the month's messages run low--> held until its next digest is due

What is held is asked for again after an hour at most: a plan may be changed, a person may have mended something.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app import plugins
from app.domain import quiet, quota
from app.domain.errors import Failure
from app.domain.quota import READ_EVERY, Spending
from app.domain.reach import LOOK_AGAIN
from app.settings import address_of
from app.settings.watched import chats_that_tell

if TYPE_CHECKING:
    from datetime import datetime

    from app.context import Context
    from app.domain.reach import Standing
    from app.settings import ChannelSettings, Recipient

log = logging.getLogger(__name__)

ASKING_SECONDS = 5.0
"""What a provider has to answer in, once an hour; then it is as if it had not been asked."""

STEP_SECONDS = 0.25
"""Between two looks at whether another one, who asks for the first time, has his answer."""

COUNT_MEMBERS_EVERY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where what a recipient is owed goes."""

    recipient: Recipient
    """Who is written to, at the address where that one is now."""

    address: str
    """Its fingerprint, as the configuration has it."""

    wait: timedelta | None = None
    """Not now, but after so long it is to be asked for again; None: now."""

    closed: bool = False
    """Nothing goes there for a reason of its own, so that a fallback helps."""

    reason: str = ""


async def find(recipient: Recipient, ctx: Context, *, by: datetime | None = None) -> Way:
    """The way to a recipient, or to its fallback, as it is at this instant.

    What is to be told `by` some instant does not wait for the month's messages to last: it goes as long as any is left.
    """
    way = await _way(recipient, ctx, by=by)
    if way.closed and recipient.fallback is not None:
        other = await _way(ctx.settings.recipients[recipient.fallback], ctx, by=by, stands_in=True)
        if other.wait is None or not other.closed:
            way = other
    if way.wait is not None:
        log.info("digest held", extra={"recipient": recipient.name, "reason": way.reason})
    return way


async def reopened(channel: ChannelSettings, ctx: Context) -> bool:
    """Whether a parked channel's provider was asked just now, if it was time to, and shows room."""
    if not hasattr(plugins.load("app.channels", channel.kind), "allowance"):
        return False
    await _ask(channel, ctx)
    standing = await ctx.stores.reach.standing(channel=channel.name, address="", recipient="")
    return standing.parked is None


async def _way(recipient: Recipient, ctx: Context, *, by: datetime | None, stands_in: bool = False) -> Way:
    """`stands_in`: for another one, of whose quiet hours alone is thought where messages are composed."""
    channel = ctx.settings.channels[recipient.channel]
    module = plugins.load("app.channels", channel.kind)
    address = address_of(ctx.settings, recipient)
    known = _Known(channel=channel, module=module, recipient=recipient, address=address, ctx=ctx)
    standing = await known.standing()
    to = recipient if standing.moved_to is None else dataclasses.replace(recipient, to=standing.moved_to)
    way = Way(recipient=to, address=address)
    if standing.closed is not None:
        return dataclasses.replace(way, wait=LOOK_AGAIN, closed=True, reason=standing.closed)
    until = quiet.held_until(standing.now, recipient.zone, recipient.quiet_hours) if stands_in else None
    if until is not None and (by is None or until <= by):
        return dataclasses.replace(
            way, wait=min(until - standing.now, LOOK_AGAIN), reason="quiet hours of the fallback"
        )
    limit = known.limit(standing)
    left = by is not None and limit is not None and standing.allowance.used + max(standing.members or 1, 1) <= limit
    return way if limit is None or left else await _spread(way, known, standing, limit)


async def _spread(way: Way, known: _Known, standing: Standing, limit: int) -> Way:
    """In time for the month's messages to last."""
    others = await _others(known.channel.name, known.ctx)
    spending = Spending(
        limit=limit,
        used=standing.allowance.used,
        price=max(standing.members or 1, 1),
        all_prices=others + standing.further_members,
        last_at=standing.last_at,
    )
    verdict = quota.decide(spending, standing.now)
    if verdict.at <= standing.now:
        return way
    reason = quota.told(spending, verdict, standing.now)
    if verdict.gap >= quota.TELL_GAP:
        _, ends = quota.month_of(standing.now)
        await known.ctx.stores.reach.mark_low(known.channel.name, reason, until=ends)
    wait = min(verdict.at - standing.now, LOOK_AGAIN)
    return dataclasses.replace(way, wait=wait, closed=verdict.spent, reason=reason)


async def _others(channel: str, ctx: Context) -> int:
    """How many are told by this channel: recipients of the configuration, and conversations."""
    configured = ctx.settings
    named = sum(channel == other.channel for other in configured.recipients.values())
    chats = [chat for chat in chats_that_tell(configured) if configured.chats[chat].channel == channel]
    return named + (await ctx.stores.watches.count_listeners(chats) if chats else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is asked of the database and, when that is old, of the provider."""

    channel: ChannelSettings
    module: Any
    recipient: Recipient
    address: str
    ctx: Context

    @property
    def metered(self) -> bool:
        return hasattr(self.module, "allowance")

    def limit(self, standing: Standing) -> int | None:
        """Of this month: the configuration's own where it has one, whatever could be asked."""
        own: int | None = getattr(self.channel.options, "monthly_limit", None)
        return standing.allowance.limit if own is None else own

    async def standing(self) -> Standing:
        standing = await self._stored()
        if not self.metered or standing.blocked is not None:
            return standing
        if _older(standing.asked_at, READ_EVERY, standing.now):
            answered = await _ask(self.channel, self.ctx)
            if answered:
                standing = await self._stored()
            elif answered is None and standing.read_at is None:
                standing = await self._first_answer()
        elif standing.read_at is None and not _older(standing.asked_at, _SECONDS, standing.now):
            standing = await self._first_answer()
        return await self._with_members(standing)

    async def _stored(self) -> Standing:
        return await self.ctx.stores.reach.standing(
            channel=self.channel.name, address=self.address, recipient=self.recipient.name, counted=self.metered
        )

    async def _first_answer(self) -> Standing:
        """Another job asks just now, for the first time: no thousand digests leave before its answer is there."""
        for _ in range(round(ASKING_SECONDS / STEP_SECONDS)):
            await asyncio.sleep(STEP_SECONDS)
            standing = await self._stored()
            if standing.read_at is not None:
                break
        return standing

    async def _with_members(self, standing: Standing) -> Standing:
        count = getattr(self.module, "members", None)
        if count is None or not _older(standing.members_read_at, COUNT_MEMBERS_EVERY, standing.now):
            return standing
        members: int | None = None
        try:
            async with asyncio.timeout(ASKING_SECONDS):
                members = await count(self.recipient.to, self.channel.options, self.ctx.http)
        except (Failure, TimeoutError) as failure:
            log.warning("members not counted", extra={"recipient": self.recipient.name, "reason": str(failure)})
        if members == 1:  # a single person, of whom nothing needs to be kept
            return standing
        await self.ctx.stores.reach.keep_members(
            address=self.address, name=self.recipient.name, channel=self.channel.name, members=members
        )
        return standing if members is None else dataclasses.replace(standing, members=members)


_SECONDS = timedelta(seconds=ASKING_SECONDS)


async def _ask(channel: ChannelSettings, ctx: Context) -> bool | None:
    """Whether the provider has answered; None when another one asks, or has asked. Else what was known goes on."""
    if not await ctx.stores.reach.claim_reading(channel.name):
        return None
    module = plugins.load("app.channels", channel.kind)
    try:
        async with asyncio.timeout(ASKING_SECONDS):
            allowance = await module.allowance(channel.options, ctx.http)
    except (Failure, TimeoutError) as failure:
        log.warning("allowance not read", extra={"channel": channel.name, "reason": str(failure)})
        return False
    await ctx.stores.reach.keep_reading(channel.name, allowance)
    return True


def _older(at: datetime | None, age: timedelta, now: datetime) -> bool:
    return at is None or now - at >= age
