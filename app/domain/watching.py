"""When a source that answers is blind all the same, and what of it is no news."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import timedelta

State = Literal["ok", "blind", "silent", "unstable"]
"""Of a source's last round: for too long it has listed nothing, or nothing new; its keys cannot be believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What the configuration says about it."""

    zero_alert_after: int = 3
    """Rounds in a row that list nothing, of a source that has listed something, until it is blind. 0: never."""

    expect_news: timedelta | None = None
    """Without news for so long it is silent. None: never."""

    max_age: timedelta | None = None
    """What was published longer ago is no news."""

    merge_within: timedelta | None = None
    """What somebody was owed so lately under the same title, by another source that merges, is not told again."""


UNWATCHED = Watch()
"""As where the configuration says nothing."""


def told(state: State, *, empty_rounds: int, quiet_days: int) -> str | None:
    """The reason in plain words, with what to do; None for `ok`."""
    match state:
        case "ok":
            return None
        case "blind":
            rounds = "1 round" if empty_rounds == 1 else f"{empty_rounds} rounds in a row"
            return f"it has listed nothing for {rounds}, and has listed items before: see whether its list has moved"
        case "silent":
            days = "1 day" if quiet_days == 1 else f"{quiet_days} days"
            return f"it has listed nothing new for {days}, longer than expect_news_days: see whether it still goes on"
        case "unstable":
            return (
                "nearly all of its items have new keys and known titles, so nothing of it is told: say in "
                "ignore_params, id_regex or key what tells them apart"
            )
