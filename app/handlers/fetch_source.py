"""Reads one source, and keeps what is new with what is owed for it.

Fetches of one host stand in one line (their serial key), so that a fetch that runs has its host's turn. It ends,
whatever comes of it, for the next in line: what is to be tried again is planned again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel

from app import rounds
from app.clients.http import host_of
from app.clients.visits import Visit
from app.domain import identity, manners, words
from app.domain.errors import Failure, NothingListed
from app.domain.items import Fetched, Unchanged
from app.domain.jobs import Discard, Settled, Snooze
from app.domain.manners import Visited
from app.sources import Reading
from app.threads import in_thread

if TYPE_CHECKING:
    from app.context import Context
    from app.domain.jobs import Outcome
    from app.domain.manners import Answer
    from app.settings import SourceSettings
    from app.stores.items import Round
    from app.stores.sources import SourceState

log = logging.getLogger(__name__)

TIMEOUT = timedelta(seconds=20)

STORING = timedelta(seconds=0.5)
"""Of what a tick has left: kept for writing down what became of the fetch."""

SHORT = timedelta(seconds=2)
"""Waits up to this long, the gap between two requests, are waited for: coming back for them would cost more."""

GONE = "{reason}: it is over for good, says its server, and is not read any more; change its url or remove it"


class Payload(BaseModel):
    """Which source, by its name in the configuration, and in which line it stands."""

    source: str
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One visit of one source."""

    ctx: Context
    source: SourceSettings
    state: SourceState
    host: str
    visit: Visit

    @property
    def answers(self) -> list[Answer]:
        return self.visit.answers

    @property
    def gap(self) -> timedelta:
        return self.ctx.settings.service.host_gap

    @property
    def whole(self) -> bool:
        """Whether the source is read whole though its validators are known: once a week."""
        known = self.state.etag or self.state.last_modified
        return bool(known and self.state.primed_at and self.state.whole_due)


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """The network first; then one transaction that stores all of the round and ends the job."""
    source = ctx.settings.sources.get(payload.source)
    state = await ctx.stores.sources.get(payload.source)
    if state is None or (source is None and not state.watched):
        return Discard(f'the configuration has no source "{payload.source}"')
    if source is None or state.fingerprint != source.fingerprint:  # another replica has another configuration
        await ctx.stores.sources.leave(ctx.current_job, payload.source)
        return Settled()
    if state.gone:
        return Discard("its server has said that the source is over for good")
    if state.host is None or payload.host != state.host:
        await ctx.stores.sources.line_up(ctx.current_job, source.name)
        return Settled()
    if state.wait > timedelta(0):
        if state.host_waits or state.wait > min(SHORT, ctx.deadline.left - STORING):
            return _waits(source, state, ctx)
        await asyncio.sleep(state.wait.total_seconds())
    return await _visit(source, state, state.host, ctx)


def _waits(source: SourceSettings, state: SourceState, ctx: Context) -> Snooze:
    """At the head of its line: all sources of the host wait with it."""
    if state.host_waits:
        ctx.tally.note(f"source {source.name} waits: its host has asked to be left alone")
        log.info("source waits", extra={"source": source.name, "reason": state.host_reason})
    return Snooze(state.wait)


async def _visit(source: SourceSettings, state: SourceState, host: str, ctx: Context) -> Settled:
    address = str(getattr(source.options, "url", ""))
    async with (
        ctx.reaching(deny_private=source.deny_private) as http,
        Visit(http, address=address, moved_to=state.moved_to) as visit,
    ):
        this = _Round(ctx=ctx, source=source, state=state, host=host, visit=visit)
        try:
            fetched = await _fetch(this)
        except NothingListed as failure:
            if state.primed_at is None:  # all that it lists would be told as new, once it is read rightly
                return await _failed(this, failure)
            return await _store(this, Fetched(items=(), warnings=(str(failure),)), unexplained=True)
        except Failure as failure:
            return await _failed(this, failure)
    if isinstance(fetched, Unchanged):
        await ctx.stores.sources.keep_unchanged(
            ctx.current_job, source.name, source.fingerprint, _visited(this), source.watch
        )
        ctx.tally.add("sources.unchanged")
        return Settled()
    return await _store(this, fetched)


async def _fetch(this: _Round) -> Fetched | Unchanged:
    ctx, source, state = this.ctx, this.source, this.state
    conditional = state.primed_at is not None and not state.distrusted and not this.whole
    reading = Reading(
        source=source.name,
        http=this.visit.http,
        user_agent=ctx.service.user_agent,
        primed=state.primed_at is not None,
        etag=state.etag if conditional else None,
        last_modified=state.last_modified if conditional else None,
    )
    seconds = max(min(ctx.deadline.left, TIMEOUT - SHORT) - STORING, timedelta(0)).total_seconds()
    return await rounds.read(source, reading, seconds=seconds)


async def _failed(this: _Round, failure: Failure) -> Settled:
    if (answer := manners.refusal(this.answers)) is not None:
        return await _refused(this, failure, answer)
    ctx, source, reason = this.ctx, this.source, str(failure)
    gone = manners.is_gone(this.answers) and this.state.moved_to is None  # a move may be what was wrong
    if gone:
        reason = GONE.format(reason=reason)
        await ctx.stores.sources.stop(
            ctx.current_job, source.name, source.fingerprint, reason, host=this.host, gap=this.gap
        )
    else:
        await ctx.stores.sources.fail(
            ctx.current_job,
            source.name,
            source.fingerprint,
            reason,
            host=this.host,
            gap=this.gap,
            answered=this.visit.reached,
            jitter=ctx.random.random(),
        )
    _tell_failure(this, reason, gone=gone)
    return Settled()


async def _refused(this: _Round, failure: Failure, answer: Answer) -> Settled:
    """429 and 503: whoever answered so is left alone."""
    ctx, source, reason = this.ctx, this.source, str(failure)
    lasting = await ctx.stores.sources.refuse(
        ctx.current_job,
        source.name,
        source.fingerprint,
        reason,
        host=manners.host_key(answer.url),
        asked=manners.asked_wait(answer, now=this.state.now, every=source.every),
        jitter=ctx.random.random(),
    )
    if lasting:
        _tell_failure(this, reason)
    else:
        ctx.tally.note(f"source {source.name} waits: its host has asked to be left alone")
        log.info("source refused", extra={"source": source.name, "reason": reason})
    return Settled()


def _tell_failure(this: _Round, reason: str, *, gone: bool = False) -> None:
    log.warning("source gone" if gone else "source failed", extra={"source": this.source.name, "reason": reason})
    this.ctx.tally.add("sources.failed")
    this.ctx.tally.fail(f"source {this.source.name} {'is gone' if gone else 'failed'}")


def _tell_state(this: _Round, stored: Round) -> None:
    """What a person may want to look into, before an alert says so."""
    source = this.source.name
    if stored.degraded:
        log.warning("keys of source changed", extra={"source": source, "rule": stored.rule})
    if stored.unstable:
        this.ctx.tally.note(f"source {source} is unstable: nothing of it is told")
        log.warning("source unstable", extra={"source": source})
    if stored.empty:
        log.warning("source lists nothing", extra={"source": source})


def _visited(this: _Round) -> Visited:
    language, source = this.ctx.settings.service.language, this.source.name
    target = manners.moved_to(this.answers)
    last = this.answers[-1].headers if this.answers else {}
    return Visited(
        host=this.host,
        gap=this.gap,
        fresh_for=manners.fresh_for(last, now=this.state.now),
        moved_to=target,
        at_once=target is not None and manners.is_upgrade(this.answers[0].url, target),
        moved_note=words.moved(language, source=source, host=host_of(target or "")),
        against_validators=this.whole and bool(this.state.unchanged_lately),
        distrust_note=words.distrusted(language, source=source),
    )


async def _store(this: _Round, fetched: Fetched, *, unexplained: bool = False) -> Settled:
    ctx, source = this.ctx, this.source
    matches = await in_thread(
        partial(rounds.match_all, fetched.items, source.name, ctx.settings.subscriptions, now=this.state.now)
    )
    marked = await in_thread(identity.marked, fetched.items, source.identity)
    language = ctx.settings.service.language
    stored = await ctx.stores.items.add_round(
        ctx.current_job,
        source=source.name,
        fingerprint=source.fingerprint,
        fetched=fetched,
        visited=_visited(this),
        matches=matches,
        keep=ctx.settings.retention.items,
        note=lambda known: words.watching(language, source=source.name, count=known),
        marked=marked,
        apart=source.identity,
        watch=source.watch,
        merge_with=[other.name for other in ctx.settings.sources.values() if other.watch.merge_within],
        unexplained=unexplained,
        watching=rounds.watching(ctx.settings),
    )
    if stored is not None:
        _tell_state(this, stored)
        ctx.tally.add("sources.fetched")
        ctx.tally.add("sources.primed", int(stored.primed))
        ctx.tally.add("sources.new_items", stored.added)
        ctx.tally.add("sources.matched_items", stored.matched)
        if fetched.warnings:
            level = logging.WARNING if stored.primed else logging.INFO  # it stays so, and is loud once
            log.log(level, "source odd but readable", extra={"source": source.name, "warnings": fetched.warnings})
    return Settled()
