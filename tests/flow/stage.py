"""What a test of the whole needs: a database, sources, LINE, and processes of the service between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import asyncpg

from tests.fakes.feeds import Feeds
from tests.fakes.line import TOKEN, Line
from tests.flow.clocks import Clocks
from tests.flow.processes import Command, Nursery, Process
from tests.flow.service import SECRET, Service, free_port, until

USER = "U4af4980629"
"""Whom LINE reaches."""

TELLING = """
[channels.line]
kind = "line"
token = "env:LINE_TOKEN"
base_url = "{line}"

[recipients.me]
channel = "line"
to = "env:LINE_USER"

[subscriptions.all]
to = ["me"]
"""


class Stage:
    """Sources are due every half hour, so that nothing is due which a test has not made due."""

    def __init__(
        self,
        *,
        folder: Path,
        database_url: str,
        sql: asyncpg.Connection,
        feeds: Feeds,
        line: Line,
        nursery: Nursery,
    ) -> None:
        self.folder = folder
        self.database_url = database_url
        self.sql = sql
        self.feeds = feeds
        self.line = line
        self.nursery = nursery
        self.processes: list[Process] = []
        self.host_gap = 0.0
        """Seconds: all feeds are at one host."""

        self.telling = TELLING
        self.more = ""
        """Further lines of the configuration."""

    @property
    def environ(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.database_url,
            "LINE_TOKEN": TOKEN,
            "LINE_USER": USER,
            "CRON_SECRET": SECRET,
            # Also for who is to fail: the port is bound before the rest is read, and the usual one may be in use.
            "HOST": "127.0.0.1",
            "PORT": str(free_port()),
        }

    async def serve(
        self, *, die_at: str | int | None = None, command: bool = False, clocks: Clocks | None = None, **environ: str
    ) -> Service:
        """A process that answers, with the configuration as it is now.

        `die_at`: a point where it kills itself. `command`: started as a person does it. `clocks`: by which it goes.
        """
        port = free_port()
        given = {"HOST": "127.0.0.1", "PORT": str(port), **(clocks.environ if clocks else {}), **environ}
        process = self.command("serve", **given) if command else self.bear("serve", die_at=die_at, **given)
        service = Service(process, port)
        await service.ready()
        return service

    async def serve_at(self, host: str, port: int, **environ: str) -> Service:
        """A process that answers at this address of the machine's own."""
        service = Service(self.bear("serve", HOST=host, PORT=str(port), **environ), port, host=host)
        await service.ready()
        return service

    def bear(self, *arguments: str, die_at: str | int | None = None, **environ: str | None) -> Process:
        """A process with these arguments, without a start of its own. None: the variable is not set."""
        self.configure()
        process = self.nursery.bear(
            list(arguments),
            folder=self.folder,
            log=self._log(),
            environ={name: value for name, value in {**self.environ, **environ}.items() if value is not None},
            die_at=die_at,
        )
        self.processes.append(process)
        return process

    def command(self, *arguments: str, **environ: str) -> Process:
        """The command as a person starts it."""
        self.configure()
        process = Command(list(arguments), folder=self.folder, log=self._log(), environ={**self.environ, **environ})
        self.processes.append(process)
        return process

    def program(self, script: str, **environ: str) -> Process:
        """Python running a script that may import the service."""
        self.configure()
        given = {**self.environ, **environ}
        process = Command([], folder=self.folder, log=self._log(), environ=given, program=("-c", script))
        self.processes.append(process)
        return process

    def _log(self) -> Path:
        return self.folder / f"log-{len(self.processes)}"

    def configure(self) -> None:
        service = f"[service]\nhost_gap_seconds = {self.host_gap}\n"
        sources = "".join(
            f'[sources.{name}]\nkind = "feed"\nurl = "{feed.url}"\nevery_minutes = 30\n'
            for name, feed in self.feeds.feeds.items()
        )
        told = self.telling.format(line=self.line.url)
        # In one go: a process that starts meanwhile reads the one before, not half of this one.
        written = self.folder / "wakebell.toml.new"
        written.write_text(f"{service}{sources}{told}{self.more}", "utf-8")
        written.replace(self.folder / "wakebell.toml")

    def handler(self, name: str, text: str) -> None:
        """A job type of the user's."""
        (self.folder / "handlers").mkdir(exist_ok=True)
        (self.folder / "handlers" / f"{name}.py").write_text(dedent(text), "utf-8")

    async def make_due(self) -> None:
        """Each source and each waiting job, as if its time had come, and each pause of a channel had passed."""
        await self.sql.execute("UPDATE wakebell.sources SET due_at = now()")
        await self.sql.execute("UPDATE wakebell.queues SET paused_until = NULL WHERE starts_with(name, 'wakebell.')")
        await self.sql.execute(
            "UPDATE wakebell.jobs SET run_after = now() - interval '1 second' "
            "WHERE status = 'pending' AND run_after > now()"
        )

    async def end_leases(self) -> None:
        """What killed processes were doing, as if its time were over. No other process may be at work."""
        await self.until_at_rest()
        await self.sql.execute(
            "UPDATE wakebell.jobs SET lease_until = now() - interval '1 second' WHERE status = 'running'"
        )

    async def until_at_rest(self) -> None:
        """Once the database does nothing for the service: what a process wrote as it died is written, or never is."""
        await self._until_none("state <> 'idle'")

    async def until_disconnected(self) -> None:
        await self._until_none("application_name = 'wakebell'")

    async def _until_none(self, which: str) -> None:
        statement = f"""
            SELECT count(*) = 0 FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
              AND {which}
        """
        await until(lambda: self.sql.fetchval(statement), told=f"no connection to the database with {which}")

    async def enqueue(self, type: str, payload: str = "{}", **more: Any) -> int:  # noqa: A002 - the column's name
        names = "".join(f", {name} => ${number}" for number, name in enumerate(more, 3))
        statement = f"SELECT id FROM wakebell.enqueue($1, CAST($2 AS jsonb){names})"
        job_id: int = await self.sql.fetchval(statement, type, payload, *more.values())
        return job_id

    async def job(self, job_id: int) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self.sql.fetchrow("SELECT * FROM wakebell.jobs WHERE id = $1", job_id)
        return found

    async def source(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self.sql.fetchrow("SELECT * FROM wakebell.sources WHERE name = $1", name)
        return found

    async def an_hour_later(self) -> None:
        """For what is asked of a provider once an hour; and everything is due."""
        await self.sql.execute(
            "UPDATE wakebell.channels SET quota_tried_at = now() - interval '1 hour', "
            "parked_at = parked_at - interval '2 hours'"
        )
        await self.make_due()

    async def alerts(self) -> list[Mapping[str, Any]]:
        """The messages about alerts, in order."""
        found: list[Mapping[str, Any]] = await self.sql.fetch(
            "SELECT recipient, channel, status, text FROM wakebell.messages WHERE kind = 'alert' ORDER BY id"
        )
        return found

    async def notes(self) -> list[str]:
        """What the inbox was told of the service itself, in order."""
        found = await self.sql.fetch("SELECT text FROM wakebell.messages WHERE kind = 'note' ORDER BY id")
        return [row["text"] for row in found]


class PooledStage(Stage):
    """Its processes reach the database through a pooler; the test's own look at it goes straight there."""

    async def until_disconnected(self) -> None:
        """The pooler keeps its connections: that nothing is under way in them has to do."""
        await self.until_at_rest()
