"""`wakebell dev`: everything on this machine, from nothing to the first message told, then serving."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from app import logs, main, settings
from app.dev import owner, postgres, sample
from app.domain.errors import ServiceError
from app.server import Server, bind
from app.settings.dotenv import write_missing
from app.stores.migrations import migrate

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping

    from app.context import Service
    from app.settings import Settings, SourceSettings

PORTS_TRIED = 20

SIGNALS = (signal.SIGINT, signal.SIGTERM)

MOST_WAIT = timedelta(seconds=10)
"""What somebody looks on for between the first ticks; a source that is due later is not waited for."""

PATIENCE_SECONDS = 1.0
"""After this somebody who has pressed Ctrl-C wants to know what is going on."""

WIDTH = 110


async def run() -> None:
    """From nothing to serving; ends when it is told to stop, at whatever moment, and stops all that it started.

    Raises:
        ConfigError: what is wrong with the configuration.
        ServiceError: what could not be started, and what to change.
    """
    order = _Order()
    working = asyncio.create_task(_from_nothing(order))
    order.working = working
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, order.stop)
    try:
        await working
    except (asyncio.CancelledError, ServiceError):
        if not order.given:
            raise


class _Order:
    """The order to stop. What waits is left at once, a running batch winds down; given again, it is cut off."""

    def __init__(self) -> None:
        self.given = False
        self.working: asyncio.Task[None] | None = None
        self.server: Server | None = None

    def stop(self) -> None:
        """Give it."""
        if self.server is not None:
            self.server.stop()
        if not self.given and self.working is not None:
            say("stopping")
            self.working.cancel()
        self.given = True


class _Served(Server):
    """Without an ear of its own: the session listens for signals, also before and after."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves them alone."""
        yield


async def _from_nothing(order: _Order) -> None:
    async with AsyncExitStack() as stack:
        own = stack.enter_context(owner.owned())
        environ = _environment()
        configured = settings.load(environ, need={"CRON_SECRET"})
        logs.configure(style="console", level="WARNING")
        environ = await _database(environ, stack)
        gigs = await _sample(configured, stack)
        service = main.build(settings.load(environ, need={"CRON_SECRET"}))
        if service.handlers:
            say(f"handlers: {', '.join(sorted(service.handlers))}")
        listening = _listen(configured.environment.port)
        port = listening.getsockname()[1]
        own.serves(port)
        order.server = _Served(main.create_app(service), service.stopping)
        serving = asyncio.create_task(order.server.serve(sockets=[listening]))
        stack.push_async_callback(_ended, order.server, serving)
        base = f"http://127.0.0.1:{port}"
        await _first_ticks(service, gigs, base, serving)
        _tell_how(configured, base)
        await asyncio.shield(serving)


def _environment() -> Mapping[str, str]:
    """With the secrets that a service cannot do without."""
    environ = settings.from_process()
    missing = {name: secrets.token_hex(32) for name in ("CRON_SECRET", "API_TOKEN") if not environ.get(name)}
    if missing:
        write_missing(Path(".env"), missing)
        say(f"wrote a random {' and '.join(missing)} into .env")
    return {**settings.from_process(), **missing}


async def _database(environ: Mapping[str, str], stack: AsyncExitStack) -> Mapping[str, str]:
    """The environment with the address of a database that is up and migrated."""
    url = settings.load_database(environ).url
    if url is None:
        say(f"starting PostgreSQL in {postgres.FOLDER}")
        starting = asyncio.create_task(asyncio.to_thread(postgres.start))
        stack.push_async_callback(_stopped, starting)
        url = (await asyncio.shield(starting)).url
    migrated = await migrate(url)
    say(f"database ready, schema {migrated.after}")
    return {**environ, "DATABASE_URL": url}


async def _stopped(starting: asyncio.Task[postgres.EmbeddedPostgres]) -> None:
    """A thread cannot be called off: what it starts is stopped when it has."""
    await asyncio.wait({starting})
    if starting.exception() is None:
        await asyncio.to_thread(starting.result().stop)
    else:  # a start that was broken off may have left something that goes on
        folder = postgres.FOLDER.resolve()
        await asyncio.to_thread(postgres.EmbeddedPostgres(folder=folder, socket_folder=folder).stop)


async def _sample(configured: Settings, stack: AsyncExitStack) -> sample.SampleSource | None:
    """The sample source, running, where the configuration reads it often enough to be looked on."""
    source = _reads_sample(configured)
    if source is None:
        return None
    gigs = await stack.enter_async_context(sample.SampleSource(port=sample.PORT))
    if gigs.port == sample.PORT:
        say(f"sample source at {gigs.url}, with a new gig now and then")
    else:
        say(f"port {sample.PORT} is taken, so {source.name} reads what answers there: perhaps another `make run`")
    return gigs if source.every <= MOST_WAIT else None


def _reads_sample(configured: Settings) -> SourceSettings | None:
    for source in configured.sources.values():
        address = urlsplit(str(getattr(source.options, "url", "")))
        if address.hostname in {"127.0.0.1", "localhost"} and address.port == sample.PORT:
            return source
    return None


def _listen(port: int) -> socket.socket:
    """The wanted port on this machine alone, or the next free one."""
    for candidate in range(port, port + PORTS_TRIED):
        with suppress(ServiceError):
            return bind("127.0.0.1", candidate)
    raise ServiceError(f"no free port from {port} to {port + PORTS_TRIED - 1}; set PORT")


async def _first_ticks(
    service: Service, gigs: sample.SampleSource | None, base: str, serving: asyncio.Task[None]
) -> None:
    """With the sample ring twice: on a first start its first round is silent, the second tells what is new since."""
    before = await _newest(service)
    first = await _ring(service, base, serving)
    say(f"first tick:\n{_folded(first)}")
    if gigs is None:
        say(_when_next(first))
    else:
        gigs.publish()
        source = _reads_sample(service.settings)
        await asyncio.sleep(source.every.total_seconds() + 1 if source else 0)  # then it is due, however its slots lie
        say(f"second tick:\n{_folded(await _ring(service, base, serving))}")
    await _show_inbox(service, before)


async def _ring(service: Service, base: str, serving: asyncio.Task[None]) -> dict[str, Any]:
    secret = service.settings.environment.cron_secrets[0].decode()
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        ringing = asyncio.create_task(
            http.post(f"{base}/api/cron/tick", headers={"Authorization": f"Bearer {secret}"}),
        )
        try:
            await asyncio.wait({ringing, serving}, return_when="FIRST_COMPLETED")
        finally:
            if not ringing.done():
                ringing.cancel()
        if serving.done():
            raise ServiceError("stopped before the first ticks had ended")
        response = await ringing
    if response.status_code != httpx.codes.OK:
        raise ServiceError(f"the tick answered {response.status_code}: {response.text}")
    summary: dict[str, Any] = response.json()
    return summary


def _folded(summary: Mapping[str, Any]) -> str:
    """The summary as JSON in lines that a terminal holds, broken between its keys."""
    lines = [""]
    for name, value in summary.items():
        told = f"{json.dumps(name)}: {json.dumps(value)}"
        if lines[-1] and len(lines[-1]) + len(told) > WIDTH:
            lines.append("")
        lines[-1] += f"{told}, "
    return "    {" + "\n     ".join(line.rstrip() for line in lines).removesuffix(",") + "}"


def _when_next(summary: Mapping[str, Any]) -> str:
    due_at = summary["next_due_at"]
    if due_at is None:
        return "no source is configured: a tick runs your jobs, and nothing else is due"
    silent = "the first round of a source is silent; " if summary["sources"]["primed"] else ""
    at = datetime.fromisoformat(due_at).astimezone().strftime("%H:%M:%S")
    return f"{silent}the next source is due at {at}: a tick after that tells what is new"


async def _newest(service: Service) -> int:
    async with service.stores.database.held():
        latest = await service.stores.messages.latest(settings.INBOX, most=1)
    return int(str(latest[0]["id"])) if latest else 0


async def _show_inbox(service: Service, after: int) -> None:
    async with service.stores.database.held():
        latest = await service.stores.messages.latest(settings.INBOX, after=after)
    if not latest:
        say("the inbox has no new messages")
        return
    say(f"the inbox has {len(latest)} new message{'' if len(latest) == 1 else 's'}:")
    for message in reversed(latest):
        print("\n".join(f"    {line}".rstrip() for line in str(message["text"]).splitlines()), flush=True)
        print(flush=True)


def _tell_how(configured: Settings, base: str) -> None:
    environment = configured.environment
    say(f"serving on {base}  (Ctrl-C stops everything)")
    ways = {
        "ring it yourself:": f"-X POST -H 'Authorization: Bearer {environment.cron_secrets[0].decode()}' "
        f"{base}/api/cron/tick"
    }
    if environment.api_token is not None:
        token = environment.api_token.decode()
        ways["read what was told:"] = f"-H 'Authorization: Bearer {token}' {base}/api/messages"
    for what, arguments in ways.items():
        print(f"\n  {what}\n\n    curl {arguments}", flush=True)
    print(flush=True)


async def _ended(server: Server, serving: asyncio.Task[None]) -> None:
    if not serving.done() and not server.should_exit:
        server.stop()
    await asyncio.wait({serving}, timeout=PATIENCE_SECONDS)
    if not serving.done():
        say("the running batch comes to its end first; Ctrl-C once more cuts it off")
    await serving


def say(words: str) -> None:
    """To the person in front of it."""
    print(f"wakebell: {words}", flush=True)
