"""`wakebell serve`, met by HTTP."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from tests.flow.processes import PATIENCE, Process

SECRET = "the-cron-secret-of-the-tests"
BEARER = {"Authorization": f"Bearer {SECRET}"}


class Service:
    """A process that listens at a port."""

    def __init__(self, process: Process, port: int, *, host: str = "127.0.0.1") -> None:
        self.process = process
        self.port = port
        self.host = host
        self.kill = process.kill
        self.term = process.term
        self.ended = process.ended

    @property
    def log(self) -> str:
        return self.process.log

    async def ready(self) -> None:
        """Once it has read its configuration and answers: the port listens, and says that it lives, before that."""
        await until(self._listens, told="the service listens")
        assert (await self.ask("HEAD", "/nothing")).status_code == 404

    async def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        # A client each time: a connection that is kept would outlive the process.
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False, verify=False) as http:
            return await http.request(method, f"http://{self.host}:{self.port}{path}", **request)

    async def ring(self, **params: Any) -> httpx.Response:
        """One tick, whatever its answer."""
        return await self.ask("POST", "/api/cron/tick", params=params, headers=BEARER)

    async def tick(self, **params: Any) -> dict[str, Any]:
        """The summary of one tick."""
        answer = await self.ring(**params)
        assert answer.status_code == 200, answer.text
        summary: dict[str, Any] = answer.json()
        return summary

    async def ring_in_vain(self, **params: Any) -> None:
        """One tick whose process does not live to answer it."""
        try:
            answer = await self.ring(**params)
        except httpx.TransportError:
            return
        raise AssertionError(f"it has answered: {answer.text}")

    async def _listens(self) -> bool:
        assert self.process.alive, f"it ended before it answered:\n{self.log}"
        try:
            _, wire = await asyncio.open_connection(self.host, self.port)
        except OSError:
            return False
        wire.close()
        await wire.wait_closed()
        return True


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


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
