"""Debian's pgbouncer in transaction mode in front of a server: two server connections for whoever comes."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")

NEEDED = "needs pgbouncer, of Debian's package of that name"

CONNECTIONS = 2

SECONDS = 30.0
"""Until it listens; no measure, only an end."""

CONFIG = """
[databases]
* = {server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
reserve_pool_size = 0
max_client_conn = 500
server_idle_timeout = 0
server_lifetime = 86400
logfile = {log}
"""

OF_THE_POOLER = ("application_name", "client_encoding", "datestyle", "standard_conforming_strings", "timezone")
"""What pgbouncer itself sets on a server connection before it lends it to a client (docs: pgbouncer, Features)."""

LEFT_BEHIND = """
SELECT pg_backend_pid() AS backend,
    (SELECT count(*) FROM pg_prepared_statements) AS prepared,
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS advisory_locks,
    ARRAY(
        SELECT name || '=' || setting FROM pg_settings
        WHERE source = 'session' AND lower(name) <> ALL (CAST($1 AS text[]))
    ) AS settings
"""


class Pooler:
    """A running pgbouncer, and what a database looks like through it."""

    def __init__(self, *, config: Path, user: dict[str, Any], port: int, name: str) -> None:
        self._config = config
        self._user = user
        self._port = port
        self._log = config.with_name("pgbouncer.log")
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://postgres@127.0.0.1:{port}/{name}"

    async def start(self) -> None:
        """Until it listens."""
        assert PROGRAM is not None
        self._process = _start(PROGRAM, self._config, self._user)
        await _listens(self._process, self._port, self._log)

    def kill(self) -> None:
        """With every connection through it."""
        if self._process is not None:
            self._process.kill()  # an order to stop in peace would wait for clients that are gone
            self._process.wait()
            self._process = None

    @property
    def complaints(self) -> list[str]:
        """What it has logged as more than an event."""
        lines = self._log.read_text("utf-8", "replace").splitlines()
        return [line for line in lines if any(f" {level} " in line for level in ("WARNING", "ERROR", "FATAL"))]

    async def left_behind(self) -> list[dict[str, Any]]:
        """Of every server connection: its backend, and what clients have left in it.

        As many transactions at once as there are connections, so that each is seen.
        """
        async with AsyncExitStack() as stack:
            seen = []
            for _ in range(CONNECTIONS):
                client = await asyncpg.connect(self.url, statement_cache_size=0, timeout=SECONDS)
                stack.push_async_callback(client.close)
                await stack.enter_async_context(client.transaction())
                seen.append(dict(await client.fetchrow(LEFT_BEHIND, OF_THE_POOLER)))
            return seen


@asynccontextmanager
async def pooler(database_url: str, **settings: object) -> AsyncIterator[Pooler]:
    """A pooler for one database, with further settings of pgbouncer's or others than these."""
    user = _user(database_url)
    # Not pytest's: nobody else may enter that, and for root pgbouncer is somebody else.
    folder = Path(tempfile.mkdtemp(prefix="wakebell-pooler-"))
    port = _free_port()
    config = folder / "pgbouncer.ini"
    written = CONFIG.format(
        server=_server(database_url), port=port, connections=CONNECTIONS, log=folder / "pgbouncer.log"
    )
    config.write_text(written + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    if user:
        os.chown(folder, user["user"], user["group"])
        os.chown(config, user["user"], user["group"])
    running = Pooler(config=config, user=user, port=port, name=urlsplit(database_url).path.lstrip("/"))
    try:
        await running.start()
        yield running
    finally:
        running.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _server(database_url: str) -> str:
    """The server as pgbouncer's configuration names it."""
    parts = urlsplit(database_url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    found = {
        "host": query.get("host") or parts.hostname,
        "port": query.get("port") or parts.port,
        "user": unquote(parts.username or "postgres"),
        "password": unquote(parts.password or ""),
    }
    return " ".join(f"{name}={value}" for name, value in found.items() if value)


def _user(database_url: str) -> dict[str, Any]:
    """pgbouncer does not run as root; then it runs as the owner of the server's socket, who may enter its folder."""
    if os.geteuid() != 0:
        return {}
    folder = parse_qs(urlsplit(database_url).query).get("host", ["/"])[0]
    owner = Path(folder).stat() if folder.startswith("/") else Path("/").stat()
    if owner.st_uid == 0:
        entry = pwd.getpwnam("nobody")
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _start(program: str, config: Path, user: dict[str, Any]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program, "--quiet", str(config)],
        cwd=config.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        **user,
    )


def _told(log: Path) -> str:
    return log.read_text("utf-8", "replace") if log.exists() else "it said nothing"


async def _listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            assert process.poll() is None, f"pgbouncer ended: {_told(log)}"
            try:
                _, wire = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                wire.close()
                await wire.wait_closed()
                return
