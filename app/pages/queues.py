"""Queues: what is due in each, and a pause for those that are the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import queue_changes
from app.domain.jobs import OWN_PREFIX
from app.muting import span
from app.pages.asking import Away, Shown, Trouble
from app.stores.queues import Pause, QueueChange

if TYPE_CHECKING:
    from app.pages.asking import Asked


async def show(asked: Asked) -> Shown:
    """Those with jobs, and those that are paused or limited; the service's own too, which cannot be changed."""
    found = await asked.stores.queues.all(own=True)
    own = [queue for queue in found if queue.name.startswith(OWN_PREFIX)]
    return Shown(template="queues.html", values={"queues": [one for one in found if one not in own], "own": own})


async def pause(asked: Asked) -> Away:
    """Start nothing of it, for a while or until somebody ends it; with a reason, for whoever finds it so."""
    name = queue_changes.changeable_name(asked.form.get("queue", ""))
    reason = " ".join(asked.form.get("reason", "").split())
    if not 1 <= len(reason) <= queue_changes.REASON_LENGTH:
        raise Trouble(422, "Say in a few words why the queue is paused, for whoever finds it so.")
    given = asked.form.get("for", "")
    made = Pause(until="forever" if given == "forever" else span(given), reason=reason)
    await queue_changes.make(asked.stores.queues, name, QueueChange(pause=made))
    return Away(to="/queues", told="paused")


async def resume(asked: Asked) -> Away:
    """End the pause."""
    name = queue_changes.changeable_name(asked.form.get("queue", ""))
    await queue_changes.make(asked.stores.queues, name, QueueChange(pause="nothing"))
    return Away(to="/queues", told="resumed")
