"""Processes drain a queue while one after the other is killed; a server of its own, whose log is read afterwards."""

from __future__ import annotations

import asyncio
import math
import platform
import random
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from app.dev import postgres
from app.stores.migrations import migrate
from tests.fakes.pooler import pooler
from tests.flow.processes import Nursery, Process
from tests.soak import load
from tests.soak.load import Size

SERVICE = Path(__file__).parent / "service"

LOGGED = {
    "log_line_prefix": "%m [%p] %a ",
    "log_lock_waits": "on",
    "deadlock_timeout": "200ms",  # a deadlock that resolves itself sooner is none
    "max_connections": "100",
}

LOOK_SECONDS = 0.25
SLOWEST = 25
"""Jobs a second: a run that takes longer than at that pace, and a minute, is given up."""

ENDED = (0, -signal.SIGTERM)
"""By an order to stop: that of a process which was born this instant has its default meaning."""

LOOK = """
SELECT
    max(extract(epoch FROM clock_timestamp() - lease_until))::float8,
    count(*),
    count(*) > 0 OR EXISTS (SELECT FROM wakebell.jobs WHERE status = 'pending')
FROM wakebell.jobs
WHERE status = 'running'
"""
END_LEASES = """
UPDATE wakebell.jobs SET lease_until = now()
WHERE status = 'running' AND lease_until > now() AND started_at < clock_timestamp() - make_interval(secs => $1)
"""
TOLD = """
SELECT count(*) AS jobs, count(*) FILTER (WHERE serial_key IS NOT NULL) AS serial,
    coalesce(sum(crashes), 0) AS crashes, max(crashes) AS most_crashes, sum(attempts) - count(*) AS more_runs
FROM wakebell.jobs WHERE type IN ('exact', 'repeated')
"""
COMPLAINT = re.compile(r"\b(ERROR|FATAL|PANIC|WARNING): .*")
USUAL = ("connection to client lost", "canceling statement due to user request")
"""A client that was killed, and a job that was cut when its tick's time was up: on a machine that is too busy."""


@dataclass(slots=True)
class Found:
    """What a soak has seen."""

    figures: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        """The figures in Markdown."""
        return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in self.figures.items())])


async def soak(
    size: Size, *, folder: Path, nursery: Nursery, options: Mapping[str, str], pooled: bool = False
) -> Found:
    """One run. `options` are settings of the server; the folder is the caller's to remove."""
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(postgres.start, folder / "postgres", options={**LOGGED, **options})
        stack.push_async_callback(asyncio.to_thread, server.stop)
        await migrate(server.url)
        way = await stack.enter_async_context(pooler(server.url)) if pooled else None
        sql = await asyncpg.connect(server.url)
        stack.push_async_callback(sql.close)
        await sql.execute(load.STAGE)
        run = _Run(size, folder=folder, nursery=nursery, sql=sql, url=way.url if way else server.url)
        found = await run.run()
        found.figures["PostgreSQL"] = f"{await sql.fetchval('SHOW server_version')}{', pgbouncer' if pooled else ''}"
        found.faults += [f"the server's log: {line}" for line in complaints(folder / "postgres" / "log")]
        found.faults += [f"the pooler's log: {line}" for line in (way.complaints if way else [])]
        return found


class _Run:
    def __init__(self, size: Size, *, folder: Path, nursery: Nursery, sql: asyncpg.Connection, url: str) -> None:
        self._size = size
        self._folder = folder
        self._nursery = nursery
        self._sql = sql
        self._url = url
        self._alive: list[Process] = []
        self._logs = 0
        self._kills = 0
        self._ended = math.nan
        self._most_overdue = 0.0
        self._most_running = 0
        self._found = Found()

    async def run(self) -> Found:
        source = load.jobs(self._size)
        await load.put_in(self._sql, source, self._size.jobs // 2)
        begun = time.monotonic()
        self._alive = [self._bear() for _ in range(self._size.processes)]
        try:
            async with self._killing(), asyncio.timeout(60 + self._size.jobs / SLOWEST):
                await self._drained(source)
            await self._stop()
        except TimeoutError:
            self._found.faults.append("it was given up: jobs are left")
        finally:
            for process in self._alive:
                process.clear_away()
        await self._judge(self._ended - begun)
        return self._found

    async def _drained(self, source: Iterator[dict[str, Any]]) -> None:
        """Until nothing is left, of what is put in meanwhile either: that goes the way of the processes."""
        sql = await asyncpg.connect(self._url, statement_cache_size=0)
        putting = asyncio.create_task(load.put_in(sql, source, self._size.jobs))
        while await self._look() or not putting.done():  # noqa: ASYNC110 - it is other processes that do it
            await asyncio.sleep(LOOK_SECONDS)
        self._ended = time.monotonic()
        await putting
        await sql.close()

    def _bear(self) -> Process:
        self._logs += 1
        return self._nursery.bear(
            ["work", "--every", "5", "--poll", "0.1"],
            folder=self._folder,
            log=self._folder / f"log-{self._logs}",
            environ={"DATABASE_URL": self._url, "WAKEBELL_CONFIG": str(SERVICE / "wakebell.toml")},
            die_at=None,
        )

    @asynccontextmanager
    async def _killing(self) -> AsyncIterator[None]:
        killing = asyncio.create_task(self._kill())
        try:
            yield
        finally:
            killing.cancel()
            await asyncio.wait([killing])

    async def _kill(self) -> None:
        while True:
            await asyncio.sleep(self._size.kill_every)
            killed = random.randrange(len(self._alive))
            self._alive[killed].kill()
            await self._alive[killed].ended()
            self._kills += 1
            self._alive[killed] = self._bear()

    async def _look(self) -> bool:
        """Whether there is something left to do."""
        if self._size.lease is not None:
            await self._sql.execute(END_LEASES, self._size.lease)
        overdue, running, left = await self._sql.fetchrow(LOOK)
        self._most_overdue = max(self._most_overdue, overdue or 0.0)
        self._most_running = max(self._most_running, running)
        return bool(left)

    async def _stop(self) -> None:
        for process in self._alive:
            process.term()
        ended = [await process.ended() for process in self._alive]
        self._found.faults += [f"a process ended with status {status}" for status in ended if status not in ENDED]

    async def _judge(self, seconds: float) -> None:
        told = await self._sql.fetchrow(TOLD)
        ticks = await self._sql.fetchval("SELECT count(*) FROM wakebell.ticks")
        self._found.figures |= {
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "jobs": f"{told['jobs']:,}, {told['serial']:,} of them serial in {self._size.keys:,} keys",
            "processes": f"{self._size.processes}, one killed every {self._size.kill_every:g} s: {self._kills} in all",
            "took": f"{seconds:.0f} s, {told['jobs'] / seconds:,.0f} jobs/s, {ticks:,} ticks",
            "runs whose process died": f"{told['crashes']:,}, at most {told['most_crashes']} of one job",
            "runs beyond one a job": f"{told['more_runs']:,}",
            "at most leased at once": f"{self._most_running:,}",
            "longest past its lease": f"{self._most_overdue:.1f} s",
            "waits for a lock over 200 ms": f"{self._lock_waits()}",
        }
        self._found.faults += await load.wrongs(self._sql)
        if told["jobs"] != self._size.jobs:
            self._found.faults.append(f"{told['jobs']} jobs, not {self._size.jobs}")
        if self._most_overdue > self._size.overdue:
            self._found.faults.append(f"a job stayed `running` {self._most_overdue:.1f} s past its lease")
        self._found.faults += sorted({fault for log in self._folder.glob("log-*") for fault in said(log)})

    def _lock_waits(self) -> int:
        return (self._folder / "postgres" / "log").read_text("utf-8", "replace").count("still waiting for")


def complaints(log: Path) -> list[str]:
    """What the server has logged as more than an event, each kind once: a deadlock among it."""
    found = [match[0] for line in log.read_text("utf-8", "replace").splitlines() if (match := COMPLAINT.search(line))]
    found = [line for line in found if not any(usual in line for usual in USUAL)]
    return sorted({f"{line} ({found.count(line)}x)" for line in found})


def said(log: Path) -> list[str]:
    """What a process of ours has logged as an error."""
    lines = log.read_text("utf-8", "replace").splitlines()
    return [f"a process: {line[:400]}" for line in lines if '"level": "error"' in line.lower() or "Traceback" in line]
