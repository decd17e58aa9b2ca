"""What a source publishes, and what one round of reading it brought."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta  # noqa: TC003
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing a source has published. Texts are plain text, without NUL and lone surrogates."""

    key: str
    """What tells it from the source's other items, at most 1,000 characters."""

    title: str

    id: str | None = None
    """What the source itself calls it; empty where it does not. None: the key is what its kind knows to be its id."""

    link: str | None = None
    """Absolute, as published."""

    published_at: datetime | None = None
    """UTC. None when the source gave no date that can be read; never decides what is new."""

    text: str = ""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further named values, for `min` and templates: numbers and texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A round: everything the source lists now, in its order."""

    items: tuple[Item, ...]

    whole: bool = True
    """False: the end of the answer was missing. What it lists is told; what it does not list has not aged."""

    etag: str | None = None
    """Validators to send next time, byte for byte as they came."""

    last_modified: str | None = None

    ttl: timedelta | None = None
    """How long the document itself asks to be left alone."""

    empty_is_meant: bool = False
    """It lists nothing and says so: that it has listed something before is no reason to wonder."""

    warnings: tuple[str, ...] = ()
    """What was odd but readable, for people."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The source answered 304: nothing is new, and nothing has aged."""
