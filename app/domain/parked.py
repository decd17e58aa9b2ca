"""Due jobs that no process has a handler for: taken out of the others' way until a release knows their type."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

MOST_COUNTED = 1000

MOST_TYPES = 20

UNKNOWN_FOR = timedelta(days=1)
"""Due for longer, a type opens an alert: until then a release that knows it may be on its way."""

TOLD_TYPES = 5
"""That one line names."""

NAME_LENGTH = 60
"""Characters. Whoever may write to the table may write any type: a misspelt name, or a whole page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """What is parked now."""

    count: int
    """At most `MOST_COUNTED`."""

    types: Sequence[str]
    """In their order, at most `MOST_TYPES`; as they were put in."""

    since: datetime | None
    """UTC. When the first of those types' first jobs was due. None when nothing is parked."""

    old_types: Sequence[str] = ()
    """Those of them whose first job has been due for `UNKNOWN_FOR`."""

    @property
    def told(self) -> str:
        """One line for a summary: a number, and names of types."""
        names = ", ".join(shown_name(name) for name in self.types[:TOLD_TYPES])
        if len(self.types) > TOLD_TYPES:
            names = f"{names} and others"
        if self.count == 1:
            return f"1 job of a type that nobody handles is parked: {names}"
        count = f"{self.count} jobs" if self.count < MOST_COUNTED else f"{MOST_COUNTED} jobs or more"
        what = "a type" if len(self.types) == 1 else "types"
        return f"{count} of {what} that nobody handles are parked: {names}"


def shown_name(name: str, *, limit: int = NAME_LENGTH) -> str:
    """A name that anybody may have chosen, short and in one line."""
    kept = "".join(character if character.isprintable() else "\ufffd" for character in name[: limit + 1])
    return kept if len(kept) <= limit else f"{kept[: limit - 1]}…"
