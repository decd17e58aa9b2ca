"""Commands that allowed people give in a chat: whether a message is one, what it does, and what is answered.

    text --a command, or what may be the invitation--> may this person? --yes--> effect and reply, committed at once
      `--neither---------------------------------------------'--no--> an ordinary text, answered as it would be without

Whoever is not allowed learns nothing of it: nor that there are commands, nor whether a guess was near.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import logging
import unicodedata
from typing import TYPE_CHECKING, Literal

from app.domain import chatwords, commands, commandwords, watches, when
from app.domain.bookings import zone_of
from app.domain.commands import Command
from app.domain.digests import shown_link, shown_title, shown_words
from app.domain.folding import contains, fold
from app.domain.messages import DigestItem
from app.settings.addresses import fingerprint
from app.settings.watched import destination

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from app.context import Context
    from app.domain.commandwords import Name
    from app.domain.conversations import Inbound
    from app.domain.watches import Watch
    from app.settings.chats import ChatSettings
    from app.stores.watches import Kept, Obeying

log = logging.getLogger(__name__)

GUESSES_A_DAY = 5
"""Of one person. What is tried beyond is not compared any more."""

START = "/start "
"""What the button *Start* of Telegram says before the word of its link."""

Order = Command | Literal["invitation", "obeyed"]
"""`obeyed`: an earlier try has, and the text is gone."""


async def understand(inbound: Inbound, chat: ChatSettings, ctx: Context) -> Order | Inbound:
    """What an allowed person wants; or the message, as it is to be answered like any other."""
    if not chat.commands:
        return inbound
    if inbound.reply is not None and not inbound.text:
        return "obeyed"
    person, code, guess = inbound.person, chat.invitation, _guess_in(inbound.text)
    could_be = code is not None and _shape(guess) == _shape(code)  # else it cannot be right, and is no guess
    command = commands.parse(inbound.text, chat.language)
    if person is None or (command is None and not could_be):
        return inbound
    may = await _may(person, chat, ctx)
    if code is not None and could_be:
        understood = inbound if may else await _counted(inbound, person, ctx)
        if understood is not inbound:
            return understood
        if _is_right(guess, code):
            return "invitation"
    return command if command is not None and may else inbound


async def obey(
    order: Command | Literal["invitation"],
    inbound: Inbound,
    chat: ChatSettings,
    ctx: Context,
    *,
    cut: Callable[[Sequence[str]], tuple[str, ...]],
) -> tuple[str, ...]:
    """Do it, and commit it with its reply, which `cut` makes fit for the provider. Once: a repeat is told the same.

    Raises:
        LeaseLost: another one has the job; nothing is done.
    """
    if isinstance(order, Command) and order.name == "watch":
        await _reached(inbound, chat, ctx)
    async with ctx.stores.watches.obeying(ctx.current_job, inbound) as obeying:
        if obeying.frozen is not None:
            return obeying.frozen
        if order == "invitation":
            await obeying.invite()
            said = chatwords.words_of(chat.language).invited
        else:
            said = await _Obeyed(inbound=inbound, chat=chat, ctx=ctx, obeying=obeying).reply(order)
        texts = cut([said])
        await obeying.freeze(texts, secret=order == "invitation")
    log.info("command obeyed", extra={"chat": chat.name, "command": getattr(order, "name", order)})
    return texts


async def _reached(inbound: Inbound, chat: ChatSettings, ctx: Context) -> None:
    """Whoever would be told is there, whatever a provider has said of the address before."""
    to = destination(ctx.settings, chat, inbound.address)
    if to is not None and chat.channel is not None:
        name = watches.recipient_name(inbound.chat, inbound.conversation_id)
        address = fingerprint(ctx.settings.channels[chat.channel], to)
        await ctx.stores.reach.unblock(address=address, name=name)


# ------------------------------------------------------------------------------------------------------- who may


async def _may(person: str, chat: ChatSettings, ctx: Context) -> bool:
    if chat.allows(person, invited=False):
        return True
    return chat.invitation is not None and await ctx.stores.watches.is_invited(chat.name, person)


def _guess_in(text: str) -> str:
    """What may be the invitation. A link to a bot of Telegram's may hold it, and says it behind its own command."""
    return text.strip().removeprefix(START).strip()


def _shape(text: str) -> tuple[str, ...]:
    """Its letters and digits each as one of their sort, all else as it is: `open-7` and `shut-8` are alike."""
    sorts = map(unicodedata.category, text)
    return tuple(sort if sort[0] in "LMN" else letter for letter, sort in zip(text, sorts, strict=True))


async def _counted(inbound: Inbound, person: str, ctx: Context) -> Inbound:
    """Before it is looked at: two guesses at once are two.

    One too many is an ordinary text, right or wrong, so that no answer tells; and since it may be the invitation, it is
    not remembered.
    """
    if await ctx.stores.watches.guess(inbound.chat, person, said=inbound.id) <= GUESSES_A_DAY:
        return inbound
    return dataclasses.replace(inbound, fleeting=True)


def _is_right(guess: str, code: str) -> bool:
    given, right = hashlib.sha256(guess.encode()).digest(), hashlib.sha256(code.encode()).digest()
    return hmac.compare_digest(given, right)


# ----------------------------------------------------------------------------------------------- what is done and said


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Obeyed:
    """One command, in the transaction of its effect."""

    inbound: Inbound
    chat: ChatSettings
    ctx: Context
    obeying: Obeying

    @property
    def words(self) -> commandwords.CommandWords:
        return commandwords.words_of(self.chat.language)

    async def reply(self, command: Command) -> str:
        """What is answered, once it is done."""
        followed: dict[Name, Callable[[str], Awaitable[str]]] = {
            "help": self._help,
            "latest": self._latest,
            "list": self._list,
            "mute": self._mute,
            "status": self._status,
            "unwatch": self._unwatch,
            "watch": self._watch,
        }
        return await followed[command.name](command.rest)

    async def _help(self, _: str) -> str:
        return self.words.help

    async def _watch(self, rest: str) -> str:
        words = self.words
        if destination(self.ctx.settings, self.chat, self.inbound.address) is None:
            return words.not_here
        try:
            phrases = commands.phrases_of(rest)
        except commands.TooMuch as fault:
            told = words.long_phrase if fault.what == "long" else words.many_phrases
            return told.format(most=fault.most)
        if not phrases:
            return words.which
        known = await self.obeying.watches()
        if not await self.obeying.add(phrases, most=commands.MOST_WATCHES):
            return words.many_watches.format(most=commands.MOST_WATCHES)
        now = await self.obeying.watches()
        number = _number_of(phrases, now)
        told = words.known if len(now) == len(known) else words.watching
        return told.format(number=number, phrases=_shown(now[number - 1].phrases))

    async def _unwatch(self, rest: str) -> str:
        watched = await self.obeying.watches()
        number = commands.number_of(rest)
        if number is None:
            try:
                phrases = commands.phrases_of(rest)
            except commands.TooMuch:
                return self.words.not_watched
            if not phrases:
                return self.words.which_not
            number = _number_of(phrases, watched)
        if not 1 <= number <= len(watched):
            return self.words.not_watched
        watch = watched[number - 1]
        await self.obeying.remove(watch)
        return self.words.unwatched.format(phrases=_shown(watch.phrases))

    async def _list(self, _: str) -> str:
        watched = await self.obeying.watches()
        if not watched:
            return self.words.nothing_watched
        lines = (f"{number}. {_shown(watch.phrases)}" for number, watch in enumerate(watched, 1))
        return "\n".join([self.words.watched, *lines])

    async def _mute(self, rest: str) -> str:
        length = commands.mute_of(rest, self.chat.language)
        if length is None:
            return self.words.how_long
        standing = await self.obeying.mute(length)
        return self._muted(standing.muted_until, standing.now) or self.words.unmuted

    async def _latest(self, rest: str) -> str:
        most, sources = commands.latest_of(rest), list(self.ctx.settings.sources)
        watched = await self.obeying.watches()
        if not watched:
            items = await self.obeying.latest(sources, most=most)
            return "\n\n".join(map(self._told, items)) or self.words.no_items
        items = [item for item in await self.obeying.latest(sources) if _matches(item, watched)]
        return "\n\n".join(map(self._told, items[:most])) or self.words.no_matches

    async def _status(self, _: str) -> str:
        words, standing = self.words, await self.obeying.standing()
        at = words.no_tick if standing.last_at is None else self._when(standing.last_at, standing.now)
        muted = self._muted(standing.muted_until, standing.now) or words.not_muted
        return f"{words.status.format(sources=len(self.ctx.settings.sources), at=at)}\n{muted}"

    def _muted(self, until: datetime | None, now: datetime) -> str | None:
        if until is None or until <= now:
            return None
        return self.words.muted.format(until=self._when(until, now))

    def _when(self, at: datetime, now: datetime) -> str:
        zone = zone_of(self.ctx.settings.service.timezone)
        return when.told(at, now=now, zone=zone, language=self.chat.language)

    def _told(self, kept: Kept) -> str:
        """As a digest tells it."""
        item = DigestItem(title=kept.title, link=kept.link, source=kept.source, subscriptions=())
        lines = (shown_title(item, self.chat.language), shown_link(kept.link or ""))
        return "\n".join(filter(None, lines))


def _number_of(phrases: Sequence[str], watched: Sequence[Watch]) -> int:
    """Of the watch with just these phrases; 0: there is none."""
    asked = set(map(fold, phrases))
    return next((n for n, watch in enumerate(watched, 1) if set(map(fold, watch.phrases)) == asked), 0)


def _matches(item: Kept, watched: Sequence[Watch]) -> bool:
    """By its title; or it was owed for one of them, whose words its text had."""
    if not item.labels.isdisjoint(watches.label(watch.phrases) for watch in watched):
        return True
    title = fold(item.title)
    return any(contains(title, phrase) for watch in watched for phrase in watch.phrases)


def _shown(phrases: Sequence[str]) -> str:
    return ", ".join(map(shown_words, phrases))
