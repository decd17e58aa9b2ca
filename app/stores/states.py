"""What the rounds that were read say of their source: blind, silent or unstable, and what its keys are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.stores import sql
from app.stores.database import rows

if TYPE_CHECKING:
    from datetime import datetime

    from app.domain.identity import Rule
    from app.domain.watching import Watch
    from app.stores.database import Connection

SQL = sql.load("states")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a round has brought."""

    priming: bool
    rule: Rule

    news: bool = False

    empty: bool = False
    """It listed nothing, for no reason that is known."""

    unstable: bool = False

    oldest_at: datetime | None = None
    """The earliest date in it; counts where it is the first."""


async def judge_in(db: Connection, name: str, watch: Watch, read: Read | None) -> None:
    """In the transaction that settles the round. `read` None: a 304, which lists what the last good round did."""
    await rows(
        db,
        SQL["judge"],
        {
            "name": name,
            "unchanged": read is None,
            "priming": read is not None and read.priming,
            "rule": read and read.rule,
            "news": read is not None and (read.news or read.priming),
            "empty": read is not None and read.empty,
            "unstable": read is not None and read.unstable,
            "oldest_at": read and read.oldest_at,
            "zero_alert_after": watch.zero_alert_after,
            "expect_seconds": watch.expect_news and watch.expect_news.total_seconds(),
        },
    )
