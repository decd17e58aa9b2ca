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
from app.domain.schedules import Come
from app.domain.tally import instant
from app.stores.payloads import payload_text
from app.stores.schedules import Move
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from pydantic import BaseModel

    from app.context import Context
    from app.domain.schedules import Known, Schedule
    from app.stores.looks import Look

log = logging.getLogger(__name__)

SLOT = "slot"

BODY = "body"
"""Of a call."""

SHARE = 0.4
"""Of a tick's budget, in which slots are computed; what is left is for the jobs."""

PORTION = timedelta(seconds=0.5)
"""Of computing, before what it has found is saved; and at most so many schedules, which are one statement."""

MOST_AT_ONCE = 200


async def plan(ctx: Context, look: Look) -> int:
    """Queue the jobs whose slots have come, and keep when the next ones are. Returns how many schedules it has moved.

    Not how many jobs: where a next slot is another one, the tick is to look once more.

    What each schedule is to do is decided between two statements, without a lock: the second one does nothing for a
    schedule that another tick has moved meanwhile. It is decided in a thread, since of a thousand schedules that slept
    for weeks it takes a while, and saved in portions: what time is not left for goes on in the next tick.
    """
    if not look.schedulable:
        return 0
    now, known = await ctx.stores.schedules.read()
    planning = _Planning(ctx, known, now)
    moved = 0
    while not planning.over:
        if moves := await in_thread(planning.portion):
            moved += await _save(ctx, moves)
        if ctx.deadline.elapsed >= SHARE * ctx.deadline.budget or ctx.service.stopping.requested:
            break
    if planning.left:
        log.warning("schedules were left for the next tick", extra={"count": planning.left})
        ctx.tally.note(f"the next tick goes on with {_counted(planning.left, 'schedule')}, for time was up; ring again")
    return moved


async def _save(ctx: Context, moves: list[Move]) -> int:
    """Move these, and tell of it. Returns how many were moved on."""
    moved = await ctx.stores.schedules.move(moves)
    ctx.tally.add("schedules.fired", moved.fired)
    for name, reason in moved.refused.items():
        log.error("schedule was refused", extra={"schedule": name, "reason": reason})
        ctx.tally.fail(f"schedule {name} cannot queue its job; the log says why")
    for move in moves:
        if move.missed and move.name in moved.names:
            log.warning("slots were missed", extra={"schedule": move.name, "count": move.missed})
            missed = _counted(move.missed, "slot", more=move.uncounted)
            ctx.tally.note(f"schedule {move.name} has missed {missed}, for no tick came in time")
        if move.objects and move.name in moved.names:
            log.warning("schedule was left to a later process", extra={"schedule": move.name})
            ctx.tally.note(
                f"schedule {move.name} goes by the other line of a process that was started later; if that is not "
                "meant, restart the one that is to be right"
            )
    return sum(1 for move in moves if move.name in moved.names and not move.objects)


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

        self._unheard = schedules.unheard(ctx.settings.tick.expected_every)
        came = sorted((known.next_at, name) for name, known in self._own() if known.next_at and self._is_due(known))
        self._of_each = {name: at for at, name in came if self._configured[name].catch_up == "all"}
        self._come = [(at, name) for at, name in came if name not in self._of_each]
        self._moves = self._decide()

        self.left = len(self._come)
        """Schedules whose slots have come, and are not computed yet."""

        self.over = False
        """All is decided."""

    def portion(self) -> list[Move]:
        """What is decided within a moment. Goes on where it ended; in one thread at a time."""
        began = time.monotonic()
        moves: list[Move] = []
        for move in self._moves:
            moves.append(move)
            if len(moves) >= MOST_AT_ONCE or time.monotonic() - began >= PORTION.total_seconds():
                return moves
        self.over = True
        return moves

    def _decide(self) -> Iterator[Move]:
        """First what is decided but once, then what has come, the oldest first: each tick gets further."""
        yield from (self._as_it_is(known, removed=True) for name, known in self._known.items() if self._gone(name))
        yield from self._alone_each(list(self._configured), self._stands)
        yield from self._passed()

    def _own(self) -> Iterator[tuple[str, Known]]:
        """Those that go on by the timing of this process."""
        for name, schedule in self._configured.items():
            known = self._known.get(name)
            if known is not None and schedules.goes_on(schedule, known, now=self._now, started=self._started):
                yield name, known

    def _is_due(self, known: Known) -> bool:
        return known.next_at is not None and known.next_at <= self._now

    def _stands(self, name: str) -> Move | None:
        """What becomes of it, beside its slots."""
        schedule, known = self._configured[name], self._known.get(name)
        if known is None:
            return self._begins(schedule, None)
        if schedules.goes_on(schedule, known, now=self._now, started=self._started):
            is_claimed = known.removed_at is not None or known.objected_at is not None
            return self._as_it_is(known) if is_claimed and not self._is_due(known) else None
        if known.fingerprint == schedule.timing.fingerprint or schedules.may_take(
            known, now=self._now, started=self._started, unheard=self._unheard
        ):
            return self._begins(schedule, known)
        return self._as_it_is(known, objects=True) if known.objected_at is None else None

    def _passed(self) -> Iterator[Move]:
        """Past the slots that have come."""
        fired = schedules.oldest({name: self._slots(name) for name in self._of_each}, self._of_each)

        def each(name: str) -> Move:
            known = self._known[name]
            return self._past(known, Come(after=known.last_slot or known.anchor_at, fire=fired[name]))

        yield from self._alone_each(fired, each)
        counting = sum(1 for _, name in self._come if self._configured[name].catch_up == "none")
        most = schedules.most_counted(counting)

        def newest(name: str) -> Move:
            self.left -= 1
            schedule, known = self._configured[name], self._known[name]
            return self._past(known, schedules.come(schedule, known, now=self._now, most_counted=most))

        yield from self._alone_each([name for _, name in self._come], newest)

    def _slots(self, name: str) -> Iterator[datetime]:
        with self._alone(name):
            yield from schedules.due(self._configured[name], self._known[name], now=self._now)

    def _past(self, known: Known, come: Come) -> Move:
        schedule = self._configured[known.name]
        there = schedules.past(schedule, known, come)
        runnable = self._ctx.service.handlers.get(schedule.job)
        model = None if runnable is None else runnable.module.Payload
        return Move(
            name=known.name,
            revision=known.revision,
            fingerprint=known.fingerprint,
            anchor_at=known.anchor_at,
            next_at=there.next_at,
            last_slot=there.last_slot,
            jobs={slot: _job(schedule, slot, model) for slot in come.fire},
            missed=come.missed,
            missed_slot=come.missed_slot,
            uncounted=come.uncounted,
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
            configured_at=self._started,
        )

    def _gone(self, name: str) -> bool:
        return name not in self._configured and self._known[name].removed_at is None

    def _as_it_is(self, known: Known, *, removed: bool = False, objects: bool = False) -> Move:
        return Move(
            name=known.name,
            revision=known.revision,
            fingerprint=known.fingerprint,
            anchor_at=known.anchor_at,
            next_at=known.next_at,
            last_slot=known.last_slot,
            removed=removed,
            objects=objects,
        )

    def _alone_each(self, names: Iterable[str], decide: Callable[[str], Move | None]) -> Iterator[Move]:
        for name in names:
            move = None
            with self._alone(name):
                move = decide(name)
            if move is not None:
                yield move

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


def _counted(count: int, what: str, *, more: bool = False) -> str:
    return f"a {what}" if count == 1 and not more else f"{count:,}{'+' if more else ''} {what}s"
