"""What answers at the service's own address, with every way not to be a replica; and a balancer before real ones."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from tests.fakes.http_server import HttpServer, Request, for_ever, send
from tests.fakes.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Collection

DRAINED = {"status": "ok", "jobs": {"claimed": 3, "done": 2, "retrying": 1, "snoozed": 0, "failed": 0, "remaining": 9}}


class Replica(HttpServer):
    """Answers with a status or a body, or does something else."""

    def __init__(self, does: int | bytes | str = 200) -> None:
        super().__init__()
        self.does = does
        self.rung: list[Request] = []
        self.held = asyncio.Semaphore(0)
        """Released for each ring that is held open."""

    @property
    def asked(self) -> list[dict[str, str]]:
        """The parameters of each ring."""
        return [dict(parse_qsl(urlsplit(request.path).query)) for request in self.rung]

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.rung.append(request)
        match self.does:
            case int(status):
                await send(wire, status, json.dumps(DRAINED).encode(), headers={"Location": f"{self.url}/elsewhere"})
            case bytes(body):
                await send(wire, 200, body)
            case "hang":
                self.held.release()
                await for_ever()
            case "hang up":
                wire.transport.abort()


class Balancer(Proxy):
    """Each connection goes to the next of the ports, as a host's balancer has it; one to a dead replica is cut off."""

    def __init__(self, ports: Collection[int]) -> None:
        super().__init__("")
        self.stand_before(ports)

    def stand_before(self, ports: Collection[int]) -> None:
        """These from now on, the first one first."""
        self._ports = itertools.cycle(ports)

    @property
    def url(self) -> str:
        """The service's public one."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _forward(self, reader: asyncio.StreamReader, wire: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await super()._forward(reader, wire)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", next(self._ports))
