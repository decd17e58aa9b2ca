"""A subscription says who hears of which items."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta  # noqa: TC003
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.domain.wording import Wording


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Whose conditions must all hold; one without conditions takes every item of its sources."""

    name: str

    sources: frozenset[str] | None = None
    """Names of sources; None: all of them, those to come too."""

    any: tuple[str, ...] = ()
    """At least one of these words must be there; empty: no such condition."""

    all: tuple[str, ...] = ()
    """Every one of these words must be there."""

    none: tuple[str, ...] = ()
    """Not one of these words may be there."""

    regex: tuple[str, ...] = ()
    """At least one of these patterns must find something; empty: no such condition."""

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Words of which at least one must be in that field of the item."""

    min: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The least value of each named field of the item."""

    max: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The greatest value of each named field of the item."""

    max_age: timedelta | None = None
    """Since it was published, where that is known."""

    to: tuple[str, ...]
    """Names of recipients, each once, at least one."""

    template: Wording | None = None
    """In what words its items are told, where somebody wants others than ours."""

    def hears(self, source: str) -> bool:
        """Whether this source is one of its own."""
        return self.sources is None or source in self.sources
