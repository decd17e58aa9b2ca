"""`wakebell work`: for hosts that never sleep."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from app.dev import postgres
from app.stores.migrations import migrate
from tests.fakes.proxy import Proxy
from tests.flow.processes import Process
from tests.flow.service import until
from tests.flow.stage import Stage

GREET = """
import asyncio
from pathlib import Path
from pydantic import BaseModel

class Payload(BaseModel):
    number: int
    seconds: float = 0

async def handle(payload, ctx):
    await asyncio.sleep(payload.seconds)
    with Path("done").open("a") as done:
        done.write(f"{payload.number}\\n")
"""
FILL = "SELECT wakebell.enqueue('greet', jsonb_build_object('number', n)) FROM generate_series($1::int, $2::int) AS n"
COUNTS = "SELECT status, count(*) AS jobs FROM wakebell.jobs WHERE type = 'greet' GROUP BY status"


def working(stage: Stage, **environ: str) -> Process:
    """A worker that ticks by its schedule once, at its start."""
    stage.handler("greet", GREET)
    return stage.bear("work", "--every", "86400", "--poll", "0.1", **environ)


async def counts(sql: asyncpg.Connection) -> dict[str, int]:
    return {row["status"]: row["jobs"] for row in await sql.fetch(COUNTS)}


async def backends(stage: Stage) -> list[int]:
    """PostgreSQL's processes that serve the worker."""
    found = await stage.sql.fetch(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'wakebell' AND datname = current_database()"
    )
    return [row["pid"] for row in found]


async def until_done(stage: Stage, number: int, sql: asyncpg.Connection | None = None) -> None:
    async def all_done() -> bool:
        return await counts(sql or stage.sql) == {"done": number}

    await until(all_done, told=f"{number} jobs are done")


async def until_idle(stage: Stage) -> None:
    """Once the tick of its start is over."""
    over = "SELECT count(*) = 1 FROM wakebell.ticks WHERE finished_at IS NOT NULL"
    await until(lambda: stage.sql.fetchval(over), told="a tick is over")


@pytest.fixture
async def way(stage: Stage) -> AsyncIterator[Proxy]:
    """The worker's way to the database."""
    async with Proxy(stage.database_url) as proxy:
        yield proxy


async def test_jobs_that_come_while_it_works_are_done_without_a_ring(stage: Stage):
    worker = working(stage)
    await until_idle(stage)

    for number in range(3):
        await stage.enqueue("greet", f'{{"number": {number}}}')
        await until_done(stage, number + 1)

    assert (stage.folder / "done").read_text() == "0\n1\n2\n"
    triggers = await stage.sql.fetch("SELECT DISTINCT trigger FROM wakebell.ticks")
    assert [row["trigger"] for row in triggers] == ["work"]
    assert worker.alive


async def test_idle_it_neither_ticks_nor_reconnects(stage: Stage, way: Proxy):
    working(stage, DATABASE_URL=way.url)
    await until_idle(stage)
    connections = way.connections
    pids = await backends(stage)
    looks = set()

    async def has_looked() -> bool:
        looks.add(await stage.sql.fetchval("SELECT max(query_start) FROM pg_stat_activity WHERE pid = ANY ($1)", pids))
        return len(looks) > 5

    await until(has_looked, told="it has looked for work five times")

    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks") == 1
    assert way.connections == connections


async def test_more_than_one_tick_may_run_is_done_tick_by_tick(stage: Stage):
    stage.more = "[tick]\nmax_jobs = 20\n"
    await stage.sql.execute(FILL.replace("$1::int", "1").replace("$2::int", "90"))

    working(stage)

    await until_done(stage, 90)
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks") >= 5


async def test_sources_are_fetched_and_told_on_its_own_schedule(stage: Stage):
    stage.feeds.add("jobs", "Cook")
    stage.bear("work", "--every", "1", "--poll", "0.1")
    await until_idle(stage)
    stage.feeds.feeds["jobs"].add("Driver")
    await stage.make_due()

    await until(lambda: stage.line.count("Driver") == {"Driver": 1}, told="the news is told")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_told_to_stop_while_idle_it_ends_with_status_0(stage: Stage, number: int):
    worker = working(stage)
    await until_idle(stage)

    worker.send(number)

    assert await worker.ended() == 0, worker.log
    await stage.until_disconnected()
    assert "Traceback" not in worker.log


async def test_told_to_stop_amid_a_tick_it_ends_what_runs_and_starts_no_more(stage: Stage):
    worker = working(stage)
    await until_idle(stage)
    for number in range(30):
        await stage.enqueue("greet", f'{{"number": {number}, "seconds": 1}}')

    async def some_done() -> bool:
        return (await counts(stage.sql)).get("done", 0) > 0

    await until(some_done, told="a job is done")
    worker.term()

    assert await worker.ended() == 0, worker.log
    after = await counts(stage.sql)
    assert after == {"done": after["done"], "pending": 30 - after["done"]}
    assert len((stage.folder / "done").read_text().split()) == after["done"]
    assert await stage.sql.fetchval("SELECT max(attempts) FROM wakebell.jobs WHERE status = 'pending'") == 0
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks WHERE finished_at IS NULL") == 0


@pytest.mark.parametrize("state", ["closed", "silent"])
async def test_told_to_stop_while_the_database_is_away_it_ends_at_once(stage: Stage, way: Proxy, state: str):
    if state == "silent":
        way.state = "silent"
    else:
        way.close()
    worker = working(stage, DATABASE_URL=way.url)
    await until(lambda: way.connections, told="it has asked")

    worker.term()

    assert await worker.ended() == 0, worker.log


async def test_a_database_that_falls_silent_does_not_keep_it_from_ending(stage: Stage):
    worker = working(stage)
    await until_idle(stage)
    pids = await backends(stage)
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        worker.term()

        assert await worker.ended() == 0, worker.log
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def test_a_database_that_was_away_is_told_once_and_worked_with_again(stage: Stage, way: Proxy):
    worker = working(stage, DATABASE_URL=way.url)
    await until_idle(stage)

    way.close()
    await until(lambda: "database cannot be used" in worker.log, told="it has noticed")
    tried = way.connections
    await until(lambda: way.connections > tried + 4, told="it has tried again")
    await stage.enqueue("greet", '{"number": 1}')
    way.state = "open"

    await until_done(stage, 1)
    assert worker.log.count("database cannot be used") == 1
    await until(lambda: worker.log.count("database can be used again") == 1, told="it says that it works again")
    assert "Traceback" not in worker.log


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """For a server of the test's own, which no other test minds being stopped."""
    folder = Path(tempfile.mkdtemp(prefix="wakebell-work-"))
    folder.chmod(0o755)  # as root, PostgreSQL runs as another user
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def test_a_database_that_is_restarted_is_found_again(stage: Stage, own_folder: Path):
    options = {"fsync": "off", "synchronous_commit": "off"}
    server = await asyncio.to_thread(postgres.start, own_folder / "postgres", options=options)
    try:
        await migrate(server.url)
        worker = working(stage, DATABASE_URL=server.url)
        sql = await asyncpg.connect(server.url)
        await sql.execute(FILL.replace("$1::int", "1").replace("$2::int", "5"))
        await until_done(stage, 5, sql)
        await sql.close()

        await asyncio.to_thread(server.stop)
        server = await asyncio.to_thread(postgres.start, own_folder / "postgres", options=options)

        sql = await asyncpg.connect(server.url)
        await sql.execute(FILL.replace("$1::int", "6").replace("$2::int", "10"))
        await until_done(stage, 10, sql)
        await sql.close()
        worker.term()
        assert await worker.ended() == 0, worker.log
    finally:
        await asyncio.to_thread(server.stop)

    assert sorted(map(int, (stage.folder / "done").read_text().split())) == list(range(1, 11))
    assert "Traceback" not in worker.log


async def test_two_workers_and_ten_rings_never_run_a_job_twice(stage: Stage):
    workers = [working(stage), working(stage)]
    service = await stage.serve()
    fill = FILL.replace("$1::int", "1").replace("$2::int", "400")

    rings = [asyncio.create_task(service.tick()) for _ in range(5)]
    await stage.sql.execute(fill)
    rings += [asyncio.create_task(service.tick()) for _ in range(5)]
    await asyncio.gather(*rings)
    await until_done(stage, 400)

    assert sorted(map(int, (stage.folder / "done").read_text().split())) == list(range(1, 401))
    assert await stage.sql.fetchval("SELECT max(attempts) FROM wakebell.jobs WHERE type = 'greet'") == 1
    for worker in workers:
        worker.term()
        assert await worker.ended() == 0, worker.log


async def test_a_killed_workers_jobs_are_brought_back_by_another(stage: Stage):
    worker = working(stage)
    await until_idle(stage)
    await stage.enqueue("greet", '{"number": 1, "seconds": 5}')

    async def runs() -> bool:
        return await counts(stage.sql) == {"running": 1}

    await until(runs, told="the job runs")
    worker.kill()
    await worker.ended()
    await stage.until_disconnected()
    await stage.end_leases()

    working(stage)

    await until_done(stage, 1)
    assert (stage.folder / "done").read_text() == "1\n"


async def test_a_person_starts_it_by_its_name(stage: Stage):
    stage.handler("greet", GREET)
    worker = stage.command("work")
    await stage.enqueue("greet", '{"number": 1}')
    await until_done(stage, 1)

    worker.term()

    assert await worker.ended() == 0, worker.log


async def test_a_schema_that_comes_later_is_waited_for(stage: Stage):
    await stage.sql.execute("DROP SCHEMA wakebell CASCADE")
    worker = working(stage)
    await until(lambda: "wakebell migrate" in worker.log, told="it says what to do")

    await migrate(stage.database_url)
    await stage.enqueue("greet", '{"number": 1}')

    await until_done(stage, 1)
