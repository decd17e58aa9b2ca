"""A dead-man's switch, with every way not to take a ping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.http_server import HttpServer, Request, for_ever, send

if TYPE_CHECKING:
    import asyncio


class Switch(HttpServer):
    """Answers with a status, or does something else."""

    def __init__(self, does: int | str = 200) -> None:
        super().__init__()
        self.does = does
        self.pinged: list[tuple[str, str]] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.pinged.append((request.method, request.path))
        match self.does:
            case int(status):
                await send(wire, status, b"OK", headers={"Location": f"{self.url}/elsewhere"})
            case "hang":
                await for_ever()
            case "hang amid the head":
                wire.write(b"HTTP/1.1 200 OK\r\n")
                await wire.drain()
                await for_ever()
            case "hang amid the body":  # it has said that it took it
                wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nO")
                await wire.drain()
                await for_ever()
            case "hang up":
                wire.transport.abort()
            case "talk nonsense":
                wire.write(b"SSH-2.0-OpenSSH\r\n")
                await wire.drain()
