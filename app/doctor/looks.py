"""What one look is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.domain.findings import Finding

SECONDS = 25.0
"""Of a look: a request has 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """At one thing, beside all the others."""

    name: str
    """What its findings are told under."""

    work: Callable[[], Awaitable[list[Finding]]]
    """May raise a ServiceError; of a Failure the doctor says what to do."""

    seconds: float = SECONDS
    """At most a minute: all of them end by then."""
