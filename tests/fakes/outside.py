"""The internet, in so far as it is a server on this machine: all public addresses lead to it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from app.clients.guard import PublicOnly, PublicTransport

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Made once, and trusts nobody: it is not asked."""

PUBLIC = "93.184.216.34"


class Plain(httpcore.AsyncNetworkStream):
    """A connection on which TLS is spoken by nobody: what is said on it can be read by a plain server."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self.read = stream.read  # type: ignore[method-assign]
        self.write = stream.write  # type: ignore[method-assign]
        self.aclose = stream.aclose  # type: ignore[method-assign]

    async def start_tls(self, *_: Any, **__: Any) -> Plain:
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class Internet(httpcore.AsyncNetworkBackend):
    """Where connections to public addresses end: at one server. `names` gives each host's answers in turn."""

    def __init__(self, url: str, names: Mapping[str, list[list[str]]] | None = None) -> None:
        self._port = urlsplit(url).port or 0
        self._names = {name: list(answers) for name, answers in (names or {}).items()}
        self._real = httpcore.AnyIOBackend()
        self.connected: list[str] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        answers = self._names.get(host, [])
        return answers.pop(0) if answers else [PUBLIC]

    async def connect_tcp(self, host: str, port: int, *more: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        self.connected.append(host)
        return Plain(await self._real.connect_tcp("127.0.0.1", self._port))

    @asynccontextmanager
    async def guarded(self, user_agent: str) -> AsyncIterator[httpx.AsyncClient]:
        """In place of `context.guarded`."""
        backend = PublicOnly(resolve=self.resolve, beyond=self)
        transport = PublicTransport(verify=TLS, backend=backend)
        async with httpx.AsyncClient(transport=transport, headers={"User-Agent": user_agent}) as http:
            yield http
