"""A way to a database that a test can close, or let nothing through."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Self
from urllib.parse import parse_qs, urlsplit

State = Literal["open", "closed", "silent"]
"""`closed`: whoever connects is cut off, and so are those who were connected. `silent`: connected, and no answer."""


STARTUP = 196608
"""The version of the protocol, in the first message of a connection: from there on each message has a type."""

QUERY, EXECUTE = b"Q", b"E"


class Talk:
    """What one connection says, counted."""

    def __init__(self) -> None:
        self.round_trips = 0
        """How often the client waited for an answer."""

        self.statements = 0
        self._asked = False
        self._typed = False
        self._unread = b""

    def client(self, data: bytes) -> None:
        self._asked = True
        self._unread += data
        while self._typed and len(self._unread) >= 5:
            (length,) = struct.unpack("!i", self._unread[1:5])
            if len(self._unread) < length + 1:
                return
            self.statements += self._unread[:1] in {QUERY, EXECUTE}
            self._unread = self._unread[length + 1 :]
        while not self._typed and len(self._unread) >= 8:
            length, version = struct.unpack("!ii", self._unread[:8])
            self._typed, self._unread = version == STARTUP, self._unread[length:]

    def server(self, _: bytes) -> None:
        self.round_trips += self._asked
        self._asked = False


class Proxy:
    """Between the service and PostgreSQL, byte for byte."""

    def __init__(self, database_url: str) -> None:
        self._database = urlsplit(database_url)
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self.state: State = "open"
        self.connections = 0
        """Made so far, whatever became of them."""

        self.talks: list[Talk] = []
        """What was said on each that was let through."""

        self._stalled = 0

        self.bytes = 0
        """Said so far, by both sides."""

    @property
    def url(self) -> str:
        """The database's, by way of here."""
        assert self._server is not None
        user = self._database.netloc.rpartition("@")[0]
        port = self._server.sockets[0].getsockname()[1]
        return f"postgresql://{user}@127.0.0.1:{port}{self._database.path}"

    def close(self) -> None:
        """The database is down from now on."""
        self.state = "closed"
        self._cut()

    def stall(self) -> None:
        """Whoever is connected now hears nothing more, and is not cut off: as after a machine has slept."""
        self._stalled = len(self.talks)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        talks = set(self._talks)
        self._cut()
        await asyncio.gather(*talks, return_exceptions=True)
        await self._server.wait_closed()

    def _cut(self) -> None:
        for talk in self._talks:
            talk.cancel()

    async def _talk(self, reader: asyncio.StreamReader, wire: asyncio.StreamWriter) -> None:
        self.connections += 1
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            if self.state == "open":
                await self._forward(reader, wire)
            elif self.state == "silent":
                await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            wire.transport.abort()
        finally:
            self._talks.discard(talk)
            await _end(wire)

    async def _forward(self, reader: asyncio.StreamReader, wire: asyncio.StreamWriter) -> None:
        there, way = await self._connect()
        talk, number = Talk(), len(self.talks)
        self.talks.append(talk)
        pumps = [
            asyncio.create_task(self._pump(reader, way, talk.client, number)),
            asyncio.create_task(self._pump(there, wire, talk.server, number)),
        ]
        try:
            await asyncio.wait(pumps, return_when="FIRST_COMPLETED")
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            await _end(way)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, counted: Callable[[bytes], None], number: int
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if number < self._stalled:
                    continue
                self.bytes += len(data)
                counted(data)
                sink.write(data)
                await sink.drain()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        query = parse_qs(self._database.query)
        port = int(query.get("port", [self._database.port or 5432])[0])
        folder = query.get("host", [""])[0]
        if folder.startswith("/"):
            return await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._database.hostname, port)


async def _end(wire: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.CancelledError):
        wire.close()
        await wire.wait_closed()
