"""Answers one message of a chat, in its conversation's order.

    read --(paused)--> remembered
      `--> reply made --> frozen --> sent --> remembered, done

What was frozen is sent by every later try as it is. Whether an earlier try has arrived, the provider says where it can.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from app import answering, commanding, plugins, talking
from app.answering import Postponed, Reply
from app.composing import notes
from app.domain import chats, chatwords, conversations
from app.domain.conversations import Inbound, Turn
from app.domain.errors import (
    Blocked,
    DatabaseUnavailable,
    Failure,
    MemoryUnavailable,
    PermanentFailure,
    TemporaryFailure,
    Unanswered,
)
from app.domain.jobs import Discard, Settled
from app.domain.textcut import shorten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from app.clients.recall import Recall
    from app.commanding import Order
    from app.context import Context
    from app.domain.jobs import Outcome
    from app.settings.chats import ChatSettings

log = logging.getLogger(__name__)

TIMEOUT = timedelta(seconds=60)

LEAST = TIMEOUT
"""Begun in the first half of a tick's or drain's time alone: what is begun late is cut, and has cost its tokens and a
try for nothing."""

TYPING_SECONDS = 2.0

WANTED_LENGTH = 100
"""Characters of a message that somebody of the house is shown."""

RETRY = (timedelta(seconds=20), timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30))


class Payload(BaseModel):
    """Which message, by its id."""

    said: int


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """Commit the reply before it is sent; send it; commit what came of it together with the end of the job."""
    memory = ctx.settings.memory
    inbound = await ctx.stores.conversations.read(payload.said, most=memory.turns)
    if inbound is None or inbound.answered:
        return Discard("there is nothing to answer any more")
    chat = ctx.settings.chats.get(inbound.chat)
    if chat is None:  # or not yet: another replica may have a newer configuration
        raise TemporaryFailure(f'the configuration has no chat "{inbound.chat}"')
    async with talking.remembering(ctx.settings) as recall:
        understood = await commanding.understand(inbound, chat, ctx)
        if not isinstance(understood, Inbound):
            return await _Answering(ctx=ctx, inbound=inbound, chat=chat, recall=recall, talk=False).obey(understood)
        answering_ = _Answering(ctx=ctx, inbound=understood, chat=chat, recall=recall, talk=not understood.fleeting)
        if inbound.paused:
            await answering_.end("a person answers")
            return Settled()
        try:
            return await answering_.run()
        except Postponed as postponed:
            return postponed.snooze


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answering:
    ctx: Context
    inbound: Inbound
    chat: ChatSettings
    recall: Recall | None

    talk: bool = True
    """It is to be remembered."""

    @property
    def module(self) -> Any:
        return plugins.load("app.chats", self.chat.kind)

    async def run(self) -> Outcome:
        if chatwords.asks_for_person(self.inbound.text, self.chat.handover):
            return await self._hand_over()
        texts, fault = self.inbound.reply, None
        if texts is None:
            reply = await self._reply()
            texts, fault = self._cut(reply.texts), reply.fault
            if not texts:
                await self.end("nothing to say")
                return Settled()
            return await self._frozen(texts, fault=fault)
        return await self.send(texts, fault=fault)

    async def _frozen(self, texts: tuple[str, ...], **told: Any) -> Outcome:
        """Sent, once it is committed that it is; with the token that came last."""
        inbound = await self._stores.freeze(self.ctx.current_job, self.inbound, texts)
        return await dataclasses.replace(self, inbound=inbound).send(texts, **told)

    async def obey(self, order: Order) -> Outcome:
        """A command, also where a person of the house has taken over. It is no talk, and not remembered."""
        texts = self.inbound.reply
        if texts is None and order != "obeyed":
            texts = await commanding.obey(order, self.inbound, self.chat, self.ctx, cut=self._cut)
        return await self.send(texts or (), fault=None)

    async def _hand_over(self) -> Outcome:
        """The person is told that somebody comes, and whoever hears of alerts that somebody is wanted."""
        texts = self.inbound.reply or (chatwords.words_of(self.chat.language).handed_over,)
        return await self._frozen(texts, fault=None, handing_over=True)

    async def _reply(self) -> Reply:
        """With the polite text where no other can be made, once the last try has come or a person is asked for."""
        await self._show_typing()
        try:
            return await answering.make(self.inbound, await self._turns(), self.chat, self.ctx)
        except (Failure, DatabaseUnavailable) as failure:
            if self.ctx.current_job.last_attempt or await self._person_is_waited_for():
                return answering.polite(self.chat, fault=str(failure))
            if isinstance(failure, TemporaryFailure) and failure.retry_after is not None:
                failure.retry_after = min(failure.retry_after, RETRY[-1])  # a person waits
            raise

    async def _person_is_waited_for(self) -> bool:
        """Whether a later message asks for one: it stands in line behind this one, and must not wait for its tries."""
        try:
            later = await self._stores.waiting(self.inbound)
        except DatabaseUnavailable:
            return False
        return any(chatwords.asks_for_person(text, self.chat.handover) for text in later)

    async def _show_typing(self) -> None:
        if self.inbound.address is None or (self.chat.model is None and self.chat.job is None):
            return
        try:
            async with asyncio.timeout(TYPING_SECONDS):
                await self.module.typing(self.inbound.address, self.chat.account, self.ctx.http)
        except (Failure, TimeoutError) as failure:
            log.info("typing not shown", extra={"chat": self.chat.name, "reason": str(failure) or "timed out"})

    async def _turns(self) -> Sequence[Turn]:
        """What was said before, by both memories: one of them may have been away."""
        known = list(self.inbound.turns)
        if self.recall is not None:
            try:
                known += await self.recall.last(self.chat.name, self.inbound.key, most=self._most)
            except MemoryUnavailable as error:
                log.warning("memory unavailable", extra={"reason": str(error)})
        known = [turn for turn in known if turn.mark != self._mark("person")]
        keep = self.ctx.settings.memory.keep
        return conversations.remembered(known, now=self.inbound.now, keep=keep, most=self._most)

    def _cut(self, wholes: Sequence[str]) -> tuple[str, ...]:
        """As many messages as the provider takes at once, each as long as it takes."""
        module = self.module
        cut = [
            text
            for whole in wholes
            for text in chats.split(whole, limit=module.TEXT_LIMIT, length=module.length, most=module.MOST_TEXTS)
        ]
        return tuple(cut[: module.MOST_TEXTS])

    async def send(self, texts: tuple[str, ...], *, fault: str | None, handing_over: bool = False) -> Outcome:
        """Say it, and write down what came of it."""
        inbound = self.inbound
        answer = chats.Answer(
            texts=texts[inbound.sent :],
            address=inbound.address,
            reply_token=inbound.reply_token if not inbound.sent else None,
            retry_key=inbound.retry_key,
            waited=max(inbound.now - inbound.token_at, timedelta(0)),
            tried=inbound.replying_at is not None,
            still_ours=self._still_ours,
        )
        await self._still_ours()  # a machine may have been suspended since
        try:
            async with asyncio.timeout(max(self.ctx.deadline.left.total_seconds() - 1, 1)):
                replied = await self.module.reply(answer, self.chat.account, self.ctx.http)
        except TimeoutError:  # a cut by the drain would cost no try, and repeat it for ever
            raise Unanswered(f"the provider of chat {self.chat.name} did not answer in time") from None
        except PermanentFailure as failure:
            outcome = "nobody there" if isinstance(failure, Blocked) else "refused"
            # Whoever has gone is no fault of ours; whatever else the provider refuses is.
            fault = None if isinstance(failure, Blocked) else str(failure)
            await self.end(outcome, fault=fault, handing_over=handing_over)
            return Settled()
        if replied.failure is not None:
            await self._stores.progress(self.ctx.current_job, inbound, sent=inbound.sent + replied.texts)
            raise replied.failure
        if replied.repeated:
            log.info("reply had arrived", extra={"chat": self.chat.name, "said": inbound.id})
        await self.end("replied", said=texts, fault=fault, handing_over=handing_over)
        return Settled()

    async def _still_ours(self) -> None:
        """Raises LeaseLost where another process has taken the job over."""
        await self._stores.still_of(self.ctx.current_job)

    async def end(
        self, outcome: str, *, said: Sequence[str] = (), fault: str | None = None, handing_over: bool = False
    ) -> None:
        """Remember both turns and finish the job. Where Redis is away, the database remembers in its place."""
        ctx, inbound = self.ctx, self.inbound
        # Both at one instant by the database's clock: turns of two memories are put together by it.
        turns = [Turn(mark=self._mark("person"), side="person", text=inbound.text, at=inbound.now)]
        if said:
            text = "\n\n".join(said)
            turns.append(Turn(mark=self._mark("service"), side="service", text=text, at=inbound.now))
        turns = [turn for turn in turns if turn.text and self.talk]
        elsewhere = await self._remembered_elsewhere(turns)
        there = await self._stores.answer(
            ctx.current_job,
            inbound,
            outcome,
            turns=[] if elsewhere else turns,
            most=self._most,
            pause=self.chat.pause if handing_over else None,
            tellings=notes(ctx.settings, self._wanted) if handing_over else [],
            fault=fault,
        )
        if elsewhere and not there:
            await self._forget()
        await self._confirm()
        if handing_over:
            ctx.tally.add("chats.handed_over")
        if fault is not None:
            ctx.tally.fail(f"chat {self.chat.name} failed")

    async def _remembered_elsewhere(self, turns: Sequence[Turn]) -> bool:
        if self.recall is None or not turns:
            return False
        try:
            await self.recall.add(self.chat.name, self.inbound.key, turns, most=self._most)
        except MemoryUnavailable as error:
            log.warning("memory unavailable", extra={"reason": str(error)})
            return False
        return True

    async def _forget(self) -> None:
        """Somebody has had the conversation forgotten while it was answered."""
        if self.recall is not None:
            await _or_warn(self.recall.forget(self.chat.name, self.inbound.key))

    async def _confirm(self) -> None:
        """Only now: a copy of what is not answered yet is to be looked at."""
        if self.recall is not None:
            await _or_warn(self.recall.confirm(self.chat.name, self.inbound.event_id))

    def _wanted(self, language: str) -> str:
        said = shorten(" ".join(self.inbound.text.split()), limit=WANTED_LENGTH, characters=4 * WANTED_LENGTH)
        return chatwords.words_of(language).wanted.format(chat=self.chat.name, text=said)

    def _mark(self, side: str) -> str:
        return f"{self.inbound.event_id}:{side}"

    @property
    def _most(self) -> int:
        return self.ctx.settings.memory.turns

    @property
    def _stores(self) -> Any:
        return self.ctx.stores.conversations


async def _or_warn(told: Awaitable[None]) -> None:
    try:
        await told
    except MemoryUnavailable as error:
        log.warning("memory unavailable", extra={"reason": str(error)})
