"""What a conversation is made of: turns of either side, and the message that is to be answered next.

    heard --(a person has taken over)--> remembered, not answered
      `--> reply made --> frozen --> sent --> both turns remembered, answered

A process may die at each arrow. What was frozen is sent as it is; what was sent and not written down may be sent again
where the provider cannot tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

Side = Literal["person", "service", "staff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing said."""

    mark: str
    """Of the event it belongs to, and the side: a turn is remembered once, however often it is told."""

    side: Side
    text: str

    at: datetime
    """UTC. When it was remembered, by the database's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What keeping made of one event of a delivery."""

    event_id: str
    kind: str

    fresh: bool
    """False: it was kept before, by whichever replica."""

    answered: bool
    """There is nothing more to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message that was kept, with what its reply is made of."""

    id: int
    chat: str
    conversation_id: int

    key: str
    """Of the conversation: the provider's names of page or bot, and of the person or group."""

    event_id: str
    address: str | None = field(repr=False)
    person: str | None = field(repr=False)
    text: str = field(repr=False)
    said_at: datetime
    """UTC; by the provider's clock, or when it was received."""

    received_at: datetime
    """By the database's clock."""

    reply_token: str | None = field(repr=False)
    token_at: datetime
    """When that came, by the database's clock."""

    reply: tuple[str, ...] | None = field(repr=False)
    """Frozen by an earlier try."""

    sent: int
    """Texts of it that are with the provider."""

    retry_key: UUID

    replying_at: datetime | None
    """When an earlier try began to send it: it may have arrived."""

    answered: bool

    paused: bool
    """A person has taken over."""

    turns: tuple[Turn, ...] = field(repr=False)
    """What was said before, oldest first, as far as the database has it, and however old."""

    now: datetime

    fleeting: bool = False
    """To be answered and not remembered: it may hold what is not to be kept."""

    @property
    def who(self) -> str:
        """The person; where the provider does not say who it is, whoever talks in that conversation."""
        return self.person or f"in {self.key}"


def newest(turns: Sequence[Turn], *, most: int) -> tuple[Turn, ...]:
    """At most so many, the latest; each once; in the order in which they were told."""
    by_mark = {turn.mark: turn for turn in turns}
    return tuple(by_mark.values())[-most:] if most > 0 else ()


def remembered(turns: Sequence[Turn], *, now: datetime, keep: timedelta, most: int) -> tuple[Turn, ...]:
    """The last of what either memory has, oldest first; none once nothing was said for so long: all goes at once."""
    told = sorted(turns, key=lambda turn: turn.at)  # stable: what was remembered at one instant stays as it was
    return newest(told, most=most) if told and told[-1].at > now - keep else ()
