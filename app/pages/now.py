"""The first page: how it is, what is next, what is wrong and what was."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app import muting
from app.domain.bookings import zone_of
from app.domain.health import judge
from app.pages import charts, words
from app.pages.asking import Away, Shown, Trouble

if TYPE_CHECKING:
    from app.pages.asking import Asked
    from app.stores.history import PastTick

MOST_ALERTS = 50
MOST_FAILED = 5
MOST_TICKS = 12


async def show(asked: Asked) -> Shown:
    """Seven statements, each over an index."""
    stores, settings = asked.stores, asked.settings
    facts = await stores.health.read(list(settings.sources))
    health = judge(facts, expected_every=settings.tick.expected_every)
    ticks = await stores.history.ticks(most=MOST_TICKS)
    hours = await stores.history.hours(hours=charts.HOURS)
    zone = zone_of(settings.service.timezone)
    chart = charts.of_hours(hours, now=asked.now, zone=zone)
    ended = next((tick for tick in ticks if tick.status is not None), None)
    next_at = ended.summary.get("next_due_at") if ended else None
    return Shown(
        template="now.html",
        values={
            "headline": words.HEADLINES[health.status],
            "health": health.status,
            "awake_since": asked.now - timedelta(seconds=time.monotonic() - settings.read_at),
            "faults": list(words.faults(health, facts)),
            "facts": facts,
            "last": words.late(facts, settings.tick.expected_every),
            "next_at": next_at,
            "next_words": words.due(next_at, now=asked.now),
            "remaining": _counted(ended, "jobs", "remaining"),
            "ticks": [_told(tick) for tick in ticks],
            "hours": [hour for hour in hours if hour.began_at > asked.now - timedelta(hours=charts.HOURS)][::-1],
            "chart": chart,
            "alerts": await stores.incidents.list_alerts(limit=MOST_ALERTS, opened=True),
            "failed": await stores.listings.list_jobs(limit=MOST_FAILED, status="failed"),
            "gauges": await stores.history.channels(list(settings.channels)),
        },
    )


async def acknowledge(asked: Asked) -> Away:
    """Somebody takes an alert on."""
    await muting.acknowledge(asked.stores.incidents, asked.id)
    return Away(to="/", told="acknowledged")


async def mute(asked: Asked) -> Away:
    """Tell nothing of it for a while."""
    alert = await asked.stores.incidents.find(asked.id) if asked.id else None
    if alert is None:
        raise Trouble(404, "There is no such alert; one that is over is deleted after a while.")
    _, until = muting.read({"for": asked.form.get("for") or None}, named=True)
    await muting.mute(asked.stores.incidents, alert.key, until)
    return Away(to="/", told="muted")


def _told(tick: PastTick) -> dict[str, Any]:
    """A tick in the words of its summary; one that never ended runs still or was killed."""
    return {
        "at": tick.started_at,
        "trigger": tick.trigger,
        "status": tick.status or "running",
        "seconds": tick.summary.get("duration_ms", 0) / 1000,
        "news": _counted(tick, "sources", "new_items"),
        "sent": _counted(tick, "messages", "sent"),
        "jobs": _counted(tick, "jobs", "done"),
        "errors": [str(error) for error in tick.summary.get("errors", ())],
    }


def _counted(tick: PastTick | None, section: str, name: str) -> int:
    if tick is None:
        return 0
    return int(tick.summary.get(section, {}).get(name, 0))
