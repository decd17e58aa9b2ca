"""What people change of a queue, by HTTP or on the command line: a pause with its reason, limits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from app.asked import Instant, Refused, refusal, storable
from app.domain.jobs import OWN_PREFIX
from app.domain.shown import told
from app.stores.queues import Pause, QueueChange, Starts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from app.stores.queues import Forever, Nothing, Queues, StoredQueue

FOREVER = "forever"
NAME_BYTES = 200
REASON_LENGTH = 500
MOST_RUNNING = 10_000
MOST_STARTS = 10_000
MOST_PERIOD = 31_536_000.0
"""A year."""


class _Asked(BaseModel):
    """What is to be otherwise: a field that is left out stays as it is, null takes away."""

    model_config = ConfigDict(extra="forbid", strict=True)

    paused_until: Instant | None = None
    reason: Annotated[str, Field(min_length=1, max_length=REASON_LENGTH), AfterValidator(storable)] | None = None
    max_running: Annotated[int, Field(ge=1, le=MOST_RUNNING)] | None = None
    max_starts: Annotated[int, Field(ge=1, le=MOST_STARTS)] | None = None
    period_seconds: Annotated[float, Field(ge=0.001, le=MOST_PERIOD, allow_inf_nan=False)] | None = None


def read(given: Mapping[str, Any]) -> QueueChange:
    """The change that is asked for, its fields as JSON has them.

    Raises:
        Refused: what of it means nothing, by its field.
    """
    forever = given.get("paused_until") == FOREVER
    try:
        asked = _Asked.model_validate({**given, "paused_until": None} if forever else given)
    except ValidationError as error:
        raise refusal(error) from None
    return QueueChange(
        pause=_pause(asked, "forever" if forever else asked.paused_until),
        max_running=_or_nothing(asked.max_running) if "max_running" in given else None,
        starts=_starts(asked),
    )


def known_name(name: str) -> str:
    """The name, where a queue can be called so.

    Raises:
        Refused: none can.
    """
    try:
        length = len(storable(name).encode())
    except ValueError as error:
        raise Refused(f"the queue's name {error}") from None
    if not 1 <= length <= NAME_BYTES:
        raise Refused(f"the queue's name must be from 1 to {NAME_BYTES} bytes long")
    return name


def changeable_name(name: str) -> str:
    """The name, where it can be that of a queue of the user's.

    Raises:
        Refused: it is one of the service's own, or none can be called so.
    """
    if known_name(name).startswith(OWN_PREFIX):
        raise Refused(
            f'queues named "{OWN_PREFIX}…" are the service\'s own: they can be looked at, not paused or limited; '
            "to silence a source or a recipient, take it out of the configuration"
        )
    return name


async def make(queues: Queues, name: str, change: QueueChange) -> StoredQueue:
    """Change a queue of the user's, and tell how it stands then.

    Raises:
        Refused: the pause would be over already.
    """
    if not await queues.change(name, change):
        raise Refused("paused_until: has passed already; give a later instant, or null to end a pause")
    return await queues.get(name)


def shown(queue: StoredQueue) -> dict[str, Any]:
    """The queue as programs are shown it; `paused_until` may be `forever`."""
    return told(queue)


def _pause(asked: _Asked, until: datetime | Forever | None) -> Pause | Nothing | None:
    if until is not None:
        if asked.reason is None or not asked.reason.strip():
            raise Refused("reason: is missing; say why the queue is paused, for whoever finds it so")
        return Pause(until=until, reason=asked.reason.strip())
    if asked.reason is not None:
        raise Refused("reason: belongs to a pause; give paused_until with it, an instant or forever")
    return "nothing" if "paused_until" in asked.model_fields_set else None


def _starts(asked: _Asked) -> Starts | Nothing | None:
    if (asked.max_starts is None) != (asked.period_seconds is None):
        missing = "period_seconds" if asked.period_seconds is None else "max_starts"
        raise Refused(f"{missing}: is missing; max_starts and period_seconds go together")
    if asked.max_starts is not None and asked.period_seconds is not None:
        return Starts(count=asked.max_starts, period=timedelta(seconds=asked.period_seconds))
    return "nothing" if {"max_starts", "period_seconds"} & asked.model_fields_set else None


def _or_nothing(number: int | None) -> int | Nothing:
    return "nothing" if number is None else number
