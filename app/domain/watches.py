"""What people watch by a command in a chat: phrases, and the conversation in which they are told.

Whoever is told so has no table in the configuration, and is named `chats/<chat>/<conversation>`: no name of a person,
and none that a configuration can hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.domain.digests import shown_words
from app.domain.folding import contains
from app.domain.matching import Folded
from app.domain.textcut import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from app.domain.items import Item

PREFIX = "chats/"

LABEL_LENGTH = 60
"""Characters of what an item that matched names as its subscription."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Of one person."""

    id: int
    phrases: tuple[str, ...]
    """An item matches that has any of them, in its title, its text or a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A watch, and whom it is told."""

    chat: str
    conversation: int
    person: str = field(repr=False)

    invited: bool
    """The person has said the chat's invitation."""

    phrases: tuple[str, ...]

    @property
    def recipient(self) -> str:
        """Who is told, by name."""
        return recipient_name(self.chat, self.conversation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A conversation in which somebody watches something."""

    chat: str
    conversation: int
    address: str | None = field(repr=False)

    muted_until: datetime | None
    """Nothing is told there before."""

    people: tuple[tuple[str, bool], ...] = field(repr=False)
    """Who watches, and whether they were invited."""

    @property
    def recipient(self) -> str:
        """Its name as a recipient."""
        return recipient_name(self.chat, self.conversation)


def recipient_name(chat: str, conversation: int) -> str:
    """How a conversation is named where a recipient is."""
    return f"{PREFIX}{chat}/{conversation}"


def conversation_of(recipient: str) -> int | None:
    """The conversation that is named so; None: the name is one of the configuration's."""
    if not recipient.startswith(PREFIX):
        return None
    written = recipient.rpartition("/")[2]
    return int(written) if written.isascii() and written.isdecimal() else None


def label(phrases: Iterable[str]) -> str:
    """A watch as what is told of an item names it, safe beside other text."""
    return shown_words(shorten(", ".join(phrases), limit=LABEL_LENGTH, characters=2 * LABEL_LENGTH))


def told_of(items: Sequence[Item], watched: Sequence[Watched]) -> Iterator[tuple[Item, str, tuple[str, ...]]]:
    """Each item that somebody watches for, with that recipient and the labels of their watches that it matches."""
    phrases = {phrase for watch in watched for phrase in watch.phrases}
    for item in items:
        text = Folded(item).words
        found = {phrase for phrase in phrases if contains(text, phrase)}
        if not found:
            continue
        labels: dict[str, set[str]] = {}
        for watch in watched:
            if not found.isdisjoint(watch.phrases):
                labels.setdefault(watch.recipient, set()).add(label(watch.phrases))
        yield from ((item, recipient, tuple(sorted(names))) for recipient, names in labels.items())
