"""What people say to us over a chat provider, and what is said back: one shape for all providers.

a delivery --verify, parse--> Said --(kept, thought about)--> Answer --reply--> Replied
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from app.domain import textcut
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from app.domain.errors import Failure

Kind = Literal["message", "follow", "unfollow", "staff", "join", "leave", "other"]
"""`follow` and `unfollow` are about one person, `join` and `leave` about a group. `staff`: a person of the house has
written in the thread. `other`: to be known as seen, and never answered."""


class Malformed(ServiceError):
    """A delivery that is no JSON of its provider's: answered 400, and never with what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One event of a chat."""

    id: str
    """The provider's own name for it, the same when it is delivered again; one of its content where it has none."""

    kind: Kind

    conversation: str
    """The same for everything in one thread: of the page or bot, and of the person, group or room."""

    address: str | None = field(default=None, repr=False)
    """What a message to that thread needs; None: there is no thread to write to."""

    person: str | None = field(default=None, repr=False)
    """Who it was, by the provider; None where it does not say, and for staff."""

    text: str = field(default="", repr=False)
    """Clean, of at most 5,000 characters. What is no text is a word in brackets: `[image]`."""

    at: datetime | None = None
    """UTC, by the provider's clock."""

    reply_token: str | None = field(default=None, repr=False)
    """Good for one reply, for about a minute; only some providers have one."""

    redelivered: bool = False

    group: bool = False
    """It stands in a chat of several people: to be answered only when `mentioned`."""

    mentioned: bool = False
    """In a group, it is said to the bot: by its name, as a reply to it, or as a command."""


async def _unasked() -> None:
    """Of an answer that nobody else may have taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is to be said in a thread. All of it stays the same at every try, but `waited` and `tried`."""

    texts: tuple[str, ...] = field(repr=False)
    """One message each, as `split` makes them."""

    address: str | None = field(repr=False)
    reply_token: str | None = field(default=None, repr=False)

    retry_key: UUID
    """For providers that know a repeat by one."""

    waited: timedelta
    """Since the event came in, by our clock: a reply token grows old."""

    tried: bool = False
    """An earlier try has begun, and may have arrived."""

    still_ours: Callable[[], Awaitable[None]] = field(default=_unasked, repr=False)
    """Raises where the answer is another process's by now: asked before a way is taken that cannot tell a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """What became of an answer."""

    texts: int
    """How many of its texts are with the provider, from the first on."""

    provider_id: str | None = None
    """The provider's name for the last one of them."""

    repeated: bool = False
    """An earlier try had arrived."""

    failure: Failure | None = None
    """Why the others are not; None: all are. An answer of which nothing has arrived raises instead."""


def split(text: str, *, limit: int, length: Callable[[str], int], most: int) -> tuple[str, ...]:
    """At most `most` texts of at most `limit` each, cut where a reader would; an ellipsis ends what is left out."""
    texts = textcut.cut(textcut.well_formed(text).replace("\0", "").strip(), limit=limit, length=length)
    if len(texts) <= most:
        return tuple(texts)
    *kept, last = texts[:most]
    return (*kept, _ended(last, limit=limit, length=length))


def _ended(text: str, *, limit: int, length: Callable[[str], int]) -> str:
    """With an ellipsis at its end, for which something gives way."""
    room = limit - length(textcut.ELLIPSIS)
    pieces: Sequence[str] = textcut.clusters(text)
    while pieces and length("".join(pieces)) > room:
        pieces = pieces[:-1]
    return "".join(pieces).rstrip() + textcut.ELLIPSIS
