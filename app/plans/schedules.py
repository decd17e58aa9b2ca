"""Each schedule whose slot has come queues its job."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app.domain import calls, schedules
from app.domain.jobs import NewJob
from app.domain.tally import instant
from app.stores.payloads import payload_text
from app.stores.schedules import Move

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from pydantic import BaseModel

    from app.context import Context
    from app.domain.schedules import Come, Known, Schedule
    from app.stores.looks import Look

log = logging.getLogger(__name__)

SLOT = "slot"

BODY = "body"
"""Of a call."""


async def plan(ctx: Context, look: Look) -> int:
    """Queue the jobs whose slots have come, and keep when the next ones are. Returns how many schedules it has moved.

    Not how many jobs: where a next slot is another one, the tick is to look once more.

    What each schedule is to do is decided between two statements, without a lock: the second one does nothing for a
    schedule that another tick has moved meanwhile.
    """
    if not look.schedulable:
        return 0
    now, known = await ctx.stores.schedules.read()
    planning = _Planning(ctx, known, now)
    moves = planning.moves()
    if not moves:
        return 0
    moved = await ctx.stores.schedules.move(moves)
    ctx.tally.add("schedules.fired", moved.fired)
    for name, reason in moved.refused.items():
        log.error("schedule was refused", extra={"schedule": name, "reason": reason})
        ctx.tally.fail(f"schedule {name} cannot queue its job; the log says why")
    for move in moves:
        if move.missed and move.name in moved.names:
            log.warning("slots were missed", extra={"schedule": move.name, "count": move.missed})
            ctx.tally.note(f"schedule {move.name} has missed {_count(move.missed)}, for no tick came in time")
    return len(moved.names)


def payload_at(schedule: Schedule, slot: datetime, model: type[BaseModel] | None) -> dict[str, Any]:
    """What the job of a slot is given: the payload, and in it the slot, which is then the same in every try.

    A `slot` that the payload has itself stays. Where the handler's model refuses keys that it does not know, it is left
    out; of a call, whose model does so, it is in the body for the program that is called, if that can have one.
    `model` None: this process does not know the type.
    """
    given = {SLOT: instant(slot)}
    whole: dict[str, Any] = {**given, **schedule.payload}
    forms = [whole, dict(schedule.payload)]
    body = schedule.payload.get(BODY) or {}
    if schedule.job == calls.TYPE and isinstance(body, dict):
        forms.insert(1, {**schedule.payload, BODY: {**given, **body}})
    return next((form for form in forms if model is None or _fits(model, form)), whole)


class _Planning:
    """What is to become of each schedule. One that cannot be told stops none of the others."""

    def __init__(self, ctx: Context, known: Mapping[str, Known], now: datetime) -> None:
        self._ctx = ctx
        self._configured = ctx.settings.schedules
        self._known = known
        self._now = now
        # By the database's clock, in which the age of what this process has read is the same.
        self._started = now - timedelta(seconds=time.monotonic() - ctx.settings.read_at)

    def moves(self) -> list[Move]:
        come: dict[str, Come] = {}
        moves = [self._removed(known) for name, known in self._known.items() if self._gone(name)]
        for name, schedule in self._configured.items():
            known = self._known.get(name)
            with self._alone(name):
                if known is None or not schedules.goes_on(schedule, known, now=self._now, started=self._started):
                    moves.append(self._begins(schedule, known))
                elif known.removed_at is not None or (known.next_at is not None and known.next_at <= self._now):
                    come[name] = schedules.come(schedule, known, now=self._now)
        return [*moves, *self._passed(come)]

    def _passed(self, come: Mapping[str, Come]) -> Iterator[Move]:
        """Past the slots that have come."""
        counts = schedules.share({n: c.fire for n, c in come.items() if self._configured[n].catch_up == "all"})
        for name, slots in come.items():
            with self._alone(name):
                yield self._past(self._configured[name], self._known[name], slots, counts.get(name))

    def _past(self, schedule: Schedule, known: Known, come: Come, most: int | None) -> Move:
        there, fired = schedules.past(schedule, known, come, most=most)
        runnable = self._ctx.service.handlers.get(schedule.job)
        model = None if runnable is None else runnable.module.Payload
        return Move(
            name=known.name,
            revision=known.revision,
            fingerprint=known.fingerprint,
            anchor_at=known.anchor_at,
            next_at=there.next_at,
            last_slot=there.last_slot,
            jobs={slot: _job(schedule, slot, model) for slot in fired},
            missed=come.missed,
            missed_slot=come.missed_slot,
        )

    def _begins(self, schedule: Schedule, known: Known | None) -> Move:
        anchor_at, next_at = schedules.begun(schedule.timing, self._now)
        return Move(
            name=schedule.name,
            revision=known.revision if known else None,
            fingerprint=schedule.timing.fingerprint,
            anchor_at=anchor_at,
            next_at=next_at,
            begins=True,
        )

    def _gone(self, name: str) -> bool:
        return name not in self._configured and self._known[name].removed_at is None

    def _removed(self, known: Known) -> Move:
        return Move(
            name=known.name,
            revision=known.revision,
            fingerprint=known.fingerprint,
            anchor_at=known.anchor_at,
            next_at=known.next_at,
            last_slot=known.last_slot,
            removed=True,
        )

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Whatever the library or a payload raises is this schedule's own."""
        try:
            yield
        except Exception:
            log.exception("schedule crashed", extra={"schedule": name})
            self._ctx.tally.fail(f"schedule {name} crashed; the log has its traceback")


def _job(schedule: Schedule, slot: datetime, model: type[BaseModel] | None) -> NewJob:
    payload = payload_at(schedule, slot, model)
    payload_text(payload)  # here, where what cannot be stored stops this schedule alone
    return NewJob(
        type=schedule.job,
        payload=payload,
        queue=schedule.queue,
        priority=schedule.priority,
        unique_key=f"schedule:{schedule.name}:{instant(slot)}",  # says where it came from
    )


def _fits(model: type[BaseModel], payload: Mapping[str, Any]) -> bool:
    try:
        model.model_validate(dict(payload))
    except ValidationError:
        return False
    return True


def _count(slots: int) -> str:
    return "a slot" if slots == 1 else f"{slots} slots"
