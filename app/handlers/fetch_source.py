"""Reads one source, and keeps what is new with what is owed for it."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel

from app import plugins
from app.domain import matching, words
from app.domain.errors import Failure, TemporaryFailure
from app.domain.items import Unchanged
from app.domain.jobs import Discard, Settled, Snooze
from app.sources import Reading
from app.stores.items import Match
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.context import Context
    from app.domain.items import Fetched, Item
    from app.domain.jobs import Outcome
    from app.domain.subscriptions import Subscription
    from app.settings import SourceSettings
    from app.stores.sources import SourceState

log = logging.getLogger(__name__)

TIMEOUT = timedelta(seconds=20)

STORING = timedelta(seconds=0.5)
"""Of what a tick has left: kept for writing down what became of the fetch."""


class Payload(BaseModel):
    """Which source, by its name in the configuration."""

    source: str


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """The network first; then one transaction that stores all of the round and ends the job."""
    source = ctx.settings.sources.get(payload.source)
    state = await ctx.stores.sources.get(payload.source)
    if source is None or state is None:
        return Discard(f'the configuration has no source "{payload.source}"')
    if state.fingerprint != source.fingerprint:  # a replica with another configuration: let the newer one do it
        return Snooze(timedelta(minutes=1))
    try:
        fetched = await _fetch(source, state, ctx)
    except Failure as failure:
        return await _failed(source, failure, ctx)
    if isinstance(fetched, Unchanged):
        await ctx.stores.sources.keep_unchanged(ctx.current_job, source.name, source.fingerprint)
        ctx.tally.add("sources.unchanged")
        return Settled()
    return await _store(source, fetched, ctx)


async def _fetch(source: SourceSettings, state: SourceState, ctx: Context) -> Fetched | Unchanged:
    module = plugins.load("app.sources", source.kind)
    reading = Reading(
        source=source.name,
        http=ctx.http,
        user_agent=ctx.service.user_agent,
        etag=state.etag if state.primed_at else None,
        last_modified=state.last_modified if state.primed_at else None,
    )
    seconds = max(ctx.deadline.left - STORING, timedelta(0)).total_seconds()
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            fetched: Fetched | Unchanged = await module.fetch(source.options, reading)
    except TimeoutError as error:
        if not bound.expired():
            raise
        # Told as a failure: one that hangs longer than a small budget lasts would else be cut in every tick, unseen.
        raise TemporaryFailure(f"did not finish its answer in the {seconds:.1f} s that its tick had left") from error
    return fetched


async def _failed(source: SourceSettings, failure: Failure, ctx: Context) -> Settled:
    reason = str(failure)
    log.warning("source failed", extra={"source": source.name, "reason": reason})
    await ctx.stores.sources.fail(
        ctx.current_job,
        source.name,
        source.fingerprint,
        reason,
        jitter=ctx.random.random(),
    )
    ctx.tally.add("sources.failed")
    ctx.tally.fail(f"source {source.name} failed")
    return Settled()


async def _store(source: SourceSettings, fetched: Fetched, ctx: Context) -> Settled:
    matches = await in_thread(match_all, fetched.items, source.name, ctx.settings.subscriptions)
    language = ctx.settings.service.language
    stored = await ctx.stores.items.add_round(
        ctx.current_job,
        source=source.name,
        fingerprint=source.fingerprint,
        fetched=fetched,
        matches=matches,
        keep=ctx.settings.retention.items,
        note=lambda known: words.watching(language, source=source.name, count=known),
    )
    if stored is not None:
        ctx.tally.add("sources.fetched")
        ctx.tally.add("sources.primed", int(stored.primed))
        ctx.tally.add("sources.new_items", stored.added)
        ctx.tally.add("sources.matched_items", stored.matched)
        if fetched.warnings:
            level = logging.WARNING if stored.primed else logging.INFO  # it stays so, and is loud once
            log.log(level, "source odd but readable", extra={"source": source.name, "warnings": fetched.warnings})
    return Settled()


def match_all(items: Iterable[Item], source: str, subscriptions: Iterable[Subscription]) -> list[Match]:
    """Who is to hear of which item, should it be new: one entry for each item and recipient."""
    found: list[Match] = []
    heard = [s for s in subscriptions if s.sources is None or source in s.sources]
    for item in items if heard else ():
        folded = matching.fold_item(item)
        names: dict[str, list[str]] = {}
        for subscription in heard:
            if matching.judge(folded, source, subscription).matched:
                for recipient in subscription.to:
                    names.setdefault(recipient, []).append(subscription.name)
        found += [
            Match(key=item.key, recipient=recipient, subscriptions=tuple(sorted(by))) for recipient, by in names.items()
        ]
    return found
