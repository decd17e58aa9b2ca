"""Requests by which every answer is met that the description of the doors promises."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from app import main, settings
from app.context import Service
from tests.api.doors import API_TOKEN
from tests.hooks.senders import STANDARD, standard

CRON_SECRET = "a-cron-secret-of-thirty-letters"
TOKENS = {"API_TOKEN": API_TOKEN, "CRON_SECRET": CRON_SECRET}

CONFIGURATION = """
[sources.gigs]
kind = "feed"
url = "http://127.0.0.1:9/feed.xml"

[recipients.me]
channel = "inbox"

[hooks.events]
kind = "standard"
secret = "env:HOOK"
job = "anything"

[reminders.day_before]
before = "24h"

[schedules.daily]
cron = "0 9 * * *"
job = "anything"

[chats.page]
kind = "messenger"
secret = "env:PAGE_SECRET"
verify_token = "env:PAGE_VERIFY"
token = "env:PAGE_TOKEN"
"""

HANDLER = """
from pydantic import BaseModel, ConfigDict

class Payload(BaseModel):
    model_config = ConfigDict(extra="allow")

async def handle(payload, ctx): ...
"""

READ = b"""{"object": "page", "entry": [{"id": "1", "messaging": [
    {"sender": {"id": "7"}, "recipient": {"id": "1"}, "timestamp": 1796000000000, "read": {"watermark": 1}}]}]}"""
"""What is kept, and never answered."""

BOOKING = {"title": "Haircut", "starts_at": "2027-03-01T09:00:00+07:00", "to": "me"}


def built(folder: Path, database_url: str, **environ: str) -> Service:
    """With something of each kind, and a job type that takes whatever it is given."""
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "anything.py").write_text(HANDLER)
    (folder / "wakebell.toml").write_text(CONFIGURATION)
    given = {
        "DATABASE_URL": database_url,
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "HOOK": STANDARD,
        "PAGE_SECRET": "a-secret-of-thirty-characters-",
        "PAGE_VERIFY": "a-word-of-thirty-characters---",
        "PAGE_TOKEN": "a-token-of-thirty-characters--",
        **TOKENS,
        **environ,
    }
    return main.build(settings.load({name: value for name, value in given.items() if value}))


@dataclass
class Teller:
    """Sends requests to the doors and remembers which operation has answered how."""

    client: httpx.AsyncClient
    sql: asyncpg.Connection
    answers: list[tuple[str, str, httpx.Response]] = field(default_factory=list)

    async def ask(self, operation: str, path: str = "", **request: Any) -> httpx.Response:
        """`operation` as the description has it: `GET /api/jobs/{job_id}`; `path`: with its parameters."""
        method, template = operation.split(" ")
        token = CRON_SECRET if template.startswith("/api/cron/") else API_TOKEN
        headers = {"Authorization": f"Bearer {token}", **request.pop("headers", {})}
        answer = await self.client.request(method, path or template, headers=headers, **request)
        self.answers.append((method, template, answer))
        return answer

    async def job(self, status: str) -> str:
        """The path of one that is so."""
        job_id = await self.sql.fetchval(
            "INSERT INTO wakebell.jobs (type, status, lease_until, lease_token) "
            "VALUES ('anything', $1, now() + interval '1 hour', 1) RETURNING id",
            status,
        )
        return f"/api/jobs/{job_id}"


Story = Callable[[Teller], Coroutine[Any, Any, None]]


async def looked_at(teller: Teller) -> None:
    for path in ("/healthz", "/readyz", "/api/health", "/api/openapi.json", "/api/schedules", "/api/sources"):
        await teller.ask(f"GET {path}")
    for path in ("/api/jobs", "/api/queues", "/api/bookings"):
        await teller.ask(f"GET {path}")
    await teller.ask("POST /api/sources/{name}/preview", "/api/sources/gigs/preview")
    await teller.ask("POST /api/sources/{name}/preview", "/api/sources/none/preview")
    await teller.ask("POST /api/cron/tick")
    await teller.ask("POST /api/cron/drain")


async def jobs(teller: Teller) -> None:
    asked = {"type": "anything", "payload": {"a": 1}}
    for _ in range(2):
        await teller.ask("POST /api/jobs", json={**asked, "unique_key": "one", "replace": True})
    await teller.ask("POST /api/jobs/batch", json={"jobs": [asked]})
    pending, running = await teller.job("pending"), await teller.job("running")
    await teller.ask("GET /api/jobs/{job_id}", pending)
    await teller.ask("PATCH /api/jobs/{job_id}", pending, json={"run_after": "2027-01-01T00:00:00Z"})
    await teller.ask("PATCH /api/jobs/{job_id}", running, json={"run_after": "2027-01-01T00:00:00Z"})
    await teller.ask("POST /api/jobs/{job_id}/retry", f"{pending}/retry")
    await teller.ask("POST /api/jobs/{job_id}/retry", f"{running}/retry")
    await teller.ask("DELETE /api/jobs/{job_id}", pending)
    await teller.ask("DELETE /api/jobs/{job_id}", running)
    await teller.ask("POST /api/jobs/retry", params={"type": "anything"})
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry")):
        await teller.ask(f"{method} /api/jobs/{{job_id}}{path}", f"/api/jobs/999999{path}")
        await teller.ask(f"{method} /api/jobs/{{job_id}}{path}", f"/api/jobs/one{path}")
    await teller.ask("PATCH /api/jobs/{job_id}", "/api/jobs/999999", json={"run_after": "2027-01-01T00:00:00Z"})


async def queues(teller: Teller) -> None:
    await teller.ask("GET /api/queues/{name}", "/api/queues/mail")
    await teller.ask("GET /api/queues/{name}", "/api/queues/" + "x" * 300)
    await teller.ask("PUT /api/queues/{name}", "/api/queues/mail", json={"max_running": 3})
    for method in ("GET", "PUT"):
        await teller.ask(f"{method} /api/queues/{{name}}", "/api/queues/a%0Ab")


async def messages(teller: Teller) -> None:
    message_id = await teller.sql.fetchval(
        "INSERT INTO wakebell.messages (recipient, channel, kind, text, body, status, finished_at) "
        "VALUES ('me', 'inbox', 'note', 'told', 'told', 'sent', now()) RETURNING id"
    )
    await teller.ask("GET /api/messages")
    for given in (message_id, 999999, "one"):
        await teller.ask("GET /api/messages/{message_id}", f"/api/messages/{given}")


async def alerts(teller: Teller) -> None:
    opened, over = [
        await teller.sql.fetchval(
            "INSERT INTO wakebell.alerts (key, kind, subject, failed_at, resolved_at) "
            "VALUES ('job_failed:' || $1, 'job_failed', $1, now(), CASE WHEN $1 = 'over' THEN now() END) RETURNING id",
            subject,
        )
        for subject in ("opened", "over")
    ]
    for path in ("/metrics", "/api/alerts", "/api/mutes"):
        await teller.ask(f"GET {path}")
    for given in (opened, over, 999999, "one"):
        await teller.ask("GET /api/alerts/{alert_id}", f"/api/alerts/{given}")
        await teller.ask("POST /api/alerts/{alert_id}/acknowledge", f"/api/alerts/{given}/acknowledge")
        await teller.ask("POST /api/alerts/{alert_id}/mute", f"/api/alerts/{given}/mute", json={"for": "8h"})
    await teller.ask("POST /api/mutes", json={"pattern": "job_failed:*", "for": "8h"})
    for _ in range(2):
        await teller.ask("DELETE /api/mutes", params={"pattern": "job_failed:*"})


async def bookings(teller: Teller) -> None:
    for _ in range(2):
        await teller.ask("PUT /api/bookings/{ref}", "/api/bookings/b-1", json=BOOKING)
    await teller.ask("PUT /api/bookings/{ref}", "/api/bookings/a%0Ab", json=BOOKING)
    for method in ("GET", "DELETE"):
        for ref in ("b-1", "none", "a%00b"):
            await teller.ask(f"{method} /api/bookings/{{ref}}", f"/api/bookings/{ref}")


async def hooks(teller: Teller) -> None:
    body, headers = standard({"type": "a"})
    for name in ("events", "events", "none"):
        await teller.ask("POST /api/hooks/{name}", f"/api/hooks/{name}", content=body, headers=headers)
    await teller.ask("POST /api/hooks/{name}", "/api/hooks/events", content=b"{}")
    broken, headers = standard(b"{")
    await teller.ask("POST /api/hooks/{name}", "/api/hooks/events", content=broken, headers=headers)


async def chats(teller: Teller) -> None:
    operation = "GET /api/webhooks/{name}"
    asked = {"hub.mode": "subscribe", "hub.challenge": "17"}
    for word in ("a-word-of-thirty-characters---", "another"):
        await teller.ask(operation, "/api/webhooks/page", params={**asked, "hub.verify_token": word})
    await teller.ask(operation, "/api/webhooks/none")
    for name, body, key in (
        ("page", READ, b"a-secret-of-thirty-characters-"),
        ("page", b"{", b"a-secret-of-thirty-characters-"),
        ("page", b"{}", b"another"),
        ("none", b"{}", b"another"),
    ):
        import hmac

        signature = "sha256=" + hmac.new(key, body, "sha256").hexdigest()
        await teller.ask(
            "POST /api/webhooks/{name}",
            f"/api/webhooks/{name}",
            content=body,
            headers={"X-Hub-Signature-256": signature, "Content-Type": "application/json"},
        )


async def conversations(teller: Teller) -> None:
    talk = await teller.sql.fetchval(
        "WITH talk AS (INSERT INTO wakebell.conversations (chat, key, address, paused_until) "
        "VALUES ('page', 'p:7', '7', now() + interval '1 hour') RETURNING id) "
        "INSERT INTO wakebell.turns (conversation_id, mark, side, text) "
        "SELECT id, 'm', 'person', 'hello' FROM talk RETURNING conversation_id"
    )
    await teller.ask("GET /api/conversations")
    one = "/api/conversations/{conversation_id}"
    for given in (talk, 999999, "one"):
        await teller.ask(f"GET {one}", f"/api/conversations/{given}")
        await teller.ask(f"DELETE {one}/pause", f"/api/conversations/{given}/pause")
        await teller.ask(f"DELETE {one}", f"/api/conversations/{given}")


STORIES: tuple[Story, ...] = (looked_at, jobs, queues, messages, alerts, bookings, hooks, chats, conversations)


def path_of(template: str) -> str:
    """Some path of that form."""
    return (
        template.replace("{job_id}", "1")
        .replace("{message_id}", "1")
        .replace("{alert_id}", "1")
        .replace("{conversation_id}", "1")
        .replace("{ref}", "b-1")
        .replace("/hooks/{name}", "/hooks/events")
        .replace("/webhooks/{name}", "/webhooks/page")
        .replace("{name}", "gigs")
    )


async def never() -> AsyncIterator[bytes]:
    """A body that begins, and does not come."""
    yield b"{"
    await asyncio.Event().wait()


SIGNED = {
    "webhook-id": "msg_1",
    "webhook-timestamp": "1",
    "webhook-signature": "v1," + "A" * 43 + "=",
    "x-hub-signature-256": "sha256=" + "a" * 64,
}
"""Headers without which no body of an event is read; they sign nothing."""


def nonsense(status: int) -> dict[str, Any]:
    """A request that no door takes: how it is wrong, by the status that says so."""
    how: dict[int, dict[str, Any]] = {
        400: {"content": b"{"},
        408: {"content": never()},
        413: {"content": b" " * (5 * 1024 * 1024)},
        415: {"content": b"{}", "headers": {"Content-Encoding": "gzip"}},
        422: {"content": json.dumps({"no such field": 1}).encode(), "params": {"no such parameter": "1"}},
    }
    return {**how[status], "headers": {**SIGNED, **how[status].get("headers", {})}}
