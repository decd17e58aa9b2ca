"""What is told, to whom: a digest is what is owed, a message is its frozen form.

    owed --compose, once--> queued --send--> sending --answer--> sent
                                               ^  |--permanent--> failed
                                               |  |--no answer while the provider knows the key--> uncertain
                                               |  `--temporary--> retrying --.
                                               `----------------------------'

A message's body and key never change; only its status does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class OwedItem:
    """One item that somebody is to hear of, as it was kept."""

    title: str
    link: str | None
    source: str

    subscriptions: tuple[str, ...]
    """Names of the recipient's subscriptions that matched, sorted."""

    published_at: datetime | None = None

    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Both are kept only for those that a template tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """All that is taken for one recipient at once."""

    items: tuple[OwedItem, ...]

    more: int = 0
    """Further ones, taken to be counted only."""

    now: datetime
    """By the database's clock."""

    told_at: tuple[datetime, ...] = ()
    """When they were told the last times, newest first: as many as may be in a day, where there is a limit for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestItem:
    """One item as a recipient hears of it."""

    title: str
    link: str | None
    source: str

    subscriptions: tuple[str, ...]
    """Names of the recipient's subscriptions that matched, sorted."""

    lines: tuple[str, ...] = ()
    """What a template of the user's makes of it, in place of all the above: lines with something in them, safe beside
    other text. None at all: nobody wants other words. It is plain text, which a channel escapes as it does a title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """All that one recipient is told at once."""

    items: tuple[DigestItem, ...] = ()

    more: int = 0
    """Further items that are only counted, after the last one: "and 37 more"."""

    note: str | None = None
    """Words of the service itself, in place of items: an alert, a test. Lines of plain text."""

    to: str
    """The address on the channel: a LINE user id, an e-mail address; empty for the inbox."""

    language: str = "en"
    """`en`, `th`, `vi` or `my`: the language of the service's own words."""

    @property
    def count(self) -> int:
        """How many items are new, shown or not."""
        return len(self.items) + self.more


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One text of a message, as its channel counts it."""

    text: str
    length: int

    limit: int | None = None
    """The most that the channel takes; None: it sets no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One message to come, as a channel composed it."""

    body: str
    """What is sent, byte for byte (UTF-8), at every try."""

    text: str
    """The same for people to read, on the status page and in the inbox."""

    parts: tuple[Part, ...] = ()
    """Its texts as they arrive, where the channel has a limit for them; none: `text` is the only one."""

    items: tuple[int, ...] = ()
    """Which of the digest's items it shows, by their places in it; each item is in one body, where its title begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One frozen text owed to one recipient."""

    id: int
    recipient: str
    channel: str

    body: str
    """Composed once; sending never renders again, so that a repeat is the same bytes."""

    retry_key: UUID
    """The idempotency key, the same at every try."""

    first_tried_at: datetime
    """UTC, by the database's clock. When this message was first handed to its channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the provider said of a message it has taken."""

    provider_id: str | None = None
    """The provider's name for the request, for a talk with its support."""

    repeated: bool = False
    """The provider had it already: an earlier try had arrived, its answer had not."""
