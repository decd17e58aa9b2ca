"""Who has rung, and what was left behind: as the database tells it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from app.domain import pace
from app.domain.findings import Finding, fail, ok, warn
from app.domain.health import judge
from app.stores.examination import Examination

if TYPE_CHECKING:
    from app.domain.health import Health
    from app.settings import Settings
    from app.stores import Stores
    from app.stores.examination import LastRing

SET_UP = (
    "have a scheduler call POST {where}/api/cron/tick with the CRON_SECRET as bearer token, every {every} "
    "(docs/guides/deploying.md)"
)
RARER = "ring as often as expected_every_minutes says, or write there how often that is"

SHOWN = 5


async def look(stores: Stores, settings: Settings) -> list[Finding]:
    """The latest ring, the open alerts, and what else is not as it should be."""
    every = settings.tick.expected_every
    last = await Examination(stores.database).last_ring()
    facts = await stores.health.read(list(settings.sources))
    health = judge(facts, expected_every=every)
    where = settings.environment.public_url or "PUBLIC_URL"
    ring = _never(where, every) if last is None else _ring(last, health, every)
    return [ring, _alerts(health), *_others(health)]


def _never(where: str, every: timedelta) -> Finding:
    return warn("nobody has rung yet", SET_UP.format(where=where, every=pace.told(every)), name="rings")


def _ring(last: LastRing, health: Health, every: timedelta) -> Finding:
    [check] = health.checks["tick:age"]
    ago = max(last.now - last.started_at, timedelta(0))
    told = f"the last one {_about(ago)} ago by {last.trigger}, {last.status or 'not ended yet'}; {_day(last)}"
    if check["status"] == "fail":
        return fail(f"{told}: {check['output']}", f"a ring is expected every {pace.told(every)}", name="rings")
    if check["status"] == "warn":
        return warn(f"{told}: it is late", f"a ring is expected every {pace.told(every)}", name="rings")
    gap = timedelta(seconds=last.longest_gap_seconds or 0)
    return warn(told, RARER, name="rings") if gap > 3 * every else ok(told, name="rings")


def _day(last: LastRing) -> str:
    rings = f"{last.rings} in 24 hours"
    if last.longest_gap_seconds is None:
        return rings
    return f"{rings}, {_about(timedelta(seconds=last.longest_gap_seconds))} apart at most"


def _alerts(health: Health) -> Finding:
    """How many are open, and which: `kind:subject`."""
    [check] = health.checks["alerts:open"]
    names = check["observedValue"]
    if not names:
        return ok("none is open", name="alerts")
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return warn(f"{', '.join(names[:SHOWN])}{more}", "`wakebell alerts` tells what to do", name="alerts")


def _others(health: Health) -> list[Finding]:
    found = []
    [sources] = health.checks["sources:failing"]
    if sources["observedValue"]:
        names = ", ".join(sources["observedValue"][:SHOWN])
        found.append(warn(f"failing: {names}", "`wakebell sources` tells why", name="sources"))
    [oldest] = health.checks["jobs:oldest_due"]
    if oldest["status"] != "pass":
        since = _about(timedelta(seconds=oldest["observedValue"]))
        found.append(warn(f"one has been due for {since}", "ring more often, or allow more per tick", name="jobs"))
    [held] = health.checks["jobs:held"]
    if held["status"] != "pass":
        found.append(warn(f"{held['observedValue']} wait: {held['output']}", name="jobs held"))
    return found


def _about(span: timedelta) -> str:
    """To the second, the minute or the hour."""
    seconds = round(span.total_seconds())
    if seconds < 2 * 60:
        return f"{seconds} s"
    if seconds < 2 * 3600:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
