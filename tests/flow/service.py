"""The service as it runs: a process of its own, in a folder of its own, met by HTTP and by signals."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
KILLABLE = Path(__file__).with_name("killable.py")

SECRET = "the-cron-secret-of-the-tests"  # noqa: S105 - it opens nothing
BEARER = {"Authorization": f"Bearer {SECRET}"}

PATIENCE = 60.0
"""Seconds until a fact that should come true is given up: no measure, only an end."""

KEPT = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT", "COVERAGE_PROCESS_START"})
"""What a process gets of the environment of the person who runs the tests."""


async def until(fact: Callable[[], Awaitable[Any] | Any], *, told: str) -> Any:
    """Ask until it is true, and return what it is."""
    end = time.monotonic() + PATIENCE
    while True:
        value = fact()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return value
        assert time.monotonic() < end, f"never came true: {told}"
        await asyncio.sleep(0.01)


class Process:
    """A command of the service, with what it says kept in a file."""

    def __init__(
        self,
        *arguments: str,
        folder: Path,
        environ: Mapping[str, str],
        program: tuple[str, ...] = ("-m", "app"),
    ) -> None:
        self._log = folder / f"log-{len(list(folder.glob('log-*')))}"
        inherited = {name: value for name, value in os.environ.items() if name in KEPT}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=folder,
                env={**inherited, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """As the host does it: without a word."""
        self._process.kill()

    def term(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Its exit status, once it has one; the number of the signal that killed it, below zero."""
        return await asyncio.to_thread(self._process.wait, PATIENCE)

    def clear_away(self) -> None:
        self.kill()
        self._process.wait()


class Service(Process):
    """`wakebell serve`."""

    def __init__(
        self,
        *,
        folder: Path,
        environ: Mapping[str, str],
        program: tuple[str, ...] = ("-m", "app"),
    ) -> None:
        port = _free_port()
        here = {"HOST": "127.0.0.1", "PORT": str(port), "CRON_SECRET": SECRET}
        super().__init__("serve", folder=folder, environ={**here, **environ}, program=program)
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    async def ready(self) -> None:
        """Once it answers."""

        async def answers() -> bool:
            assert self.alive, f"it ended before it answered:\n{self.log}"
            try:
                return (await self.ask("GET", "/healthz")).status_code == 200
            except httpx.TransportError:
                return False

        await until(answers, told="the service answers")

    async def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE, trust_env=False) as http:
            return await http.request(method, path, **request)

    async def ring(self, **params: Any) -> httpx.Response:
        """One tick, whatever its answer."""
        return await self.ask("POST", "/api/cron/tick", params=params, headers=BEARER)

    async def tick(self, **params: Any) -> dict[str, Any]:
        """The summary of one tick."""
        answer = await self.ring(**params)
        assert answer.status_code == 200, f"{answer.text}\n{self.log}"
        summary: dict[str, Any] = answer.json()
        return summary

    async def ring_in_vain(self, **params: Any) -> None:
        """One tick whose process does not live to answer it."""
        try:
            answer = await self.ring(**params)
        except httpx.TransportError:
            return
        raise AssertionError(f"it has answered: {answer.text}")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
