"""A small HTTP/1.1 server in the test's own loop: what answers is a method, and it may do what no good server would."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str

    headers: Mapping[str, str]
    """By their names in lower case."""

    body: bytes


class HttpServer:
    """One request a connection."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, wire: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            request = await _read(reader)
            await self.answer(request, wire)
        except (OSError, EOFError, ValueError):  # the other side has died, or says nothing that is HTTP
            pass
        except asyncio.CancelledError:  # the test is over
            wire.transport.abort()
        finally:
            self._talks.discard(talk)
            with suppress(OSError, asyncio.CancelledError):
                wire.close()
                await wire.wait_closed()


async def send(
    wire: asyncio.StreamWriter,
    status: int,
    body: bytes = b"",
    *,
    headers: Mapping[str, str] | None = None,
) -> None:
    """A whole answer."""
    told = {"Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    wire.write(head(status, told) + body)
    await wire.drain()


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """A status line and headers, for answers that send their bodies in some way of their own."""
    lines = [f"HTTP/1.1 {status} Told", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def for_ever() -> None:
    """Until the test is over, or the other side gives up."""
    await asyncio.get_running_loop().create_future()


async def _read(reader: asyncio.StreamReader) -> Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method=method, path=path, headers=headers, body=body)
