"""`wakebell dev`: everything on this machine, from nothing to the first message told, then serving."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from app import logs, main, settings
from app.dev import postgres
from app.dev.sample import SampleSource
from app.domain.errors import ServiceError
from app.server import Server, bind
from app.settings.dotenv import write_missing
from app.stores.migrations import migrate

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from app.context import Service

PORTS_TRIED = 20


async def run() -> None:
    """From nothing to serving; ends when it is told to stop, and stops all that it started.

    Raises:
        ConfigError: what is wrong with the configuration.
        ServiceError: what could not be started, and what to change.
    """
    async with AsyncExitStack() as stack:
        environ = await _environment(stack)
        sample = await stack.enter_async_context(SampleSource())
        _say(f"sample source at {sample.url}, with a new gig now and then")
        configured = settings.load(environ, need={"CRON_SECRET"})
        logs.configure(style="console", level="WARNING")
        service = main.build(configured)
        listening = _listen(configured.environment.port)
        server = Server(main.create_app(service), service.stopping)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        stack.push_async_callback(_ended, server, serving)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        await _first_ticks(service, sample, base, serving)
        _tell_how(configured.environment.cron_secrets[0].decode(), base)
        await asyncio.shield(serving)
        _say("stopping")


async def _environment(stack: AsyncExitStack) -> Mapping[str, str]:
    """Secrets written, database up and migrated."""
    environ = settings.from_process()
    missing = {name: secrets.token_urlsafe(32) for name in ("CRON_SECRET", "API_TOKEN") if not environ.get(name)}
    if missing:
        write_missing(Path(".env"), missing)
        _say(f"wrote a random {' and '.join(missing)} into .env")
        environ = settings.from_process()
    url = settings.load_database(environ).url
    if url is None:
        _say("starting PostgreSQL in .wakebell/postgres")
        server = await asyncio.to_thread(postgres.start)
        stack.push_async_callback(asyncio.to_thread, server.stop)
        url = server.url
    migrated = await migrate(url)
    _say(f"database ready, schema {migrated.after}")
    return {**environ, "DATABASE_URL": url}


def _listen(port: int) -> socket.socket:
    """The wanted port on this machine alone, or the next free one."""
    for candidate in range(port, port + PORTS_TRIED):
        with suppress(ServiceError):
            return bind("127.0.0.1", candidate)
    raise ServiceError(f"no free port from {port} to {port + PORTS_TRIED - 1}; set PORT")


async def _first_ticks(service: Service, sample: SampleSource, base: str, serving: asyncio.Task[None]) -> None:
    """Ring twice: on a first start the first round is silent, and the second tells what is new since."""
    before = await _newest(service)
    first = await _ring(service, base, serving)
    _say(f"first tick:  {json.dumps(first)}")
    sample.publish()
    await _until_due(first)
    second = await _ring(service, base, serving)
    _say(f"second tick: {json.dumps(second)}")
    await _show_inbox(service, before)


async def _ring(service: Service, base: str, serving: asyncio.Task[None]) -> dict[str, Any]:
    secret = service.settings.environment.cron_secrets[0].decode()
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        ringing = asyncio.create_task(
            http.post(f"{base}/api/cron/tick", headers={"Authorization": f"Bearer {secret}"}),
        )
        await asyncio.wait({ringing, serving}, return_when="FIRST_COMPLETED")
        if not ringing.done():
            ringing.cancel()
            raise ServiceError("stopped before the first ticks had ended")
        response = await ringing
    if response.status_code != httpx.codes.OK:
        raise ServiceError(f"the tick answered {response.status_code}: {response.text}")
    summary: dict[str, Any] = response.json()
    return summary


async def _until_due(summary: Mapping[str, Any]) -> None:
    """The sample source is read every few seconds; the summary says when it is due again, to the second."""
    due_at = summary["next_due_at"]
    if due_at is not None:
        wait = (datetime.fromisoformat(due_at) - datetime.now(UTC)).total_seconds() + 1
        await asyncio.sleep(min(max(wait, 0), 60))


async def _newest(service: Service) -> int:
    async with service.stores.database.held():
        latest = await service.stores.messages.latest(settings.INBOX, most=1)
    return int(str(latest[0]["id"])) if latest else 0


async def _show_inbox(service: Service, after: int) -> None:
    async with service.stores.database.held():
        latest = await service.stores.messages.latest(settings.INBOX, after=after)
    _say(f"the inbox has {len(latest)} new message{'' if len(latest) == 1 else 's'}:")
    for message in reversed(latest):
        print("\n".join(f"    {line}" for line in str(message["text"]).splitlines()), flush=True)
        print(flush=True)


def _tell_how(secret: str, base: str) -> None:
    _say(f"serving on {base}  (Ctrl-C stops everything)")
    print(
        f"\n  ring it yourself:\n\n    curl -X POST -H 'Authorization: Bearer {secret}' {base}/api/cron/tick\n",
        flush=True,
    )


async def _ended(server: Server, serving: asyncio.Task[None]) -> None:
    if not serving.done():
        server.stop()
    await serving


def _say(words: str) -> None:
    print(f"wakebell: {words}", flush=True)
