"""Debian's Redis, for one test: everything in memory, on a port of this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError

PROGRAM = shutil.which("redis-server", path=f"{os.environ.get('PATH', os.defpath)}:/usr/bin:/usr/local/bin")

NEEDED = "needs redis-server, of Debian's package of that name"

SECONDS = 30.0
"""Until it answers; no measure, only an end."""


class RedisServer:
    """One that can be stopped and started again, empty, at the same address."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Of its first database."""
        return f"redis://127.0.0.1:{self._port}/0"

    async def start(self) -> None:
        """Until it answers."""
        assert PROGRAM is not None
        self._process = subprocess.Popen(  # noqa: ASYNC220 - it waits for nothing
            [PROGRAM, "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        async with asyncio.timeout(SECONDS), Redis.from_url(self.url) as client:
            while True:
                with suppress(RedisError, OSError):
                    await client.ping()
                    return
                assert self._process.poll() is None
                await asyncio.sleep(0.01)

    async def has_no_client(self) -> bool:
        """But whoever asks."""
        async with Redis.from_url(self.url) as client:
            return len(await client.client_list()) == 1

    def kill(self) -> None:
        """At once; whatever it knew is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@asynccontextmanager
async def redis_server() -> AsyncIterator[RedisServer]:
    """A running one."""
    folder = Path(tempfile.mkdtemp(prefix="wakebell-redis-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = RedisServer(folder, free.getsockname()[1])
    try:
        await server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
