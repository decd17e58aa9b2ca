"""The pages as a browser meets them: a client that keeps cookies, and a stage with something of everything on it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import httpx

from app import main
from app.context import Service
from tests.api.doors import API_TOKEN, built

TELLING = """
[service]
name = "gigs"
timezone = "Asia/Bangkok"

[channels.line]
kind = "line"
token = "a-token-of-line-of-thirty-letters"

[recipients.me]
channel = "line"
to = "U4af4980629abcdef4af4980629abcdef"

[subscriptions.all]
to = ["me"]

[schedules.report]
cron = "0 9 * * *"
job = "mail"
payload = { user_id = 1 }

[reminders.day_before]
before = "24h"
"""

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> \u202egnp.exe\u202c & {{ 7 * 7 }} "
LONG = EVIL + "long " * 2000


def page_service(folder: Path, database_url: str, *, more: str = "", **environ: str) -> Service:
    return built(folder, database_url, more=TELLING + more, **{"API_TOKEN": API_TOKEN, **environ})


@asynccontextmanager
async def visiting(service: Service, base_url: str = "http://localhost:8080") -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who has not logged in."""
    transport = httpx.ASGITransport(main.create_app(service))
    async with httpx.AsyncClient(transport=transport, base_url=base_url) as client:
        yield client
    await service.stores.database.dispose()


@asynccontextmanager
async def logged_in(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with visiting(service) as client:
        answer = await client.post("/login", data={"token": API_TOKEN})
        assert answer.status_code == 303, answer.text
        yield client


async def form_token(client: httpx.AsyncClient) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', (await client.get("/schedules")).text)
    assert found is not None
    return found[1]


async def change(client: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """A form of ours, sent."""
    return await client.post(path, data={"csrf": await form_token(client), **fields})


def summary(number: int, **more: object) -> Mapping[str, object]:
    return {
        "duration_ms": 400 + number * 37 % 2600,
        "sources": {"new_items": number % 5, "failed": int(number % 29 == 0)},
        "messages": {"sent": number % 4, "failed": 0},
        "jobs": {"done": number % 7, "failed": int(number % 31 == 0), "remaining": 0},
        "next_due_at": (datetime.now(UTC) + timedelta(minutes=12)).isoformat(),
        "errors": ["source board failed"] if number % 29 == 0 else [],
        **more,
    }


async def something_of_everything(
    sql: asyncpg.Connection, service: Service, *, text: str = "ordinary"
) -> dict[str, int]:
    """Rows of every kind, with this text wherever a stranger can put one. Returns the ids of some."""
    now = datetime.now(UTC)
    await sql.executemany(
        "INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at, summary) "
        "VALUES ('http', $1, $2, $2, $3)",
        [
            ("partial" if n % 29 == 0 else "ok", now - timedelta(minutes=15 * n + 4), json.dumps(summary(n)))
            for n in range(288)
            if not 100 < n < 120
        ],
    )
    await sql.execute(
        """
        INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, primed_at, last_round_at,
                                      last_success_at, failures, last_failure_at, last_error)
        VALUES ('gigs', $2, 1800, now() + interval '20 min', now() - interval '9 days', now() - interval '4 min',
                now() - interval '4 min', 0, NULL, NULL),
               ('board', $3, 1800, now() + interval '20 min', now() - interval '9 days', now() - interval '4 min',
                now() - interval '2 h', 3, now() - interval '4 min', $1)
        """,
        text,
        *(service.settings.sources[name].fingerprint for name in ("gigs", "board")),
    )
    await sql.execute(
        "INSERT INTO wakebell.items (source, key, title, link) SELECT 'gigs', n::text, $1, $1 "
        "FROM generate_series(1, 3) AS n",
        text,
    )
    await sql.execute(
        """
        INSERT INTO wakebell.jobs (type, queue, status, unique_key, result, finished_at)
        SELECT 'fetch_source', 'wakebell.fetch', CASE WHEN n % 9 = 0 THEN 'cancelled' ELSE 'done' END,
               CASE WHEN n % 2 = 0 THEN 'gigs' ELSE 'board' END, jsonb_build_object('items', 20, 'new', n % 5),
               now() - make_interval(mins => 30 * (60 - n))
        FROM generate_series(1, 60) AS n
        """
    )
    failed = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, queue, payload, status, attempts, last_error, unique_key, serial_key, "
        "started_at, finished_at, failures) VALUES ($1, $1, jsonb_build_object('note', $2::text), 'failed', 4, $2, $1, "
        "$1, now(), now(), jsonb_build_array(jsonb_build_object('attempt', 4, 'at', now(), 'error', $2::text, "
        "'traceback', $2::text))) RETURNING id",
        text[:190],
        text,
    )
    pending = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, queue, run_after) VALUES ('mail', 'mails', now() + interval '1 h') "
        "RETURNING id"
    )
    message = await sql.fetchval(
        "INSERT INTO wakebell.messages (recipient, channel, kind, text, body, status, attempts, last_error, "
        "provider_id, finished_at) VALUES ($1, 'line', 'items', $1, $1, 'failed', 3, $1, $1, now()) RETURNING id",
        text,
    )
    await sql.execute(
        "INSERT INTO wakebell.messages (recipient, channel, kind, text, body, status, attempts, sent_at, finished_at) "
        "VALUES ('inbox', 'inbox', 'note', 'gigs is watched; 20 items are known.', '', 'sent', 1, now(), now())"
    )
    await sql.execute(
        "INSERT INTO wakebell.owed (recipient, item_id, subscriptions, message_id) "
        "SELECT 'me', id, '[\"all\"]', $1 FROM wakebell.items",
        message,
    )
    alert = await sql.fetchval(
        "INSERT INTO wakebell.alerts (key, kind, subject, reason, failed_at, failures, last_job) "
        "VALUES ('job_failed:' || left($1, 200), 'job_failed', $1, $1, now(), 3, $2) RETURNING id",
        text,
        failed,
    )
    await sql.execute(
        "INSERT INTO wakebell.channels (name, quota_limit, quota_used, quota_read_at, low_at, low_until, low_reason) "
        "VALUES ('line', 200, 163, now(), now(), now() + interval '9 days', $1)",
        text,
    )
    await sql.execute(
        "INSERT INTO wakebell.bookings (ref, title, starts_at, timezone, recipient) "
        "VALUES ($1, $2, now() + interval '2 days', 'Asia/Bangkok', 'me')",
        text[:190],
        text[:490],
    )
    await sql.execute(
        "INSERT INTO wakebell.queues (name, paused_until, pause_reason) VALUES ('letters', 'infinity', $1)", text[:490]
    )
    return {"failed": failed, "pending": pending, "message": message, "alert": alert}
