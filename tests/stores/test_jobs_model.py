"""The queue against a simple model of it: whatever is done in whatever order, every row is as the model says.

One call at a time: the model says what each of them means. That several at once mean the same is said elsewhere.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import asyncpg
import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.domain.jobs import MAX_CRASHES, Finished, Job, NewJob
from app.stores.database import connect
from app.stores.jobs import Ending, Jobs

T = TypeVar("T")

HOUR = timedelta(hours=1)
LEASES = {"greet": HOUR, "part": HOUR}
LIVE = ("pending", "running")
ROWS = """
SELECT id, type, queue, unique_key, serial_key, status, waiting, attempts, crashes, lease_token AS token,
    jsonb_array_length(failures) AS failures, CASE WHEN status = 'pending' THEN run_after <= now() END AS due
FROM wakebell.jobs
ORDER BY id
"""
NEXT_DOES = "UPDATE wakebell.jobs SET attempts = $2, crashes = $2 WHERE id = $1 AND status = 'pending'"
EXPIRE = "UPDATE wakebell.jobs SET lease_until = now() - interval '1 second' WHERE id = $1 AND status = 'running'"

KEYS = {"unique_key": st.sampled_from([None, "a", "b"]), "serial_key": st.sampled_from([None, "s", "t"])}
LATER = st.sampled_from([None, HOUR])
FOLLOWING = st.lists(st.builds(NewJob, type=st.sampled_from(["greet", "part"]), **KEYS), max_size=2).map(tuple)
NEW = st.builds(  # all in one queue: between several, chance decides who gives first, and no run could be repeated
    NewJob,
    type=st.sampled_from(["greet", "part"]),
    priority=st.sampled_from([0, 100]),
    delay=LATER,
    then=st.one_of(st.just(()), FOLLOWING),
    **KEYS,
)
ENDINGS: list[Ending] = ["done", "cancelled", "failed", "retry", "snooze", "release", "interrupted"]


@dataclass(kw_only=True)
class Row:
    """A job as the model has it."""

    id: int = 0
    type: str
    queue: str
    unique_key: str | None
    serial_key: str | None
    then: tuple[NewJob, ...]
    status: str = "pending"
    waiting: bool = False
    attempts: int = 0
    crashes: int = 0
    token: int | None = None
    failures: int = 0
    due: bool = True
    expired: bool = False

    def told(self) -> dict[str, Any]:
        names = ("id", "type", "queue", "unique_key", "serial_key", "status", "waiting", "attempts", "crashes", "token")
        due = self.due if self.status == "pending" else None
        return {**{name: getattr(self, name) for name in names}, "failures": self.failures, "due": due}

    def failed_once_more(self) -> None:
        self.failures = min(self.failures + 1, 20)


@dataclass
class Model:
    """What the queue is meant to do, without a thought of speed."""

    rows: dict[int, Row] = field(default_factory=dict)
    unnamed: list[Row] = field(default_factory=list)
    """Put in, with an id that only the database knows yet."""

    def all(self) -> list[Row]:
        return [*self.rows.values(), *self.unnamed]

    def twin(self, type_: str, unique_key: str | None) -> Row | None:
        found = [r for r in self.all() if r.type == type_ and r.unique_key == unique_key and r.status in LIVE]
        return found[0] if found and unique_key is not None else None

    def head(self, serial_key: str | None) -> Row | None:
        found = [r for r in self.all() if r.serial_key == serial_key and r.status in LIVE and not r.waiting]
        return found[0] if found and serial_key is not None else None

    def add(self, new: NewJob) -> Row | None:
        """The new row; None when there is a twin."""
        if self.twin(new.type, new.unique_key) is not None:
            return None
        row = Row(
            type=new.type,
            queue=new.queue,
            unique_key=new.unique_key,
            serial_key=new.serial_key,
            then=new.then,
            due=new.delay is None,
            waiting=self.head(new.serial_key) is not None,
        )
        self.unnamed.append(row)
        return row

    def startable(self) -> list[Row]:
        return [r for r in self.rows.values() if r.status == "pending" and not r.waiting and r.due]

    def holds(self, job: Job) -> bool:
        row = self.rows[job.id]
        return row.status == "running" and row.token == job.token

    def claim(self, job: Job) -> None:
        row = self.rows[job.id]
        row.status, row.token, row.expired = "running", job.token, False
        row.attempts += 1

    def leave(self, row: Row, status: str) -> None:
        """It runs no longer; the next of its line may start when it has ended."""
        row.status, row.token = status, None
        if status != "pending":
            self.promote(row)

    def promote(self, ended: Row) -> None:
        line = [r for r in self.all() if r.serial_key == ended.serial_key and r.status == "pending" and r.waiting]
        if line and ended.serial_key is not None and self.head(ended.serial_key) is None:
            min(line, key=lambda r: r.id or math.inf).waiting = False  # one without an id yet was put in last

    def finish(self, done: Sequence[Job]) -> None:
        held = sorted((self.rows[job.id] for job in done), key=lambda r: r.id)
        freed = {(r.type, r.unique_key) for r in held if r.unique_key is not None}
        following = [new for r in held for new in r.then]
        for new in following:
            if (new.type, new.unique_key) not in freed:
                self.add(new)
        for row in held:
            self.leave(row, "done")
        for new in following:
            if (new.type, new.unique_key) in freed:
                self.add(new)

    def end(self, job: Job, ending: Ending, *, later: bool) -> None:
        row = self.rows[job.id]
        if ending == "done":
            self.finish([job])
            return
        if ending in {"snooze", "release"}:
            row.attempts -= 1
        if ending == "interrupted":
            row.crashes += 1
        given_up = row.crashes >= MAX_CRASHES
        if ending in {"retry", "failed"} or (ending == "interrupted" and given_up):
            row.failed_once_more()
        if ending in {"retry", "snooze"}:
            row.due = not later
        self.leave(row, ending if ending in {"cancelled", "failed"} else "failed" if given_up else "pending")

    def rescue(self) -> tuple[int, int]:
        pending = failed = 0
        for row in [r for r in self.rows.values() if r.status == "running" and r.expired]:
            row.crashes += 1
            row.failed_once_more()
            given_up = row.crashes >= MAX_CRASHES
            pending, failed = pending + (not given_up), failed + given_up
            self.leave(row, "failed" if given_up else "pending")
        return pending, failed

    def cancel(self, row: Row) -> str:
        if row.status == "pending":
            led, row.waiting = not row.waiting, False
            row.status = "cancelled"
            if led:
                self.promote(row)
        return row.status

    def retry(self, row: Row) -> str:
        if row.status == "pending":
            row.due = True
        elif row.status in {"failed", "cancelled"}:
            if self.twin(row.type, row.unique_key) is not None:
                return "taken"
            row.waiting = self.head(row.serial_key) is not None
            row.status, row.attempts, row.crashes, row.due = "pending", 0, 0, True
        return row.status

    def retry_all(self, type_: str, limit: int) -> int:
        failed = [r for r in self.rows.values() if r.type == type_ and r.status == "failed"]
        free = sorted((r for r in failed if self.twin(r.type, r.unique_key) is None), key=lambda r: r.id)
        chosen = sorted(free[:limit], key=lambda r: (r.unique_key is None, r.unique_key or "", r.id))
        return [self.retry(row) for row in chosen].count("pending")


EXAMPLES = 50

PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.generate, hypothesis.Phase.shrink)
"""Without explaining, which takes minutes on a database."""


class Machine(RuleBasedStateMachine):
    """Drives the store and the model alike."""

    runner: asyncio.Runner
    jobs: Jobs
    sql: asyncpg.Connection

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.runs: list[Job] = []  # of any worker, those that lost their lease among them
        self.tokens = itertools.count(1)
        self.do(self.sql.execute("TRUNCATE wakebell.jobs RESTART IDENTITY"))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @invariant()
    def every_row_is_as_the_model_says(self) -> None:
        stored = [dict(row) for row in self.do(self.sql.fetch(ROWS))]
        strange = [row["id"] for row in stored if row["id"] not in self.model.rows]
        for job_id, row in zip(strange, self.model.unnamed, strict=True):
            row.id = job_id
            self.model.rows[job_id] = row
        self.model.unnamed.clear()
        assert stored == [row.told() for _, row in sorted(self.model.rows.items())]

    @rule(new=NEW, together=st.booleans())
    def enqueue(self, new: NewJob, together: bool) -> None:  # noqa: FBT001 - Hypothesis fills it in by name
        twin = self.model.twin(new.type, new.unique_key)
        if together or new.delay:
            [added] = self.do(self.jobs.enqueue_many([new]))
        else:
            names = ("type", "queue", "priority", "unique_key", "serial_key", "then")
            added = self.do(self.jobs.enqueue(**{name: getattr(new, name) for name in names}))

        assert added.created == (self.model.add(new) is not None)
        assert twin is None or added.id == twin.id

    @rule(new=st.lists(NEW, max_size=6))
    def enqueue_many(self, new: list[NewJob]) -> None:
        added = self.do(self.jobs.enqueue_many(new))

        assert [one.created for one in added] == [self.model.add(one) is not None for one in new]

    @rule(type_=st.sampled_from(["greet", "part"]), key=st.sampled_from(["a", "b"]), later=st.booleans())
    def enqueue_replacing(self, type_: str, key: str, later: bool) -> None:  # noqa: FBT001
        twin = self.model.twin(type_, key)
        at = datetime.now(UTC) + (HOUR if later else -HOUR)
        added = self.do(self.jobs.enqueue(type=type_, unique_key=key, run_after=at, replace=True))

        if twin is None:
            self.model.add(NewJob(type=type_, unique_key=key, delay=HOUR if later else None))
        elif twin.status == "pending":
            twin.due = not later
        assert added.created == (twin is None)
        assert added.replaced == (twin is not None and twin.status == "pending")

    @rule(limit=st.integers(1, 4))
    def claim(self, limit: int) -> None:
        self.claimed(self.do(self.jobs.claim(own=False, limit=limit, leases=LEASES, token=next(self.tokens))), limit)

    def claimed(self, claimed: list[Job], limit: int) -> None:
        startable = self.model.startable()
        assert {job.id for job in claimed} <= {row.id for row in startable}
        assert len(claimed) == min(limit, len(startable)) == len({job.id for job in claimed})
        for job in claimed:
            self.model.claim(job)
            row = self.model.rows[job.id]
            assert (job.attempt, job.crashes, job.queue) == (row.attempts, row.crashes, row.queue)
        self.runs += claimed

    @rule(data=st.data(), limit=st.integers(0, 3))
    def turn(self, data: st.DataObject, limit: int) -> None:
        done = (
            data.draw(st.lists(st.sampled_from(self.runs), max_size=5, unique_by=lambda job: job.id))
            if self.runs
            else []
        )
        finished = [Finished(job=job) for job in done]
        held = [job for job in done if self.model.holds(job)]
        self.model.finish(held)
        new = len(self.model.unnamed)
        turned = self.do(self.jobs.turn(done=finished, own=False, limit=limit, leases=LEASES, token=next(self.tokens)))

        assert turned.lost == [job.id for job in done if job not in held]
        if new:  # what follows has ids now, and may have been claimed at once
            ids = [row["id"] for row in self.do(self.sql.fetch("SELECT id FROM wakebell.jobs ORDER BY id"))]
            for job_id, row in zip([i for i in ids if i not in self.model.rows], self.model.unnamed, strict=True):
                row.id = job_id
                self.model.rows[job_id] = row
            self.model.unnamed.clear()
        self.claimed(turned.claimed, limit)

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), ending=st.sampled_from(ENDINGS), delay=LATER)
    def finish(self, data: st.DataObject, ending: Ending, delay: timedelta | None) -> None:
        job = data.draw(st.sampled_from(self.runs))
        held = self.model.holds(job)
        if held:
            self.model.end(job, ending, later=delay is not None)

        assert self.do(self.jobs.finish(job, ending, delay=delay, error="no")) == held

    @precondition(lambda self: any(row.status == "running" for row in self.model.rows.values()))
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from([row for row in self.model.rows.values() if row.status == "running"]))
        row.expired = True
        self.do(self.sql.execute(EXPIRE, row.id))

    @precondition(lambda self: any(row.status == "pending" for row in self.model.rows.values()))
    @rule(data=st.data())
    def have_crashed_often(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from([row for row in self.model.rows.values() if row.status == "pending"]))
        row.attempts = row.crashes = MAX_CRASHES - 1
        self.do(self.sql.execute(NEXT_DOES, row.id, MAX_CRASHES - 1))

    @rule()
    def rescue(self) -> None:
        rescued = self.do(self.jobs.rescue())

        assert (rescued.pending, rescued.failed) == self.model.rescue()
        assert rescued.promoted == 0, "a line has lost its head"

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(list(self.model.rows.values())))

        assert self.do(self.jobs.cancel(row.id)) == self.model.cancel(row)

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(list(self.model.rows.values())))

        assert self.do(self.jobs.retry(row.id)) == self.model.retry(row)

    @rule(type_=st.sampled_from(["greet", "part"]), limit=st.integers(1, 3))
    def retry_all(self, type_: str, limit: int) -> None:
        assert self.do(self.jobs.retry_all(type_, limit=limit)) == self.model.retry_all(type_, limit)

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data(), later=st.booleans())
    def reschedule(self, data: st.DataObject, later: bool) -> None:  # noqa: FBT001
        row = data.draw(st.sampled_from(list(self.model.rows.values())))
        at = datetime.now(UTC) + (HOUR if later else -HOUR)

        assert self.do(self.jobs.reschedule(row.id, at)) == row.status
        if row.status == "pending":
            row.due = not later


@pytest.mark.timeout(600)  # it takes seconds, but when it fails Hypothesis looks for minutes for the shortest way there
def test_the_queue_does_what_its_model_does(database_url: str):
    database = connect(database_url)
    with asyncio.Runner() as own:

        class Here(Machine):
            runner = own
            jobs = Jobs(database)
            sql = own.run(opened(database_url))

        try:
            settings = hypothesis.settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None, phases=PHASES)
            run_state_machine_as_test(Here, settings=settings)
        finally:
            own.run(Here.sql.close())
            own.run(database.dispose())


async def opened(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(url)
