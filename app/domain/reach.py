"""Whether and how a recipient can be written to: an address where nobody is, a channel that takes nothing now, gaps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.domain.quota import Allowance

PAUSE = timedelta(seconds=10)
"""What a channel is left alone for when it refuses and does not say for how long."""

LONGEST_PAUSE = timedelta(days=1)
"""A provider that asks for more has made a mistake."""

LOOK_AGAIN = timedelta(hours=1)
"""How long what is held back waits, before it is asked once more whether it may go: a plan may be changed, a person may
have mended what was wrong."""

NO_GAP = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How far apart sends are kept, over all replicas."""

    channel: timedelta = NO_GAP
    """Between any two sends of a channel."""

    recipient: timedelta = NO_GAP
    """Between two sends to one address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of one address and its channel, at one instant."""

    now: datetime
    """UTC, by the database's clock."""

    blocked: str | None = None
    """Why nobody is reached there; None: somebody may be."""

    parked: str | None = None
    """Why its channel takes nothing now; None: it may."""

    moved_to: str | None = None
    """The address that is used in its place."""

    allowance: Allowance
    """Of the channel, its use counted up to now. Without a limit also where its provider was never asked."""

    asked_at: datetime | None = None
    """When the provider was asked last, answer or not."""

    read_at: datetime | None = None
    """When it has answered last."""

    last_at: datetime | None = None
    """When the recipient's last digest on this channel was composed."""

    members: int | None = None
    """Of a group; None: it is none, or nobody has asked."""

    members_read_at: datetime | None = None

    further_members: int = 0
    """Of all groups of the channel, beyond one for each: what they cost more than as many users."""

    @property
    def closed(self) -> str | None:
        """Why nothing goes there now; None: it may."""
        return self.blocked or self.parked


def pause(asked: timedelta | None) -> timedelta:
    """How long a channel is left alone that has asked for it."""
    return min(max(asked or PAUSE, timedelta(seconds=1)), LONGEST_PAUSE)
