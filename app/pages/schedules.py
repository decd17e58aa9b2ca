"""What is queued when, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import scheduled
from app.pages.asking import Shown

if TYPE_CHECKING:
    from app.pages.asking import Asked


async def show(asked: Asked) -> Shown:
    """Every configured schedule in the file's order, with its next three slots."""
    now, known = await asked.stores.schedules.read()
    configured = asked.settings.schedules
    listed = [scheduled.told(schedule, known.get(name), now=now) for name, schedule in configured.items()]
    return Shown(template="schedules.html", values={"schedules": listed})
