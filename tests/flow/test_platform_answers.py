"""What an answer says is so when it arrives, and whoever rings late, twice or too early gets one."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.fakes.proxy import Proxy
from tests.flow.people import CHAT, ECHO, delivery
from tests.flow.service import BEARER, SECRET, Service, free_port, until
from tests.flow.stage import Stage

API_TOKEN = "the-api-token-of-the-tests-thirty"
AUTHORIZED = {"Authorization": f"Bearer {API_TOKEN}"}

EVERYTHING = """
[schedules.hourly]
cron = "@every 1h"
job = "greet"

[reminders.day_before]
before = "24h"
"""
GREET = """
    from pydantic import BaseModel
    from sqlalchemy import text
    from app.domain.errors import PermanentFailure

    class Payload(BaseModel):
        way: str = "plain"

    async def handle(payload, ctx):
        if payload.way == "fails":
            raise PermanentFailure("not this one")
        if payload.way == "transaction":
            async with ctx.transaction() as db:
                await db.execute(text("INSERT INTO effects VALUES (1)"))
"""
MAKE_READY = """
CREATE TABLE effects (number integer);
INSERT INTO wakebell.bookings (ref, title, starts_at, timezone, recipient)
VALUES ('b', 'Haircut', now() + interval '12 hours', 'UTC', 'me');
UPDATE wakebell.schedules SET anchor_at = anchor_at - interval '61 minutes', next_at = next_at - interval '61 minutes';
SELECT wakebell.enqueue('greet', jsonb_build_object('way', way))
FROM (VALUES ('plain'), ('fails'), ('transaction')) AS given (way)
"""
SENT = "SELECT count(*) FROM wakebell.messages WHERE status = 'sent' AND kind <> 'note'"
UNDER_WAY = """
SELECT (SELECT count(*) FROM wakebell.jobs WHERE status = 'running')
     + (SELECT count(*) FROM wakebell.messages WHERE status NOT IN ('sent', 'failed'))
     + (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend' AND state <> 'idle')
"""


async def stopped_at_its_first_byte(
    service: Service, method: str, path: str, look: Callable[[], Awaitable[Any]], **request: Any
) -> tuple[int, Any, Any]:
    """The status and body of an answer, and what a look finds while the process stands still for it."""
    body: bytes = request.get("content", b"")
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in request["headers"].items()]

    def ask() -> tuple[socket.socket, bytes]:
        connection = socket.create_connection(("127.0.0.1", service.port), timeout=60)
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        first = connection.recv(1)
        service.process.suspend()
        return connection, first

    connection, first = await asyncio.to_thread(ask)
    await service.process.stands_still()
    found = await look()
    service.process.resume()
    with connection:
        rest = await asyncio.to_thread(lambda: b"".join(iter(lambda: connection.recv(65536), b"")))
    head, _, told = (first + rest).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(told), found


async def test_when_the_first_byte_of_an_answer_arrives_all_that_it_says_is_committed(stage: Stage):
    stage.telling = CHAT
    stage.more = EVERYTHING
    stage.handler("echo", ECHO)
    stage.handler("greet", GREET)
    feed = stage.feeds.add("jobs", "Old")
    service = await stage.serve(API_TOKEN=API_TOKEN)
    await service.tick()
    await stage.sql.execute(MAKE_READY)
    feed.add("Cook")
    await stage.make_due()

    async def after_the_tick() -> dict[str, Any]:
        row = await stage.sql.fetchrow("SELECT status, summary FROM wakebell.ticks ORDER BY id DESC LIMIT 1")
        jobs = await stage.sql.fetch("SELECT status, count(*) FROM wakebell.jobs WHERE type = 'greet' GROUP BY 1")
        return {
            "kept": json.loads(row["summary"]),
            "jobs": dict(jobs),
            "sent": await stage.sql.fetchval(SENT),
            "effects": await stage.sql.fetchval("SELECT count(*) FROM effects"),
            "under way": await stage.sql.fetchval(UNDER_WAY),
        }

    status, summary, found = await stopped_at_its_first_byte(
        service, "POST", "/api/cron/tick", after_the_tick, headers=BEARER
    )
    assert (status, found["kept"], found["under way"]) == (200, summary, 0)
    assert (summary["jobs"]["done"], summary["jobs"]["failed"]) == (3, 1)
    assert (found["jobs"], found["effects"]) == ({"done": 3, "failed": 1}, 1)
    assert found["sent"] == summary["messages"]["sent"] == 3, "the item, the reminder, and the alert in the inbox"
    assert len(stage.line.accepted) == 2

    async def the_job() -> Any:
        return await stage.sql.fetchval("SELECT max(id) FROM wakebell.jobs WHERE type = 'greet' AND status = 'pending'")

    content = b'{"type": "greet", "payload": {}}'
    headers = {**AUTHORIZED, "Content-Type": "application/json"}
    status, told, found = await stopped_at_its_first_byte(
        service, "POST", "/api/jobs", the_job, headers=headers, content=content
    )
    assert (status, told["id"]) == (201, found)

    async def the_message() -> Any:
        return await stage.sql.fetchval("SELECT text FROM wakebell.said")

    status, _, found = await stopped_at_its_first_byte(
        service, "POST", "/api/webhooks/clinic", the_message, **delivery(1, "hello")
    )
    assert (status, found) == (200, "hello")
    await until(lambda: stage.line.replies, told="and it is answered")


SLOW = """
    import asyncio
    from pathlib import Path
    from pydantic import BaseModel

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        while not Path("go").exists():
            await asyncio.sleep(0.01)
"""
LATE = """
UPDATE wakebell.sources SET due_at = now() - interval '7 hours', grid_from = grid_from - interval '7 hours';
UPDATE wakebell.ticks SET started_at = started_at - interval '7 hours', finished_at = finished_at - interval '7 hours'
"""


@pytest.fixture
async def asleep(stage: Stage) -> AsyncIterator[Proxy]:
    """The way to a database that is not there yet."""
    async with Proxy(stage.database_url) as way:
        way.close()
        yield way


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, of Debian's package of that name")
async def test_a_scheduler_by_curl_that_rings_too_early_gives_up_too_early_or_comes_hours_late(
    stage: Stage, asleep: Proxy
):
    stage.handler("slow", SLOW)
    feed = stage.feeds.add("jobs", "Old")
    port = free_port()
    one = Service(stage.bear("serve", HOST="127.0.0.1", PORT=str(port), DATABASE_URL=asleep.url), port)
    early = asyncio.create_task(curl(port, "--max-time", "30"))  # neither port nor database
    await until(lambda: asleep.connections, told="somebody asks for the database")
    asleep.state = "open"
    assert (await early)["status"] == "ok"

    other = await stage.serve(API_TOKEN=API_TOKEN)
    feed.add("Cook")
    await stage.make_due()
    await stage.enqueue("slow")
    assert (await curl(port, "--max-time", "1"))["status"] == "ok", "the first ring is given up, and goes on"
    (stage.folder / "go").touch()
    await until(
        lambda: stage.sql.fetchval("SELECT bool_and(status IS NOT DISTINCT FROM 'ok') FROM wakebell.ticks"),
        told="all are over",
    )
    slow = await stage.sql.fetchrow("SELECT status, attempts FROM wakebell.jobs WHERE type = 'slow'")
    assert tuple(slow) == ("done", 1)
    assert (feed.fetches, stage.line.count("Cook")) == (2, {"Cook": 1})

    feed.add("Driver")
    await stage.sql.execute(LATE)
    gap = await other.ask("GET", "/api/health", headers=AUTHORIZED)
    told = await asyncio.gather(*(service.tick() for service in (one, other, one, other, one)))
    health = await other.ask("GET", "/api/health", headers=AUTHORIZED)
    assert sum(summary["sources"]["due"] for summary in told) == 1
    assert (feed.fetches, stage.line.count("Driver")) == (3, {"Driver": 1})
    [late], [well] = gap.json()["checks"]["tick:age"], health.json()["checks"]["tick:age"]
    assert (gap.status_code, late["status"], health.status_code, well["status"]) == (503, "fail", 200, "pass")
    assert 7 * 3600 <= late["observedValue"] < 8 * 3600


async def curl(port: int, *options: str) -> dict[str, Any]:
    """The summary that curl gets, as the schedule of `.github/workflows/tick.yml` calls it."""
    retries = ("--retry", "5", "--retry-connrefused", "--retry-delay", "1", "--retry-max-time", "60")
    process = await asyncio.create_subprocess_exec(
        *("curl", "--silent", "--show-error", "--fail-with-body", "--data", "", "--header", "@-", *retries, *options),
        f"http://127.0.0.1:{port}/api/cron/tick",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    answer, complaint = await process.communicate(f"Authorization: Bearer {SECRET}".encode())
    assert process.returncode == 0, (answer, complaint)
    summary: dict[str, Any] = json.loads(answer)
    return summary
